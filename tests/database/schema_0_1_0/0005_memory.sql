-- Promoted memory: immutable metadata, sealed bodies apart, a narrow table for recall's filters, retractions.

-- Four eyes stand in the schema: author and editors are the candidate's, approver and action the verdict's, the
-- derived tier and pack the proposal's, label, subject and scope the candidate's (`facts`), `sensitive` the pack's word
-- for the label, all by foreign key; the check then compares them.
-- '' stands for "none" in scope columns, so that foreign keys over them are never skipped for a null.
CREATE TABLE memories (
  tenant_id        text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  memory_id        text COLLATE "C" NOT NULL,
  candidate_id     text COLLATE "C" NOT NULL,
  proposal_id      text COLLATE "C" NOT NULL,
  verdict_id       text COLLATE "C" NOT NULL,
  verdict_action   text NOT NULL DEFAULT 'approve' CHECK (verdict_action = 'approve'),
  capture_id       text COLLATE "C" NOT NULL,
  born_seq         bigint NOT NULL,
  promoted_at      timestamptz NOT NULL,
  born_txid        xid8 NOT NULL,
  expires_at       timestamptz NOT NULL,
  class            text NOT NULL,
  entity           text COLLATE "C",
  predicate        text COLLATE "C",
  classification   text COLLATE "C" NOT NULL,
  sensitive        boolean NOT NULL,
  tier             text NOT NULL CHECK (tier IN ('working', 'episodic', 'semantic', 'durable')),
  tier_derived     text NOT NULL,
  priority         float8 NOT NULL CHECK (priority BETWEEN 0 AND 1),
  confidence       float8 NOT NULL CHECK (confidence BETWEEN 0 AND 1),
  trust            float8 NOT NULL CHECK (trust BETWEEN 0 AND 1),
  holder           text COLLATE "C" NOT NULL,
  subject          text COLLATE "C",
  user_id          text COLLATE "C" NOT NULL,
  session_id       text COLLATE "C" NOT NULL,
  workflow_id      text COLLATE "C" NOT NULL,
  intent_id        text COLLATE "C" NOT NULL,
  qualifiers       jsonb,
  decision_key     text COLLATE "C",
  consent_id       text COLLATE "C",
  consent_root     text COLLATE "C",
  pack             text COLLATE "C" NOT NULL,
  ontology_version text COLLATE "C" NOT NULL,
  kind             text NOT NULL,
  origin           text COLLATE "C",
  source           text NOT NULL,
  author           text COLLATE "C" NOT NULL,
  editors          text[] COLLATE "C" NOT NULL,
  approver         text COLLATE "C" NOT NULL,
  approver_kind    text NOT NULL,
  captured_at      timestamptz NOT NULL,
  observed_at      timestamptz NOT NULL,
  filters          text COLLATE "C" GENERATED ALWAYS AS (md5(
    user_id || chr(31) || tier || chr(31) || class || chr(31) || classification || chr(31) || session_id || chr(31)
    || workflow_id || chr(31) || intent_id || chr(31) || coalesce(entity, '') || chr(31) || coalesce(predicate, '') || chr(31)
    || coalesce(consent_root, '') || chr(31) || coalesce(qualifiers::text, '') || chr(31) || born_seq::text || chr(31)
    || extract(epoch FROM promoted_at AT TIME ZONE 'UTC')::text || chr(31) || extract(epoch FROM expires_at AT TIME ZONE 'UTC')::text || chr(31)
    || priority::numeric::text || chr(31) || confidence::numeric::text)) STORED,
  facts            text COLLATE "C" GENERATED ALWAYS AS (md5(
    capture_id || chr(31) || class || chr(31) || classification || chr(31) || holder || chr(31) || coalesce(subject, '') || chr(31)
    || coalesce(entity, '') || chr(31) || coalesce(predicate, '') || chr(31) || user_id || chr(31)
    || session_id || chr(31) || workflow_id || chr(31) || intent_id || chr(31)
    || coalesce(qualifiers::text, ''))) STORED,
  PRIMARY KEY (tenant_id, memory_id),
  UNIQUE (tenant_id, proposal_id),
  UNIQUE (tenant_id, memory_id, filters),
  FOREIGN KEY (tenant_id, candidate_id, author, editors, facts)
    REFERENCES candidates (tenant_id, candidate_id, author, editors, facts),
  FOREIGN KEY (tenant_id, proposal_id, candidate_id, tier_derived, class, pack)
    REFERENCES proposals (tenant_id, proposal_id, candidate_id, tier_derived, class, pack),
  FOREIGN KEY (tenant_id, verdict_id, proposal_id, approver, approver_kind, verdict_action)
    REFERENCES verdicts (tenant_id, verdict_id, proposal_id, by, by_kind, action),
  FOREIGN KEY (tenant_id, pack, classification, sensitive) REFERENCES pack_labels (tenant_id, pack, label, sensitive),
  FOREIGN KEY (tenant_id, consent_id, consent_root) REFERENCES consents (tenant_id, consent_id, root_id),
  FOREIGN KEY (tenant_id, consent_id, subject) REFERENCES consents (tenant_id, consent_id, subject),
  FOREIGN KEY (tenant_id, born_seq, promoted_at, born_txid) REFERENCES ticks (tenant_id, seq, at, txid),
  CONSTRAINT memories_four_eyes CHECK (
    NOT (sensitive OR tier = 'durable' OR tier_derived = 'durable')
    OR (approver_kind = 'operator' AND approver <> author AND NOT approver = ANY (editors))),
  CONSTRAINT memories_consent CHECK (
    NOT sensitive OR class = 'evidence_link' OR (consent_id IS NOT NULL AND consent_root IS NOT NULL AND subject IS NOT NULL)),
  CHECK ((consent_id IS NULL) = (consent_root IS NULL)),
  CHECK (tier <> 'working' OR session_id <> '')
);
CREATE INDEX memories_by_key ON memories (tenant_id, entity, predicate) WHERE entity IS NOT NULL;
ALTER TABLE memories ENABLE ROW LEVEL SECURITY;
ALTER TABLE memories FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON memories FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_promote ON memories FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND born_txid = pg_current_xact_id());
GRANT SELECT, INSERT ON memories TO muniment_writer;
GRANT SELECT ON memories TO muniment_recall, muniment_auditor;

-- Text, value and evidence refs, sealed under the key of the memory's holder.
CREATE TABLE memory_bodies (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  memory_id text COLLATE "C" NOT NULL,
  content   bytea NOT NULL,
  PRIMARY KEY (tenant_id, memory_id),
  FOREIGN KEY (tenant_id, memory_id) REFERENCES memories (tenant_id, memory_id)
) PARTITION BY HASH (tenant_id);
ALTER TABLE memory_bodies ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_bodies FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON memory_bodies USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON memory_bodies TO muniment_writer;
GRANT SELECT ON memory_bodies TO muniment_recall, muniment_auditor;

-- That a memory was withdrawn: once, by the primary key; now, by the tick of its own transaction.
CREATE TABLE retractions (
  tenant_id     text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  memory_id     text COLLATE "C" NOT NULL,
  seq           bigint NOT NULL,
  retracted_at  timestamptz NOT NULL,
  txid          xid8 NOT NULL,
  retracted_by  text COLLATE "C" NOT NULL,
  reason        text NOT NULL CHECK (reason IN ('superseded', 'corrected', 'wrong', 'consent_revoked', 'erased', 'deprecated')),
  superseded_by text COLLATE "C",
  PRIMARY KEY (tenant_id, memory_id),
  UNIQUE (tenant_id, memory_id, seq),
  FOREIGN KEY (tenant_id, memory_id) REFERENCES memories (tenant_id, memory_id),
  FOREIGN KEY (tenant_id, superseded_by) REFERENCES memories (tenant_id, memory_id),
  FOREIGN KEY (tenant_id, seq, retracted_at, txid) REFERENCES ticks (tenant_id, seq, at, txid),
  CHECK (superseded_by IS NULL OR reason IN ('superseded', 'corrected')),
  CHECK (superseded_by <> memory_id)
);
ALTER TABLE retractions ENABLE ROW LEVEL SECURITY;
ALTER TABLE retractions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON retractions FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_retract ON retractions FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = pg_current_xact_id());
GRANT SELECT, INSERT ON retractions TO muniment_writer;
GRANT SELECT ON retractions TO muniment_recall, muniment_auditor;

-- What recall filters by, narrow. `filters` binds every one of these columns to the memory's own by foreign key.
-- dead_seq goes once from null to the number of the memory's retraction.
CREATE TABLE memory_scope (
  tenant_id      text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  user_id        text COLLATE "C" NOT NULL,
  memory_id      text COLLATE "C" NOT NULL,
  born_seq       bigint NOT NULL,
  dead_seq       bigint,
  promoted_at    timestamptz NOT NULL,
  expires_at     timestamptz NOT NULL,
  priority       float8 NOT NULL,
  confidence     float8 NOT NULL,
  tier           text NOT NULL,
  class          text NOT NULL,
  classification text COLLATE "C" NOT NULL,
  session_id     text COLLATE "C" NOT NULL,
  workflow_id    text COLLATE "C" NOT NULL,
  intent_id      text COLLATE "C" NOT NULL,
  entity         text COLLATE "C",
  predicate      text COLLATE "C",
  consent_root   text COLLATE "C",
  qualifiers     jsonb,
  filters        text COLLATE "C" GENERATED ALWAYS AS (md5(
    user_id || chr(31) || tier || chr(31) || class || chr(31) || classification || chr(31) || session_id || chr(31)
    || workflow_id || chr(31) || intent_id || chr(31) || coalesce(entity, '') || chr(31) || coalesce(predicate, '') || chr(31)
    || coalesce(consent_root, '') || chr(31) || coalesce(qualifiers::text, '') || chr(31) || born_seq::text || chr(31)
    || extract(epoch FROM promoted_at AT TIME ZONE 'UTC')::text || chr(31) || extract(epoch FROM expires_at AT TIME ZONE 'UTC')::text || chr(31)
    || priority::numeric::text || chr(31) || confidence::numeric::text)) STORED,
  PRIMARY KEY (tenant_id, memory_id),
  UNIQUE (tenant_id, memory_id, dead_seq),
  FOREIGN KEY (tenant_id, memory_id, filters) REFERENCES memories (tenant_id, memory_id, filters),
  FOREIGN KEY (tenant_id, memory_id, dead_seq) REFERENCES retractions (tenant_id, memory_id, seq)
);
-- And the other way: at its commit a retraction has buried what it retracts.
ALTER TABLE retractions ADD FOREIGN KEY (tenant_id, memory_id, seq)
  REFERENCES memory_scope (tenant_id, memory_id, dead_seq) DEFERRABLE INITIALLY DEFERRED;
CREATE INDEX memory_scope_by_user ON memory_scope (tenant_id, user_id, memory_id);
ALTER TABLE memory_scope ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_scope FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON memory_scope FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_insert ON memory_scope FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND dead_seq IS NULL);
CREATE POLICY die_once ON memory_scope FOR UPDATE
  USING (tenant_id = current_setting('muniment.tenant', true) AND dead_seq IS NULL)
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND dead_seq IS NOT NULL);
GRANT SELECT, INSERT, UPDATE (dead_seq) ON memory_scope TO muniment_writer;
GRANT SELECT ON memory_scope TO muniment_recall, muniment_auditor;

-- Rows to lock: promotions of one key, or of texts in one scope, pass one after the other.
CREATE TABLE promotion_locks (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  key       text COLLATE "C" NOT NULL,
  lock      smallint NOT NULL DEFAULT 0 CHECK (lock = 0),
  PRIMARY KEY (tenant_id, key)
);
ALTER TABLE promotion_locks ENABLE ROW LEVEL SECURITY;
ALTER TABLE promotion_locks FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON promotion_locks USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT, UPDATE (lock) ON promotion_locks TO muniment_writer;

-- Two live memories that say different things on one key. Open while both stand.
CREATE TABLE contradictions (
  tenant_id        text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  contradiction_id text COLLATE "C" NOT NULL,
  seq              bigint NOT NULL,
  opened_at        timestamptz NOT NULL,
  entity           text COLLATE "C",
  predicate        text COLLATE "C",
  existing         text COLLATE "C" NOT NULL,
  incoming         text COLLATE "C" NOT NULL,
  reason           text NOT NULL,
  txid             xid8 NOT NULL,
  PRIMARY KEY (tenant_id, contradiction_id),
  UNIQUE (tenant_id, existing, incoming),
  FOREIGN KEY (tenant_id, existing) REFERENCES memories (tenant_id, memory_id),
  FOREIGN KEY (tenant_id, incoming) REFERENCES memories (tenant_id, memory_id),
  FOREIGN KEY (tenant_id, seq, opened_at, txid) REFERENCES ticks (tenant_id, seq, at, txid),
  CHECK (existing <> incoming)
);
CREATE INDEX contradictions_by_incoming ON contradictions (tenant_id, incoming);
ALTER TABLE contradictions ENABLE ROW LEVEL SECURITY;
ALTER TABLE contradictions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON contradictions FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_mark ON contradictions FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = pg_current_xact_id());
GRANT SELECT, INSERT ON contradictions TO muniment_writer;
GRANT SELECT ON contradictions TO muniment_recall, muniment_auditor;

-- Every recall: what was asked, under which pack, what came back. Written by the reader, never changed.
CREATE TABLE recalls (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  recall_id  text COLLATE "C" NOT NULL,
  at         timestamptz NOT NULL,
  seq        bigint NOT NULL,
  agent_id   text COLLATE "C" NOT NULL,
  run_id     text COLLATE "C" NOT NULL,
  user_id    text COLLATE "C",
  pack       text COLLATE "C" NOT NULL,
  embedder   text COLLATE "C",
  request    jsonb NOT NULL,
  result_ids text[] COLLATE "C" NOT NULL,
  omitted    int NOT NULL,
  PRIMARY KEY (tenant_id, recall_id)
);
ALTER TABLE recalls ENABLE ROW LEVEL SECURITY;
ALTER TABLE recalls FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON recalls USING (tenant_id = current_setting('muniment.tenant', true));
GRANT INSERT ON recalls TO muniment_recall;
GRANT SELECT (tenant_id, seq) ON recalls TO muniment_recall;
GRANT SELECT ON recalls TO muniment_auditor;
