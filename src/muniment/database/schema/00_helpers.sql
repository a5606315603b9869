-- Helpers for the files after this one, so that what holds for every table is written once. The last file drops them.

-- A policy of a table. Whoever it is for sees and writes rows of the transaction's own tenant only (ISO-1): `sees` and
-- `writes` are further conditions on a row that is read or changed, and on a row that is written. `login` is the task of a
-- login, several with commas, 'owner' among them; '' is everybody but the login of end users, which has policies of its own
-- (SUB-1). Conditions are joined by AND: one with OR stands in parentheses.
-- All policies are permissive, and none contains a query: a cluster makes restrictive ones permissive on its shards without
-- an error, and refuses queries (ADR 82). A login with narrower rights than others is left out of their policy.
CREATE FUNCTION add_policy(
  place text, policy text, command text, sees text DEFAULT '', writes text DEFAULT '', login text DEFAULT ''
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  own CONSTANT text := 'tenant_id = current_setting(''muniment.tenant'', true)';
  tasks CONSTANT text := coalesce(nullif(login, ''), 'writer, recall, auditor, privacy, jobs, owner');
  roles CONSTANT text := replace('muniment_' || replace(tasks, ', ', ', muniment_'), 'muniment_owner', 'CURRENT_USER');
BEGIN
  EXECUTE format('CREATE POLICY %I ON %I FOR %s TO %s', policy, place, command, roles)
    || CASE WHEN command <> 'INSERT' THEN format(' USING (%s)', concat_ws(' AND ', own, nullif(sees, ''))) ELSE '' END
    || CASE WHEN command IN ('INSERT', 'UPDATE') OR writes <> ''
         THEN format(' WITH CHECK (%s)', concat_ws(' AND ', own, nullif(writes, ''))) ELSE '' END;
END $$;

-- Tables where a tenant's rows may be used by every login that has a grant.
CREATE FUNCTION rows_of_tenant(VARIADIC places text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE place text;
BEGIN
  FOREACH place IN ARRAY places LOOP
    PERFORM add_policy(place, 'tenant', 'ALL');
  END LOOP;
END $$;

-- The policy for new rows of a table that belong to the transaction that writes them: it took the number that they carry (AUD-1,
-- SCL-5).
CREATE FUNCTION add_writing_policy(place text, policy text, writes text DEFAULT '', mark text DEFAULT 'txid', login text DEFAULT '')
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM add_policy(place, policy, 'INSERT', login => login,
    writes => concat_ws(' AND ', mark || ' = muniment.transaction_mark()', nullif(writes, '')));
END $$;

-- A table whose new rows belong to the transaction that writes them.
CREATE FUNCTION rows_of_transaction(place text, policy text, writes text DEFAULT '', mark text DEFAULT 'txid', login text DEFAULT '')
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  PERFORM add_policy(place, 'tenant_read', 'SELECT');
  PERFORM add_writing_policy(place, policy, writes, mark, login);
END $$;

-- Columns with content, keys or hashes of them: the planner keeps no samples of them, which no erasure would reach (ERA-1).
CREATE FUNCTION no_samples(place text, VARIADIC columns text[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE one text;
BEGIN
  -- A cluster refuses it for a distributed table: there it is set at the coordinator, and `db migrate` sets it on the shards.
  SET LOCAL citus.enable_ddl_propagation = off;
  FOREACH one IN ARRAY columns LOOP
    EXECUTE format('ALTER TABLE %I ALTER COLUMN %I SET STATISTICS 0', place, one);
  END LOOP;
  SET LOCAL citus.enable_ddl_propagation = on;
END $$;

-- Tables that hold content or keys (in these columns) are divided by tenant into eight partitions, so that a purge rewrites one
-- partition and not the whole table (ERA-3). A partition has no policy: its rows are reached only through the table.
CREATE FUNCTION divide_by_tenant(place text, VARIADIC content text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  FOR n IN 0..7 LOOP
    EXECUTE format('CREATE TABLE %I PARTITION OF %I FOR VALUES WITH (MODULUS 8, REMAINDER %s)', place || '_' || n, place, n);
  END LOOP;
  PERFORM no_samples(place, VARIADIC content);
END $$;

-- A foreign key between two divided tables, from each partition to that of the same remainder (ADR 47): the tenant is the
-- first column of the key, so the row it points at can only be there. A check then plans and locks one partition, not eight.
CREATE FUNCTION key_between_partitions(place text, columns text, parent text, parent_columns text, action text DEFAULT '') RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
  FOR n IN 0..7 LOOP
    EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I FOREIGN KEY (%s) REFERENCES %I (%s) %s', place || '_' || n,
      place || '_' || replace(columns, ', ', '_') || '_fkey', columns, parent || '_' || n, parent_columns, action);
  END LOOP;
END $$;
