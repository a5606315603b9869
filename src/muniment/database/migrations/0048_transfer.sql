-- Imports as a class of source of their own (IMP-2), consent documents with what they say of themselves (CON-8), and the restore of
-- one tenant from its backup (IMP-3).

-- include schema/00_helpers.sql

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

-- include schema/18_transfer.sql
ALTER TABLE tenant_restores ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;

DROP FUNCTION rows_of_tenant, rows_of_transaction, add_policy, divide_by_tenant, key_between_partitions, no_samples;
