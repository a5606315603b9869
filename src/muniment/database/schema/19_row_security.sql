-- Every table with a tenant, and every partition, has forced row-level security: a row is seen and written only by a transaction
-- that has set muniment.tenant to its tenant, and by way of a policy; the owner is held to that too (ISO-1).

DO $$
DECLARE place regclass;
BEGIN
  FOR place IN SELECT attrelid FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
    WHERE relnamespace = 'muniment'::regnamespace AND relkind IN ('r', 'p') AND attname = 'tenant_id'
  LOOP
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', place);
  END LOOP;
END $$;

-- The helpers of the first file.
DROP FUNCTION rows_of_tenant, rows_of_transaction, add_writing_policy, add_policy, divide_by_tenant, key_between_partitions, no_samples;
