-- Imports as a class of source of their own (IMP-2), consent documents with what they say of themselves (CON-8), and the restore of
-- one tenant from its backup (IMP-3).

-- include migrations/helpers_until_0050.sql

ALTER TABLE captures DROP CONSTRAINT captures_vouched;
ALTER TABLE captures ADD CONSTRAINT captures_vouched CHECK (
    vouched IS NULL
    OR (vouched = 'user' AND (kind = 'message' OR source = 'end_user') AND (origin IS NULL OR NOT starts_with(origin, 'tool:')))
    OR (origin IS NOT NULL AND vouched = origin AND starts_with(origin, 'tool:') AND length(origin) > 5)
    OR (origin IS NOT NULL AND vouched = origin AND starts_with(origin, 'import:') AND length(origin) > 7 AND source = 'operator'));

ALTER TABLE consents ADD COLUMN stated_at timestamptz;
ALTER TABLE consents ADD COLUMN stated_auditor text COLLATE "C";
ALTER TABLE consents ADD CONSTRAINT consents_stated CHECK (stated_at <= captured_at AND (stated_auditor IS NULL OR stated_at IS NOT NULL));

ALTER TABLE candidates ALTER CONSTRAINT candidates_tenant_id_corrects_fkey DEFERRABLE;
ALTER TABLE proposals ALTER CONSTRAINT proposals_tenant_id_audits_fkey DEFERRABLE;
ALTER TABLE proposals ALTER CONSTRAINT proposals_tenant_id_restores_fkey DEFERRABLE;

-- Bringing a tenant in from a backup of it (IMP-3): only where there is no such tenant, by the owner of the tables, in one
-- transaction.

-- That a tenant was restored, once for each backup that it came from: by whom, and a digest of the file.
CREATE TABLE tenant_restores (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  backup_id   text COLLATE "C" NOT NULL CHECK (backup_id <> ''),
  restored_at timestamptz NOT NULL,
  restored_by text COLLATE "C" NOT NULL CHECK (restored_by <> ''),
  digest      bytea NOT NULL CHECK (length(digest) = 32),
  txid        xid8 NOT NULL,
  PRIMARY KEY (tenant_id, backup_id)
);

-- Whether this very transaction restores its tenant.
CREATE FUNCTION is_restoring() RETURNS boolean LANGUAGE sql STABLE SECURITY DEFINER SET search_path = muniment, pg_temp
RETURN EXISTS (SELECT FROM muniment.tenant_restores
  WHERE tenant_id = current_setting('muniment.tenant', true) AND txid = muniment.transaction_mark());
REVOKE ALL ON FUNCTION is_restoring() FROM PUBLIC;

-- Which rows a transaction sees and writes. A restore begins before anything of the tenant is there.
SELECT add_policy('tenant_restores', 'tenant_read', 'SELECT');
SELECT add_policy('tenant_restores', 'begin', 'INSERT', login => 'owner',
  writes => 'txid = muniment.transaction_mark() AND NOT EXISTS (SELECT FROM muniment.tenant_clock c WHERE c.tenant_id = tenant_restores.tenant_id)');

-- Whoever owns the tables copies a tenant, one at a time, and with it that there is one.
SELECT add_policy('tenants', 'copied', 'SELECT', login => 'owner');

-- Who may do what.
GRANT SELECT ON tenant_restores TO muniment_auditor;

-- While its tenant is restored the owner writes rows as they were, with the numbers and transactions of another server.
DO $$
DECLARE place text;
BEGIN
  FOR place IN SELECT relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE relnamespace = 'muniment'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND attname = 'tenant_id'
    ORDER BY relname
  LOOP
    PERFORM add_policy(place, 'restore', 'INSERT', writes => '(SELECT muniment.is_restoring())', login => 'owner');
  END LOOP;
END $$;
ALTER TABLE tenant_restores ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

DROP FUNCTION rows_of_tenant, rows_of_transaction, add_policy, divide_by_tenant, key_between_partitions, no_samples;
