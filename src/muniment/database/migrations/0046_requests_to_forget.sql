-- A person's request to forget or to correct something is not confirmed as a fact (SUB-2, CAN-12), and ends when they have the
-- memory forgotten that they meant.

-- include migrations/helpers_until_0050.sql

DROP POLICY tenant_read ON memories;
DROP POLICY tenant_promote ON memories;
SELECT rows_of_transaction('memories', 'tenant_promote', mark => 'born_txid', writes => $$CASE WHEN approver_kind = 'end_user' THEN EXISTS (
    SELECT FROM proposals p WHERE p.tenant_id = memories.tenant_id AND p.proposal_id = memories.proposal_id AND p.action = 'promote')
    ELSE true END$$);

ALTER TABLE verdicts DROP CONSTRAINT verdicts_of_its_subject;
ALTER TABLE verdicts ADD CONSTRAINT verdicts_of_its_subject CHECK (
  by_kind <> 'end_user' OR action IN ('approve', 'reject', 'lift', 'hold', 'block', 'duplicate', 'undo', 'withdraw'));

DROP FUNCTION rows_of_tenant, rows_of_transaction, add_policy, divide_by_tenant, key_between_partitions, no_samples;
