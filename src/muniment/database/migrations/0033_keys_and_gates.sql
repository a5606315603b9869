-- Fewer and smaller keys, and gates in less room (ADR 54).

-- Few proposals edit, reopen or audit anything: the others are not in these indexes any more.
ALTER TABLE proposals DROP CONSTRAINT proposals_tenant_id_edit_of_key;
ALTER TABLE proposals DROP CONSTRAINT proposals_tenant_id_reopens_key;
ALTER TABLE proposals DROP CONSTRAINT proposals_tenant_id_audits_key;
CREATE UNIQUE INDEX proposals_tenant_id_edit_of_key ON proposals (tenant_id, edit_of) WHERE edit_of IS NOT NULL;
CREATE UNIQUE INDEX proposals_tenant_id_reopens_key ON proposals (tenant_id, reopens) WHERE reopens IS NOT NULL;
CREATE UNIQUE INDEX proposals_tenant_id_audits_key ON proposals (tenant_id, audits) WHERE audits IS NOT NULL;

-- A new candidate has pairs of a gate and its reason. Those from before keep their objects, over which the log has digests.
DROP POLICY tenant_insert ON candidates;
CREATE POLICY tenant_insert ON candidates FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND live_capture_id = capture_id
    AND jsonb_path_query_array(gates, '$[*][0]') = required_gates());
