-- Indexes whose guarantee another one keeps are dropped (ADR 51).

-- Nearly every event lists rows: the primary key finds them as well.
DROP INDEX events_with_rows;

-- `tomb_seq` and `tomb_at` are null together (memory_scope_whole_tomb): the foreign key over both says what the one over the
-- number says.
ALTER TABLE memory_scope DROP CONSTRAINT memory_scope_tenant_id_memory_id_tomb_seq_fkey;
ALTER TABLE tombstones DROP CONSTRAINT tombstones_tenant_id_memory_id_seq_key;

-- A memory has proposal, approver, action and pack of its verdict by one foreign key instead of two.
-- The owner sees the rows meanwhile that it is checked against.
ALTER TABLE verdicts ADD CONSTRAINT verdicts_as_decided
  UNIQUE (tenant_id, verdict_id, proposal_id, by, by_kind, action, pack);
ALTER TABLE memories NO FORCE ROW LEVEL SECURITY;
ALTER TABLE verdicts NO FORCE ROW LEVEL SECURITY;
ALTER TABLE memories ADD CONSTRAINT memories_as_decided
  FOREIGN KEY (tenant_id, verdict_id, proposal_id, approver, approver_kind, verdict_action, pack)
  REFERENCES verdicts (tenant_id, verdict_id, proposal_id, by, by_kind, action, pack);
ALTER TABLE memories FORCE ROW LEVEL SECURITY;
ALTER TABLE verdicts FORCE ROW LEVEL SECURITY;
ALTER TABLE memories DROP CONSTRAINT memories_tenant_id_verdict_id_proposal_id_approver_approve_fkey;
ALTER TABLE memories DROP CONSTRAINT memories_under_the_pack_of_its_verdict;
ALTER TABLE verdicts DROP CONSTRAINT verdicts_tenant_id_verdict_id_proposal_id_by_by_kind_action_key;
ALTER TABLE verdicts DROP CONSTRAINT verdicts_tenant_id_verdict_id_pack_key;
