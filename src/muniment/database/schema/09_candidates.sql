-- From captures to candidates: consolidation, what models answered, calibration, and the candidates themselves.

-- How far a tenant's captures have been read; `at` is up to when its expiries were told. Numbers follow commits, so nothing
-- can appear behind it.
CREATE TABLE cursors (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  name       text COLLATE "C" NOT NULL,
  seq        bigint NOT NULL,
  capture_id text COLLATE "C" NOT NULL,
  at         timestamptz,
  PRIMARY KEY (tenant_id, name)
);

-- Who asked for which further consolidation of a capture, and why. The key settles who is first; a row is written once. The
-- answer of a language model that came late is consolidated by itself (CAN-14).
CREATE TABLE reruns (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  capture_id text COLLATE "C" NOT NULL,
  number     int NOT NULL CHECK (number > 1),
  seq        bigint NOT NULL,
  ordered_at timestamptz NOT NULL,
  txid       xid8 NOT NULL,
  by         text COLLATE "C" NOT NULL,
  reason     text NOT NULL CHECK (reason IN ('consent_changed', 'extractor_changed', 'pack_changed', 'requested', 'late_answer')),
  PRIMARY KEY (tenant_id, capture_id, number),
  FOREIGN KEY (tenant_id, seq, ordered_at, txid) REFERENCES ticks (tenant_id, seq, at, txid)
);

-- That a capture was consolidated: whoever inserts the row does the work, in the same transaction. Each consolidation has a
-- number and happens once; all but the first need a row in `reruns` (`ordered` is null for the first).
CREATE TABLE consolidations (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  capture_id text COLLATE "C" NOT NULL,
  at         timestamptz NOT NULL,
  number     int NOT NULL DEFAULT 1 CONSTRAINT consolidations_number CHECK (number >= 1),
  ordered    int GENERATED ALWAYS AS (nullif(number, 1)) STORED,
  PRIMARY KEY (tenant_id, capture_id, number),
  CONSTRAINT consolidations_ordered FOREIGN KEY (tenant_id, capture_id, ordered) REFERENCES reruns (tenant_id, capture_id, number)
);

-- Captures that could not be consolidated: tried again later, parked in the end (CAN-3). Work in hand, not a record: the row
-- goes when the capture is done. Those behind it that concern the same holder wait with it, so that order holds. `late`: the
-- capture was consolidated without its language model and waits for that one's answer alone: 'answer' for its own, 'model' where
-- the model fails as a whole. Only late ones of the same holder wait behind it.
CREATE TABLE retries (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  capture_id text COLLATE "C" NOT NULL,
  seq        bigint NOT NULL,
  holder     text COLLATE "C" NOT NULL,
  tries      smallint NOT NULL CHECK (tries >= 0),
  next_at    timestamptz NOT NULL,
  error      text COLLATE "C",
  parked_at  timestamptz,
  number     int NOT NULL DEFAULT 1,
  late       text COLLATE "C" CONSTRAINT retries_late CHECK (late IS NULL OR (late IN ('answer', 'model') AND number > 1)),
  PRIMARY KEY (tenant_id, capture_id)
);
CREATE INDEX retries_due ON retries (tenant_id, seq, capture_id) WHERE parked_at IS NULL;

-- What a language model answered about a capture, sealed: asked once, the same ever after (CAN-2).
CREATE TABLE extractions (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  capture_id text COLLATE "C" NOT NULL,
  extractor  text COLLATE "C" NOT NULL,
  holder     text COLLATE "C" NOT NULL,
  at         timestamptz NOT NULL,
  answer     bytea NOT NULL,
  PRIMARY KEY (tenant_id, capture_id, extractor)
) PARTITION BY HASH (tenant_id);
CREATE INDEX extractions_by_time ON extractions (tenant_id, extractor, at);
SELECT divide_by_tenant('extractions', 'answer');

-- How often a model was asked on a day; asking counts, whatever is answered.
CREATE TABLE model_calls (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  extractor text COLLATE "C" NOT NULL,
  day       date NOT NULL,
  calls     int NOT NULL CHECK (calls > 0),
  PRIMARY KEY (tenant_id, extractor, day)
);

-- What a source's confidence was worth, from people's verdicts (CAN-6): [[raw, estimate, verdicts, approved], ...] rising.
CREATE TABLE calibrations (
  tenant_id      text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  calibration_id text COLLATE "C" NOT NULL,
  seq            bigint NOT NULL,
  calibrated_at  timestamptz NOT NULL,
  txid           xid8 NOT NULL,
  source         text COLLATE "C" NOT NULL,
  verdicts       int NOT NULL CHECK (verdicts >= 0),
  approved       int NOT NULL CHECK (approved BETWEEN 0 AND verdicts),
  points         jsonb NOT NULL CHECK (jsonb_typeof(points) = 'array'),
  PRIMARY KEY (tenant_id, calibration_id),
  UNIQUE (tenant_id, source, seq),
  FOREIGN KEY (tenant_id, seq, calibrated_at, txid) REFERENCES ticks (tenant_id, seq, at, txid)
);

-- Which version of the language package reads a tenant's texts, from a number on (CAN-15); the latest row holds. A tenant
-- without a row is from before versions were recorded, and of the first rules.
CREATE TABLE language_versions (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  seq        bigint NOT NULL,
  version    text COLLATE "C" NOT NULL CHECK (version <> ''),
  adopted_at timestamptz NOT NULL,
  adopted_by text COLLATE "C" NOT NULL,
  txid       xid8 NOT NULL,
  PRIMARY KEY (tenant_id, seq),
  FOREIGN KEY (tenant_id, seq, adopted_at, txid) REFERENCES ticks (tenant_id, seq, at, txid)
);

-- The gates that every new candidate must have passed, in order (CAN-4). `migrate` replaces the body with the program's own
-- list, so a new gate needs no change of the schema; until it has, no candidate can be written.
CREATE FUNCTION required_gates() RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN '["none"]'::jsonb;

-- What a capture states, once it passed the gates. `content` (value, text, evidence refs) is sealed under the key of `holder`.
-- The author is the capture's by foreign key while the capture is in the database (`live_capture_id`; archiving sets it to
-- null, a new row cannot). Each edit carries all editors before it and adds its own. `gates` (pairs of a gate and the reason
-- why it passed) and `redactions` say what the candidate went through and how often which kind was masked,
-- `exceptions` how often it was found and left (null: never); `corrects` is the memory it corrects; `claimed_by` is whose
-- word its confidence is, `calibration` what that was measured by, `flags` what an extractor wants a person to know.
-- `fact` is a digest of what it stated before the gates changed anything, under the key of its holder: a fact is proposed
-- once from a capture, however often that is consolidated. Null for edits and copies.
-- `valid_from` and `valid_until` say when it holds in the world (REC-14). `third_party`: it says something of a special category
-- about somebody other than its speaker (CAN-16), and is for the runs of one user alone, `confined_to`; an edit carries that of
-- the candidate it edits (`prior_confined_to`) and keeps it. `fingerprint` is a hash of what it asserts and of its scope under the tenant's
-- key, by which proposals that say the same are found (REV-11); an erasure takes it with the content. `language` is the
-- version of the language package that read it (CAN-15).
CREATE TABLE candidates (
  tenant_id       text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  candidate_id    text COLLATE "C" NOT NULL,
  seq             bigint NOT NULL,
  capture_id      text COLLATE "C" NOT NULL,
  live_capture_id text COLLATE "C",
  capture_seq     bigint NOT NULL,
  author          text COLLATE "C" NOT NULL,
  source          text NOT NULL CHECK (source IN ('agent', 'operator', 'system', 'end_user')),
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
  gates           jsonb NOT NULL DEFAULT '[]',
  redactions      jsonb NOT NULL DEFAULT '{}',
  corrects        text COLLATE "C",
  claimed_by      text COLLATE "C",
  calibration     text COLLATE "C",
  flags           text[] COLLATE "C" NOT NULL DEFAULT '{}',
  consolidation   int NOT NULL DEFAULT 1,
  fact            bytea,
  valid_from      timestamptz,
  valid_until     timestamptz,
  third_party     boolean NOT NULL DEFAULT false,
  fingerprint     bytea,
  language        text COLLATE "C",
  confined_to       text COLLATE "C" NOT NULL DEFAULT '',
  prior_confined_to text COLLATE "C" NOT NULL DEFAULT '',
  exceptions      jsonb,
  -- What a memory must share with its candidate, '' for none, in one column that a foreign key can hold.
  facts           text COLLATE "C" GENERATED ALWAYS AS (md5(
    capture_id || chr(31) || class || chr(31) || classification || chr(31) || holder || chr(31) || coalesce(subject, '') || chr(31)
    || coalesce(entity, '') || chr(31) || coalesce(predicate, '') || chr(31) || coalesce(user_id, '') || chr(31)
    || coalesce(session_id, '') || chr(31) || coalesce(workflow_id, '') || chr(31) || coalesce(intent_id, '') || chr(31)
    || coalesce(qualifiers::text, '') || chr(31) || coalesce(extract(epoch FROM valid_from AT TIME ZONE 'UTC')::text, '') || chr(31)
    || coalesce(extract(epoch FROM valid_until AT TIME ZONE 'UTC')::text, '') || chr(31) || third_party::text || chr(31)
    || coalesce(corrects, ''))) STORED,
  PRIMARY KEY (tenant_id, candidate_id),
  UNIQUE (tenant_id, candidate_id, author, editors, facts),
  CONSTRAINT candidates_to_edit UNIQUE (tenant_id, candidate_id, editors, confined_to),
  CONSTRAINT candidates_one_of_a_consolidation UNIQUE (tenant_id, capture_id, consolidation, extractor, ordinal),
  FOREIGN KEY (tenant_id, calibration) REFERENCES calibrations (tenant_id, calibration_id),
  CHECK ((edits IS NULL) = (editor IS NULL) AND (edits IS NULL) = (prior_editors IS NULL)),
  CHECK (cardinality(editors) <= 8),
  CHECK (editors = CASE WHEN edits IS NULL THEN '{}'::text[] ELSE prior_editors || editor END),
  CONSTRAINT candidates_valid CHECK (valid_from < valid_until),
  CONSTRAINT candidates_fingerprint CHECK (length(fingerprint) = 16),
  CONSTRAINT candidates_third_party CHECK (confined_to = CASE WHEN third_party THEN coalesce(user_id, '') ELSE '' END
    AND (NOT third_party OR (confined_to <> '' AND subject IS NOT NULL AND consent_id IS NOT NULL))),
  CONSTRAINT candidates_stay_confined CHECK (prior_confined_to = '' OR (edits IS NOT NULL AND prior_confined_to = confined_to))
) PARTITION BY HASH (tenant_id);
-- By which a capture that leaves lets go of its candidates.
CREATE INDEX candidates_by_live_capture ON candidates (tenant_id, live_capture_id) WHERE live_capture_id IS NOT NULL;
CREATE UNIQUE INDEX candidates_one_fact ON candidates (tenant_id, fact) WHERE fact IS NOT NULL;
-- Only what waits for a verdict when it is written has a fingerprint.
CREATE INDEX candidates_by_fingerprint ON candidates (tenant_id, fingerprint) WHERE fingerprint IS NOT NULL;
-- By which an agent is told what of its items waits.
CREATE INDEX candidates_items ON candidates (tenant_id, entity) WHERE predicate = 'item';
-- What is of one person, as of captures.
CREATE INDEX candidates_by_user ON candidates (tenant_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX candidates_by_subject ON candidates (tenant_id, subject) WHERE subject IS NOT NULL;
CREATE INDEX candidates_by_entity ON candidates (tenant_id, entity) WHERE entity IS NOT NULL;
SELECT divide_by_tenant('candidates', 'content', 'fact', 'fingerprint');
SELECT key_between_partitions('candidates', 'tenant_id, capture_seq, live_capture_id, author',
  'captures', 'tenant_id, seq, capture_id, author');
SELECT key_between_partitions('candidates', 'tenant_id, edits, prior_editors, prior_confined_to',
  'candidates', 'tenant_id, candidate_id, editors, confined_to');

-- Which rows a transaction sees and writes.
SELECT rows_of_tenant('cursors', 'consolidations', 'retries', 'extractions', 'model_calls');
SELECT rows_of_transaction('reruns', 'tenant_rerun');
SELECT rows_of_transaction('calibrations', 'tenant_calibrate');
SELECT rows_of_transaction('language_versions', 'tenant_adopt');
SELECT add_policy('candidates', 'tenant_read', 'SELECT');
-- The gates are checked when a candidate is written and never later: older ones had other gates, and an erasure blanks them.
SELECT add_policy('candidates', 'tenant_insert', 'INSERT',
  writes => $$live_capture_id = capture_id AND jsonb_path_query_array(gates, '$[*][0]') = required_gates()$$);
-- An erasure blanks content as the owner (`erase_content`), archiving unbinds from the capture (`collect_captures`).
SELECT add_policy('candidates', 'blank', 'UPDATE', login => 'owner');

-- Who may do what.
GRANT SELECT, INSERT ON language_versions, reruns, consolidations, extractions, candidates TO muniment_writer;
GRANT SELECT ON calibrations TO muniment_writer;
GRANT SELECT ON language_versions TO muniment_recall;
GRANT SELECT ON cursors, language_versions, reruns, consolidations, retries, extractions, model_calls, calibrations, candidates TO muniment_auditor;
GRANT SELECT, INSERT ON calibrations TO muniment_jobs;
GRANT SELECT ON consolidations, retries TO muniment_jobs;
GRANT SELECT, INSERT, UPDATE (seq, capture_id) ON cursors TO muniment_writer;
GRANT SELECT, INSERT, UPDATE (at) ON cursors TO muniment_jobs;
GRANT SELECT, INSERT, UPDATE (tries, next_at, error, parked_at, number, late), DELETE ON retries TO muniment_writer;
GRANT SELECT, INSERT, UPDATE (calls) ON model_calls TO muniment_writer;
GRANT SELECT (tenant_id, candidate_id, capture_id, entity, holder, subject, user_id, corrects) ON candidates TO muniment_privacy;
GRANT SELECT (tenant_id, candidate_id, capture_id, entity, raw_confidence, claimed_by, corrects) ON candidates TO muniment_jobs;
