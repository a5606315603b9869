-- Fewer and smaller keys, and gates in less room (ADR 54).

-- Few proposals edit, reopen or audit anything: the others are not in these indexes any more.
ALTER TABLE proposals DROP CONSTRAINT proposals_tenant_id_edit_of_key;
ALTER TABLE proposals DROP CONSTRAINT proposals_tenant_id_reopens_key;
ALTER TABLE proposals DROP CONSTRAINT proposals_tenant_id_audits_key;
CREATE UNIQUE INDEX proposals_tenant_id_edit_of_key ON proposals (tenant_id, edit_of) WHERE edit_of IS NOT NULL;
CREATE UNIQUE INDEX proposals_tenant_id_reopens_key ON proposals (tenant_id, reopens) WHERE reopens IS NOT NULL;
CREATE UNIQUE INDEX proposals_tenant_id_audits_key ON proposals (tenant_id, audits) WHERE audits IS NOT NULL;

-- A memory points at its verdict once, with everything that it must share with it.
ALTER TABLE memories DROP CONSTRAINT memories_under_the_pack_of_its_verdict;
ALTER TABLE memories DROP CONSTRAINT memories_tenant_id_verdict_id_proposal_id_approver_approve_fkey;
ALTER TABLE verdicts DROP CONSTRAINT verdicts_tenant_id_verdict_id_pack_key;
ALTER TABLE verdicts DROP CONSTRAINT verdicts_tenant_id_verdict_id_proposal_id_by_by_kind_action_key;
ALTER TABLE verdicts ADD UNIQUE (tenant_id, verdict_id, proposal_id, by, by_kind, action, pack);
-- The owner sees the rows meanwhile that the key is checked against.
ALTER TABLE memories NO FORCE ROW LEVEL SECURITY;
ALTER TABLE verdicts NO FORCE ROW LEVEL SECURITY;
ALTER TABLE memories ADD CONSTRAINT memories_of_its_verdict
  FOREIGN KEY (tenant_id, verdict_id, proposal_id, approver, approver_kind, verdict_action, pack)
  REFERENCES verdicts (tenant_id, verdict_id, proposal_id, by, by_kind, action, pack);
ALTER TABLE memories FORCE ROW LEVEL SECURITY;
ALTER TABLE verdicts FORCE ROW LEVEL SECURITY;

-- A new candidate has pairs of a gate and its reason. Those from before keep their objects, over which the log has digests.
DROP POLICY tenant_insert ON candidates;
CREATE POLICY tenant_insert ON candidates FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND live_capture_id = capture_id
    AND jsonb_path_query_array(gates, '$[*][0]') = required_gates());
