-- Tables that hold content or keys are cut by tenant, so that a purge rewrites one part of a table and not the
-- whole. A part has forced row security and no policy: nothing goes through it but by way of its table.
-- Content columns are kept out of the planner's statistics, which would hold samples of them.

DO $$
DECLARE parent text; part text; content_column text;
BEGIN
  FOREACH parent IN ARRAY ARRAY['subjects', 'captures', 'candidates', 'memory_bodies'] LOOP
    FOR n IN 0..7 LOOP
      part := parent || '_' || n;
      EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS 8, REMAINDER %s)', part, parent, n);
      EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', part);
      EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', part);
      content_column := CASE parent WHEN 'subjects' THEN 'wrapped_key' ELSE 'content' END;
      EXECUTE format('ALTER TABLE %I ALTER COLUMN %I SET STATISTICS 0', part, content_column);
    END LOOP;
  END LOOP;
END $$;

ALTER TABLE consents ALTER COLUMN evidence SET STATISTICS 0;
ALTER TABLE verdicts ALTER COLUMN remark SET STATISTICS 0;
ALTER TABLE tenant_keys ALTER COLUMN wrapped SET STATISTICS 0;
