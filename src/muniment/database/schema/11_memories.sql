-- Promoted memory: immutable metadata, sealed bodies apart, a narrow table for recall's filters, how a memory ends.

-- Four eyes stand in the schema (REV-4): author and editors are the candidate's, approver and action the verdict's, the derived
-- tier and what was asked for (`proposal_action`) the proposal's, the pack the verdict's, label, subject, scope and the memory
-- that it corrects the candidate's (`facts`), `sensitive` what the pack says of the label, all by foreign key; the checks then compare them. People are compared by the look of their names (REV-15), and
-- whoever said a thing (`vouched`) counts as its author. '' stands for "none" in scope columns, so that foreign keys over them
-- are never skipped for a null.
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
  vouched          text COLLATE "C",
  valid_from       timestamptz,
  valid_until      timestamptz,
  third_party      boolean NOT NULL DEFAULT false,
  -- What `memory_scope` must share with its memory, in one column that a foreign key can hold; the same expression is there.
  filters          text COLLATE "C" GENERATED ALWAYS AS (md5(
    user_id || chr(31) || tier || chr(31) || class || chr(31) || classification || chr(31) || session_id || chr(31)
    || workflow_id || chr(31) || intent_id || chr(31) || coalesce(entity, '') || chr(31) || coalesce(predicate, '') || chr(31)
    || coalesce(consent_root, '') || chr(31) || coalesce(qualifiers::text, '') || chr(31) || born_seq::text || chr(31)
    || extract(epoch FROM promoted_at AT TIME ZONE 'UTC')::text || chr(31) || extract(epoch FROM expires_at AT TIME ZONE 'UTC')::text || chr(31)
    || priority::numeric::text || chr(31) || confidence::numeric::text || chr(31)
    || coalesce(extract(epoch FROM valid_from AT TIME ZONE 'UTC')::text, '') || chr(31)
    || coalesce(extract(epoch FROM valid_until AT TIME ZONE 'UTC')::text, ''))) STORED,
  confirm_floor    float8,
  corrects         text COLLATE "C",
  proposal_action  text NOT NULL,
  -- What it must share with its candidate.
  facts            text COLLATE "C" GENERATED ALWAYS AS (md5(
    capture_id || chr(31) || class || chr(31) || classification || chr(31) || holder || chr(31) || coalesce(subject, '') || chr(31)
    || coalesce(entity, '') || chr(31) || coalesce(predicate, '') || chr(31) || user_id || chr(31)
    || session_id || chr(31) || workflow_id || chr(31) || intent_id || chr(31)
    || coalesce(qualifiers::text, '') || chr(31) || coalesce(extract(epoch FROM valid_from AT TIME ZONE 'UTC')::text, '') || chr(31)
    || coalesce(extract(epoch FROM valid_until AT TIME ZONE 'UTC')::text, '') || chr(31) || third_party::text || chr(31)
    || coalesce(corrects, ''))) STORED,
  PRIMARY KEY (tenant_id, memory_id),
  UNIQUE (tenant_id, proposal_id),
  UNIQUE (tenant_id, memory_id, filters),
  FOREIGN KEY (tenant_id, candidate_id, author, editors, facts)
    REFERENCES candidates (tenant_id, candidate_id, author, editors, facts),
  CONSTRAINT memories_of_its_proposal FOREIGN KEY (tenant_id, proposal_id, candidate_id, tier_derived, class, proposal_action)
    REFERENCES proposals (tenant_id, proposal_id, candidate_id, tier_derived, class, action),
  -- A memory is decided under the pack of its verdict, which is the one in force then (PAC-9); the proposal may be older.
  CONSTRAINT memories_as_decided FOREIGN KEY (tenant_id, verdict_id, proposal_id, approver, approver_kind, verdict_action, pack)
    REFERENCES verdicts (tenant_id, verdict_id, proposal_id, by, by_kind, action, pack),
  FOREIGN KEY (tenant_id, pack, classification, sensitive) REFERENCES pack_labels (tenant_id, pack, label, sensitive),
  FOREIGN KEY (tenant_id, consent_id, consent_root) REFERENCES consents (tenant_id, consent_id, root_id),
  FOREIGN KEY (tenant_id, consent_id, subject) REFERENCES consents (tenant_id, consent_id, subject),
  FOREIGN KEY (tenant_id, born_seq, promoted_at, born_txid) REFERENCES ticks (tenant_id, visible_seq, at, txid),
  CONSTRAINT memories_four_eyes CHECK (
    NOT (sensitive OR tier = 'durable' OR tier_derived = 'durable') OR approver_kind = 'end_user'
    OR (approver_kind = 'operator' AND approver <> author AND NOT approver = ANY (editors))),
  CONSTRAINT memories_two_people CHECK (
    NOT (sensitive OR tier = 'durable' OR tier_derived = 'durable') OR approver_kind = 'end_user'
    OR NOT muniment.is_among(approver, array_prepend(author, editors))),
  CONSTRAINT memories_not_by_who_said_it CHECK (
    NOT (sensitive OR tier = 'durable' OR tier_derived = 'durable') OR approver_kind = 'end_user'
    OR vouched IS DISTINCT FROM 'user' OR NOT muniment.is_among(approver, ARRAY[user_id])),
  -- The one exception to four eyes: an end user confirms a fact about themselves, for their own runs alone (SUB-2).
  -- `confirm_floor` is the trust that the pack asks for, by foreign key; there is none where the pack lets nobody confirm.
  CONSTRAINT memories_confirmed CHECK (
    (approver_kind = 'end_user') = (confirm_floor IS NOT NULL)
    AND (approver_kind <> 'end_user' OR (
      -- It is a fact to keep: a request to forget or to correct something is not theirs to confirm (CAN-12).
      proposal_action = 'promote' AND corrects IS NULL
      AND class IN ('preference', 'statement') AND tier <> 'durable' AND tier_derived <> 'durable' AND NOT third_party
      AND user_id = approver AND trust >= confirm_floor
      AND (subject IS NULL OR split_part(subject, ':', 2) = user_id) AND (entity IS NULL OR split_part(entity, ':', 2) = user_id)))),
  CONSTRAINT memories_confirm_floor FOREIGN KEY (tenant_id, pack, confirm_floor) REFERENCES pack_confirmations (tenant_id, pack, trust_floor),
  CONSTRAINT memories_consent CHECK (
    NOT sensitive OR class = 'evidence_link' OR (consent_id IS NOT NULL AND consent_root IS NOT NULL AND subject IS NOT NULL)),
  -- What is said about somebody else in a special category is promoted by a second person, for its speaker's own runs, with the
  -- consent of whom it is about (CAN-16).
  CONSTRAINT memories_third_party CHECK (NOT third_party OR (
    approver_kind = 'operator' AND user_id <> '' AND consent_id IS NOT NULL
    AND NOT muniment.is_among(approver, array_prepend(author, editors))
    AND (vouched IS DISTINCT FROM 'user' OR NOT muniment.is_among(approver, ARRAY[user_id])))),
  CONSTRAINT memories_valid CHECK (valid_from < valid_until),
  CHECK ((consent_id IS NULL) = (consent_root IS NULL)),
  CHECK (tier <> 'working' OR session_id <> '')
);
CREATE INDEX memories_by_key ON memories (tenant_id, entity, predicate) WHERE entity IS NOT NULL;
-- What is of one person: of their own runs, or about them; as their entity, by the key.
CREATE INDEX memories_by_user ON memories (tenant_id, user_id) WHERE user_id <> '';
CREATE INDEX memories_by_subject ON memories (tenant_id, subject) WHERE subject IS NOT NULL;
CREATE INDEX memories_by_decision ON memories (tenant_id, decision_key) WHERE decision_key IS NOT NULL;
-- In the order of their promotion: all of a tenant, with what promotions are counted by, and those that policy promoted alone.
CREATE INDEX memories_by_number ON memories (tenant_id, born_seq, memory_id) INCLUDE (tier, class, approver_kind);
CREATE INDEX memories_by_policy ON memories (tenant_id, born_seq, memory_id) WHERE approver_kind = 'system';
CREATE INDEX memories_of_corrections ON memories (tenant_id, born_seq, memory_id) WHERE class = 'correction';

-- Candidates and proposals point at memories too.
-- Deferrable, as these lead in a circle: a restore of the tenant has them checked at its end (IMP-3).
ALTER TABLE candidates ADD FOREIGN KEY (tenant_id, corrects) REFERENCES memories (tenant_id, memory_id) DEFERRABLE;
ALTER TABLE proposals ADD FOREIGN KEY (tenant_id, audits) REFERENCES memories (tenant_id, memory_id) DEFERRABLE;

-- Text, value and evidence refs, sealed under the key of the memory's holder.
CREATE TABLE memory_bodies (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  memory_id text COLLATE "C" NOT NULL,
  content   bytea NOT NULL,
  PRIMARY KEY (tenant_id, memory_id),
  FOREIGN KEY (tenant_id, memory_id) REFERENCES memories (tenant_id, memory_id)
) PARTITION BY HASH (tenant_id);
SELECT divide_by_tenant('memory_bodies', 'content');

-- That a memory was withdrawn (PRO-6): once, by the primary key; now, by the tick of its own transaction. The jobs and the
-- officer withdraw for their own reasons alone.
CREATE TABLE retractions (
  tenant_id     text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  memory_id     text COLLATE "C" NOT NULL,
  seq           bigint NOT NULL,
  retracted_at  timestamptz NOT NULL,
  txid          xid8 NOT NULL,
  retracted_by  text COLLATE "C" NOT NULL,
  reason        text NOT NULL CHECK (reason IN ('superseded', 'corrected', 'wrong', 'consent_revoked', 'erased', 'deprecated',
    'undone', 'forgotten')),
  superseded_by text COLLATE "C",
  forgotten_by  text COLLATE "C" GENERATED ALWAYS AS (CASE WHEN reason = 'forgotten' THEN retracted_by END) STORED,
  PRIMARY KEY (tenant_id, memory_id),
  UNIQUE (tenant_id, memory_id, seq),
  FOREIGN KEY (tenant_id, memory_id) REFERENCES memories (tenant_id, memory_id),
  FOREIGN KEY (tenant_id, superseded_by) REFERENCES memories (tenant_id, memory_id),
  FOREIGN KEY (tenant_id, seq, retracted_at, txid) REFERENCES ticks (tenant_id, visible_seq, at, txid),
  CHECK (superseded_by IS NULL OR reason IN ('superseded', 'corrected')),
  CHECK (superseded_by <> memory_id)
);

CREATE INDEX retractions_by_number ON retractions (tenant_id, seq);
-- What a memory has superseded.
CREATE INDEX retractions_by_successor ON retractions (tenant_id, superseded_by) WHERE superseded_by IS NOT NULL;
-- Only what was retracted can be restored.
ALTER TABLE proposals ADD FOREIGN KEY (tenant_id, restores) REFERENCES retractions (tenant_id, memory_id) DEFERRABLE;

-- What is left of a memory whose content had to go: when, and a digest over the sealed bytes that were there.
CREATE TABLE tombstones (
  tenant_id     text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  memory_id     text COLLATE "C" NOT NULL,
  seq           bigint NOT NULL,
  tombstoned_at timestamptz NOT NULL,
  txid          xid8 NOT NULL,
  digest        bytea NOT NULL CHECK (length(digest) = 32),
  PRIMARY KEY (tenant_id, memory_id),
  UNIQUE (tenant_id, memory_id, seq, tombstoned_at),
  FOREIGN KEY (tenant_id, memory_id) REFERENCES memories (tenant_id, memory_id),
  FOREIGN KEY (tenant_id, seq, tombstoned_at, txid) REFERENCES ticks (tenant_id, visible_seq, at, txid)
);

CREATE INDEX tombstones_by_number ON tombstones (tenant_id, seq);

-- What recall filters by, narrow. `filters` binds every one of these columns to the memory's own by foreign key.
-- A memory changes only here, and only so (PRO-3): `dead_seq` goes once from null to the number of its retraction; `tomb_seq`
-- and `tomb_at` go once from null to those of its tombstone, after a retraction or when its time is over, never before.
-- It has its body until it has its tombstone, and no longer: `body_id` is its id until then.
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
  tomb_seq       bigint,
  body_id        text COLLATE "C" GENERATED ALWAYS AS (CASE WHEN tomb_seq IS NULL THEN memory_id END) STORED,
  tomb_at        timestamptz,
  valid_from     timestamptz,
  valid_until    timestamptz,
  filters        text COLLATE "C" GENERATED ALWAYS AS (md5(
    user_id || chr(31) || tier || chr(31) || class || chr(31) || classification || chr(31) || session_id || chr(31)
    || workflow_id || chr(31) || intent_id || chr(31) || coalesce(entity, '') || chr(31) || coalesce(predicate, '') || chr(31)
    || coalesce(consent_root, '') || chr(31) || coalesce(qualifiers::text, '') || chr(31) || born_seq::text || chr(31)
    || extract(epoch FROM promoted_at AT TIME ZONE 'UTC')::text || chr(31) || extract(epoch FROM expires_at AT TIME ZONE 'UTC')::text || chr(31)
    || priority::numeric::text || chr(31) || confidence::numeric::text || chr(31)
    || coalesce(extract(epoch FROM valid_from AT TIME ZONE 'UTC')::text, '') || chr(31)
    || coalesce(extract(epoch FROM valid_until AT TIME ZONE 'UTC')::text, ''))) STORED,
  PRIMARY KEY (tenant_id, memory_id),
  UNIQUE (tenant_id, memory_id, dead_seq),
  UNIQUE (tenant_id, body_id),
  CONSTRAINT memory_scope_by_user UNIQUE (tenant_id, user_id, memory_id),
  FOREIGN KEY (tenant_id, memory_id, filters) REFERENCES memories (tenant_id, memory_id, filters),
  FOREIGN KEY (tenant_id, memory_id, dead_seq) REFERENCES retractions (tenant_id, memory_id, seq),
  FOREIGN KEY (tenant_id, memory_id, tomb_seq, tomb_at) REFERENCES tombstones (tenant_id, memory_id, seq, tombstoned_at),
  FOREIGN KEY (tenant_id, body_id) REFERENCES memory_bodies (tenant_id, memory_id),
  CONSTRAINT memory_scope_ended_first CHECK (tomb_seq IS NULL OR dead_seq IS NOT NULL OR expires_at <= tomb_at),
  CONSTRAINT memory_scope_whole_tomb CHECK ((tomb_seq IS NULL) = (tomb_at IS NULL))
);
CREATE INDEX memory_scope_by_consent ON memory_scope (tenant_id, consent_root) WHERE consent_root IS NOT NULL;
CREATE INDEX memory_scope_by_expiry ON memory_scope (tenant_id, expires_at) WHERE expires_at < 'infinity' AND tomb_seq IS NULL;
-- And the other way: at its commit a retraction has ended what it retracts, and a body that is not needed is gone.
ALTER TABLE retractions ADD FOREIGN KEY (tenant_id, memory_id, seq)
  REFERENCES memory_scope (tenant_id, memory_id, dead_seq) DEFERRABLE INITIALLY DEFERRED;
-- An end user has only facts of their own runs forgotten, under their own name (SUB-3).
ALTER TABLE retractions ADD CONSTRAINT retractions_own FOREIGN KEY (tenant_id, forgotten_by, memory_id)
  REFERENCES memory_scope (tenant_id, user_id, memory_id) DEFERRABLE;
ALTER TABLE memory_bodies ADD FOREIGN KEY (tenant_id, memory_id)
  REFERENCES memory_scope (tenant_id, body_id) DEFERRABLE INITIALLY DEFERRED;

-- A session that has ended, once, for one user ('' for none): its working memories are seen no more (TIR-6). Nothing else about
-- them changes: they have their term.
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

-- Rows to lock: promotions of one key, or of texts in one scope, pass one after the other (PRO-7).
CREATE TABLE promotion_locks (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  key       text COLLATE "C" NOT NULL,
  lock      smallint NOT NULL DEFAULT 0 CHECK (lock = 0),
  PRIMARY KEY (tenant_id, key)
);

-- Which rows a transaction sees and writes.
SELECT rows_of_tenant('memory_bodies', 'promotion_locks');
SELECT rows_of_transaction('memories', 'tenant_promote', mark => 'born_txid');
SELECT rows_of_transaction('retractions', 'tenant_retract', login => 'writer');
SELECT add_writing_policy('retractions', 'jobs_retract', $$reason = 'consent_revoked'$$, login => 'jobs');
SELECT add_writing_policy('retractions', 'officer_retract', $$reason = 'erased'$$, login => 'privacy');
SELECT rows_of_transaction('session_ends', 'tenant_end');
SELECT rows_of_transaction('tombstones', 'tenant_entomb');
SELECT add_policy('memory_scope', 'tenant_read', 'SELECT');
SELECT add_policy('memory_scope', 'tenant_insert', 'INSERT', writes => 'dead_seq IS NULL');
SELECT add_policy('memory_scope', 'die_once', 'UPDATE', sees => 'dead_seq IS NULL', writes => 'dead_seq IS NOT NULL');
SELECT add_policy('memory_scope', 'entomb_once', 'UPDATE', sees => 'tomb_seq IS NULL', writes => 'tomb_seq IS NOT NULL', login => 'jobs, privacy');
-- The owner may make the durable tier's rows again, from rows that nobody can change (TIR-4).
SELECT add_policy('memory_scope', 'rebuild', 'ALL', sees => $$tier = 'durable'$$, login => 'owner');

-- Who may do what.
GRANT SELECT, INSERT ON memories, memory_bodies, retractions, session_ends TO muniment_writer;
GRANT SELECT ON tombstones TO muniment_writer;
GRANT SELECT ON memories, memory_bodies, retractions, tombstones, session_ends, memory_scope TO muniment_recall, muniment_auditor;
GRANT SELECT, INSERT ON retractions, tombstones TO muniment_privacy, muniment_jobs;
GRANT SELECT ON memories TO muniment_privacy, muniment_jobs;
GRANT SELECT, DELETE ON memory_bodies TO muniment_privacy, muniment_jobs;
GRANT SELECT, INSERT, UPDATE (dead_seq) ON memory_scope TO muniment_writer;
GRANT SELECT, UPDATE (dead_seq, tomb_seq, tomb_at) ON memory_scope TO muniment_privacy, muniment_jobs;
GRANT SELECT, INSERT, UPDATE (lock) ON promotion_locks TO muniment_writer, muniment_privacy, muniment_jobs;
