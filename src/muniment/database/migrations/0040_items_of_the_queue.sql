-- Open proposals that say the same are one item, found by their fingerprint (REV-11); those that contradict each other name each
-- other (REV-12). Proposals from before have no fingerprint: each stays an item of its own.

CREATE INDEX candidates_by_fingerprint ON candidates (tenant_id, fingerprint) WHERE fingerprint IS NOT NULL;

CREATE TABLE waiting_proposals (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  proposal_id text COLLATE "C" NOT NULL,
  holder      text COLLATE "C" NOT NULL,
  seq         bigint NOT NULL,
  PRIMARY KEY (tenant_id, proposal_id)
);
CREATE INDEX waiting_proposals_by_holder ON waiting_proposals (tenant_id, holder, seq);
-- What waits now. The owner sees the rows meanwhile.
ALTER TABLE proposals NO FORCE ROW LEVEL SECURITY;
ALTER TABLE candidates NO FORCE ROW LEVEL SECURITY;
ALTER TABLE verdicts NO FORCE ROW LEVEL SECURITY;
INSERT INTO waiting_proposals (tenant_id, proposal_id, holder, seq)
SELECT p.tenant_id, p.proposal_id, c.holder, p.seq
FROM proposals p
JOIN candidates c ON c.tenant_id = p.tenant_id AND c.candidate_id = p.candidate_id
WHERE p.audits IS NULL AND NOT EXISTS (SELECT FROM verdicts d WHERE d.tenant_id = p.tenant_id AND d.proposal_id = p.proposal_id
  AND d.action IN ('approve', 'edit', 'reject', 'block', 'duplicate', 'withdraw'));
ALTER TABLE proposals FORCE ROW LEVEL SECURITY;
ALTER TABLE candidates FORCE ROW LEVEL SECURITY;
ALTER TABLE verdicts FORCE ROW LEVEL SECURITY;
ALTER TABLE waiting_proposals ENABLE ROW LEVEL SECURITY;
ALTER TABLE waiting_proposals FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON waiting_proposals USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT, DELETE ON waiting_proposals TO muniment_writer;
GRANT SELECT (tenant_id, proposal_id), DELETE ON waiting_proposals TO muniment_privacy;

CREATE TABLE proposal_contradictions (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  proposal_id text COLLATE "C" NOT NULL,
  contradicts text COLLATE "C" NOT NULL,
  seq         bigint NOT NULL,
  found_at    timestamptz NOT NULL,
  txid        xid8 NOT NULL,
  reason      text NOT NULL,
  PRIMARY KEY (tenant_id, proposal_id, contradicts),
  FOREIGN KEY (tenant_id, proposal_id) REFERENCES proposals (tenant_id, proposal_id),
  FOREIGN KEY (tenant_id, contradicts) REFERENCES proposals (tenant_id, proposal_id),
  FOREIGN KEY (tenant_id, seq, found_at, txid) REFERENCES ticks (tenant_id, seq, at, txid),
  CHECK (proposal_id <> contradicts)
);
CREATE INDEX proposal_contradictions_by_earlier ON proposal_contradictions (tenant_id, contradicts);
ALTER TABLE proposal_contradictions ENABLE ROW LEVEL SECURITY;
ALTER TABLE proposal_contradictions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON proposal_contradictions FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_find ON proposal_contradictions FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = muniment.transaction_mark());
GRANT SELECT, INSERT ON proposal_contradictions TO muniment_writer;
GRANT SELECT ON waiting_proposals, proposal_contradictions TO muniment_auditor;
