-- Candidates, refusals, proposals and verdicts: each row written once.

-- `content` (value, text, evidence refs) is sealed under the key of `holder`.
-- The author is the capture's by foreign key while the capture is in the database (`live_capture_id`; archiving
-- sets it to null, a new row cannot). Each edit carries all editors before it and adds its own.
CREATE TABLE candidates (
  tenant_id       text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  candidate_id    text COLLATE "C" NOT NULL,
  seq             bigint NOT NULL,
  capture_id      text COLLATE "C" NOT NULL,
  live_capture_id text COLLATE "C",
  capture_seq     bigint NOT NULL,
  author          text COLLATE "C" NOT NULL,
  source          text NOT NULL CHECK (source IN ('agent', 'operator', 'system')),
  class           text NOT NULL CHECK (class IN ('evidence_link', 'preference', 'decision_outcome', 'correction', 'statement')),
  entity          text COLLATE "C",
  predicate       text COLLATE "C",
  classification  text COLLATE "C" NOT NULL,
  holder          text COLLATE "C" NOT NULL,
  subject         text COLLATE "C",
  user_id         text COLLATE "C",
  session_id      text COLLATE "C",
  workflow_id     text COLLATE "C",
  intent_id       text COLLATE "C",
  qualifiers      jsonb,
  raw_confidence  float8 NOT NULL CHECK (raw_confidence BETWEEN 0 AND 1),
  confidence      float8 NOT NULL CHECK (confidence BETWEEN 0 AND 1),
  trust           float8 NOT NULL CHECK (trust BETWEEN 0 AND 1),
  consent_id      text COLLATE "C",
  extractor       text COLLATE "C" NOT NULL,
  ordinal         int NOT NULL,
  edits           text COLLATE "C",
  editor          text COLLATE "C",
  prior_editors   text[] COLLATE "C",
  editors         text[] COLLATE "C" NOT NULL DEFAULT '{}',
  content         bytea NOT NULL,
  -- What a memory must share with its candidate, '' for none, in one column that a foreign key can hold.
  facts           text COLLATE "C" GENERATED ALWAYS AS (md5(
    capture_id || chr(31) || class || chr(31) || classification || chr(31) || holder || chr(31) || coalesce(subject, '') || chr(31)
    || coalesce(entity, '') || chr(31) || coalesce(predicate, '') || chr(31) || coalesce(user_id, '') || chr(31)
    || coalesce(session_id, '') || chr(31) || coalesce(workflow_id, '') || chr(31) || coalesce(intent_id, '') || chr(31)
    || coalesce(qualifiers::text, ''))) STORED,
  PRIMARY KEY (tenant_id, candidate_id),
  UNIQUE (tenant_id, capture_id, extractor, ordinal),
  UNIQUE (tenant_id, candidate_id, author, editors, facts),
  UNIQUE (tenant_id, candidate_id, editors),
  FOREIGN KEY (tenant_id, capture_seq, live_capture_id, author)
    REFERENCES captures (tenant_id, seq, capture_id, author) ON DELETE SET NULL (live_capture_id),
  FOREIGN KEY (tenant_id, edits, prior_editors) REFERENCES candidates (tenant_id, candidate_id, editors),
  CHECK ((edits IS NULL) = (editor IS NULL) AND (edits IS NULL) = (prior_editors IS NULL)),
  CHECK (cardinality(editors) <= 8),
  CHECK (editors = CASE WHEN edits IS NULL THEN '{}'::text[] ELSE prior_editors || editor END)
) PARTITION BY HASH (tenant_id);
ALTER TABLE candidates ENABLE ROW LEVEL SECURITY;
ALTER TABLE candidates FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON candidates FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_insert ON candidates FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND live_capture_id = capture_id);
GRANT SELECT, INSERT ON candidates TO muniment_writer;
GRANT SELECT ON candidates TO muniment_auditor;

-- What a gate refused: no content.
CREATE TABLE refusals (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  capture_id text COLLATE "C" NOT NULL,
  extractor  text COLLATE "C" NOT NULL,
  ordinal    int NOT NULL,
  seq        bigint NOT NULL,
  gate       text NOT NULL,
  reason     text NOT NULL,
  at         timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, capture_id, extractor, ordinal)
);
ALTER TABLE refusals ENABLE ROW LEVEL SECURITY;
ALTER TABLE refusals FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON refusals USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON refusals TO muniment_writer;
GRANT SELECT ON refusals TO muniment_auditor;

-- That a capture was consolidated: whoever inserts the row does the work, in the same transaction.
CREATE TABLE consolidations (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  capture_id text COLLATE "C" NOT NULL,
  at         timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, capture_id)
);
ALTER TABLE consolidations ENABLE ROW LEVEL SECURITY;
ALTER TABLE consolidations FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON consolidations USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON consolidations TO muniment_writer;
GRANT SELECT ON consolidations TO muniment_auditor;

-- How far a tenant's captures have been read. Numbers follow commits, so nothing can appear behind it.
CREATE TABLE cursors (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  name       text COLLATE "C" NOT NULL,
  seq        bigint NOT NULL,
  capture_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant_id, name)
);
ALTER TABLE cursors ENABLE ROW LEVEL SECURITY;
ALTER TABLE cursors FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON cursors USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT, UPDATE (seq, capture_id) ON cursors TO muniment_writer;
GRANT SELECT ON cursors TO muniment_auditor;

-- The review queue. A proposal's status is derived from its verdicts; the row itself never changes.
CREATE TABLE proposals (
  tenant_id      text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  proposal_id    text COLLATE "C" NOT NULL,
  seq            bigint NOT NULL,
  candidate_id   text COLLATE "C" NOT NULL,
  class          text NOT NULL,
  tier_derived   text NOT NULL CHECK (tier_derived IN ('working', 'episodic', 'semantic', 'durable')),
  priority       float8 NOT NULL CHECK (priority BETWEEN 0 AND 1),
  risk           text NOT NULL CHECK (risk IN ('low', 'high')),
  sensitive      boolean NOT NULL,
  consent_check  text NOT NULL CHECK (consent_check IN ('passed', 'not_required')),
  contradicts    text[] COLLATE "C" NOT NULL,
  auto_eligible  boolean NOT NULL,
  human_reasons  text[] NOT NULL,
  enqueued_at    timestamptz NOT NULL,
  due_at         timestamptz NOT NULL,
  pack           text COLLATE "C" NOT NULL,
  edit_of        text COLLATE "C",
  lock           smallint NOT NULL DEFAULT 0 CHECK (lock = 0),
  PRIMARY KEY (tenant_id, proposal_id),
  UNIQUE (tenant_id, candidate_id),
  UNIQUE (tenant_id, edit_of),
  UNIQUE (tenant_id, proposal_id, candidate_id, tier_derived, class, pack),
  FOREIGN KEY (tenant_id, candidate_id) REFERENCES candidates (tenant_id, candidate_id),
  FOREIGN KEY (tenant_id, edit_of) REFERENCES proposals (tenant_id, proposal_id)
);
CREATE INDEX proposals_by_due ON proposals (tenant_id, due_at, proposal_id);
ALTER TABLE proposals ENABLE ROW LEVEL SECURITY;
ALTER TABLE proposals FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON proposals USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT, UPDATE (lock) ON proposals TO muniment_writer;
GRANT SELECT ON proposals TO muniment_auditor;

-- Who decided what, when, and sealed (`remark`) why. One final verdict per proposal: of two operators at once one wins.
CREATE TABLE verdicts (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  verdict_id  text COLLATE "C" NOT NULL,
  proposal_id text COLLATE "C" NOT NULL,
  seq         bigint NOT NULL,
  action      text NOT NULL CHECK (action IN ('approve', 'edit', 'reject', 'hold', 'block', 'duplicate', 'withdraw', 'override', 'assign', 'release')),
  by          text COLLATE "C" NOT NULL,
  by_kind     text NOT NULL CHECK (by_kind IN ('operator', 'system')),
  at          timestamptz NOT NULL,
  pack        text COLLATE "C" NOT NULL,
  tier        text CHECK (tier IN ('working', 'episodic', 'semantic', 'durable')),
  priority    float8 CHECK (priority BETWEEN 0 AND 1),
  assignee    text COLLATE "C",
  memory_id   text COLLATE "C",
  holder      text COLLATE "C" NOT NULL,
  remark      bytea,
  txid        xid8 NOT NULL,
  PRIMARY KEY (tenant_id, verdict_id),
  UNIQUE (tenant_id, verdict_id, proposal_id, by, by_kind, action),
  FOREIGN KEY (tenant_id, proposal_id) REFERENCES proposals (tenant_id, proposal_id),
  FOREIGN KEY (tenant_id, seq, at, txid) REFERENCES ticks (tenant_id, seq, at, txid),
  CHECK ((by = 'auto') = (by_kind = 'system'))
);
CREATE UNIQUE INDEX verdicts_one_final ON verdicts (tenant_id, proposal_id)
  WHERE action IN ('approve', 'edit', 'reject', 'block', 'duplicate', 'withdraw');
CREATE INDEX verdicts_by_proposal ON verdicts (tenant_id, proposal_id, seq);
ALTER TABLE verdicts ENABLE ROW LEVEL SECURITY;
ALTER TABLE verdicts FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON verdicts FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_decide ON verdicts FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = pg_current_xact_id());
GRANT SELECT, INSERT ON verdicts TO muniment_writer;
GRANT SELECT ON verdicts TO muniment_auditor;
