-- What policy promoted can be undone, and what that had superseded comes back from the same candidate (PRO-8); sessions end (TIR-6).

ALTER TABLE proposals ADD COLUMN restores text COLLATE "C";
ALTER TABLE proposals DROP CONSTRAINT proposals_tenant_id_candidate_id_key;
ALTER TABLE proposals ADD CONSTRAINT proposals_of_candidate UNIQUE NULLS NOT DISTINCT (tenant_id, candidate_id, restores);
CREATE UNIQUE INDEX proposals_tenant_id_restores_key ON proposals (tenant_id, restores) WHERE restores IS NOT NULL;
ALTER TABLE proposals ADD FOREIGN KEY (tenant_id, restores) REFERENCES retractions (tenant_id, memory_id);

ALTER TABLE verdicts DROP CONSTRAINT verdicts_action_check;
ALTER TABLE verdicts ADD CONSTRAINT verdicts_action_check CHECK (action IN ('approve', 'edit', 'reject', 'hold', 'block', 'duplicate',
  'withdraw', 'override', 'assign', 'release', 'lift', 'resolve', 'undo'));
ALTER TABLE verdicts DROP CONSTRAINT verdicts_by_kind_check;
ALTER TABLE verdicts ADD CONSTRAINT verdicts_by_kind_check CHECK (by_kind IN ('operator', 'system', 'end_user'));
ALTER TABLE verdicts ADD CONSTRAINT verdicts_undo CHECK (action <> 'undo' OR (by_kind <> 'system' AND memory_id IS NOT NULL));
ALTER TABLE verdicts ADD CONSTRAINT verdicts_of_end_user CHECK (by_kind <> 'end_user' OR action = 'undo');

ALTER TABLE retractions DROP CONSTRAINT retractions_reason_check;
ALTER TABLE retractions ADD CONSTRAINT retractions_reason_check CHECK (
  reason IN ('superseded', 'corrected', 'wrong', 'consent_revoked', 'erased', 'deprecated', 'undone'));
CREATE INDEX retractions_by_successor ON retractions (tenant_id, superseded_by) WHERE superseded_by IS NOT NULL;

CREATE TABLE session_ends (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  user_id    text COLLATE "C" NOT NULL,
  session_id text COLLATE "C" NOT NULL CHECK (session_id <> ''),
  seq        bigint NOT NULL,
  ended_at   timestamptz NOT NULL,
  txid       xid8 NOT NULL,
  ended_by   text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant_id, user_id, session_id),
  FOREIGN KEY (tenant_id, seq, ended_at, txid) REFERENCES ticks (tenant_id, visible_seq, at, txid)
);
CREATE INDEX session_ends_by_number ON session_ends (tenant_id, seq);
ALTER TABLE session_ends ENABLE ROW LEVEL SECURITY;
ALTER TABLE session_ends FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON session_ends FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_end ON session_ends FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = muniment.transaction_mark());
GRANT SELECT, INSERT ON session_ends TO muniment_writer;
GRANT SELECT ON session_ends TO muniment_recall, muniment_auditor;
