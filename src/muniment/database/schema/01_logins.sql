-- The logins, one for each task of the program. Each has only the rights that the tables below grant to it (CAP-6).

-- Not by IF NOT EXISTS, which a cluster hands on to nodes that have it, and where only a superuser may run it.
DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'vector') THEN
    CREATE EXTENSION vector SCHEMA public;
  END IF;
END $$;

-- Logins belong to the whole server: another database may have made them already.
DO $$
DECLARE login text;
BEGIN
  FOREACH login IN ARRAY ARRAY['muniment_writer', 'muniment_recall', 'muniment_auditor', 'muniment_privacy', 'muniment_jobs', 'muniment_subject'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = login) THEN
      EXECUTE format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS NOINHERIT', login);
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA muniment TO %I', login);
    EXECUTE format('GRANT SELECT ON schema_migrations TO %I', login);
  END LOOP;
END $$;
