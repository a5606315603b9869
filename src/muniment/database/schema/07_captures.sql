-- Captures, append-only: no login has UPDATE or DELETE on them (CAP-1).

-- `content` is sealed under the key of `holder` (CAP-5). `entity` is whom a fact that was proposed is about, whoever's capture it
-- is: an erasure must find it, refused or archived too. `vouched` is what the credential could vouch for when the capture was
-- written (ISO-8): 'user', the words of the end user, or the tool that the origin names; null is the author's own word. Of an
-- import it is the system that it was read from, by a person (IMP-2).
-- `valid_from` and `valid_until` say when it holds in the world, as far as the caller knows (REC-14); null is open.
-- The unique key on (seq, capture_id, author) serves the consolidator's scan, and binds a candidate to its capture's author.
CREATE TABLE captures (
  tenant_id        text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  capture_id       text COLLATE "C" NOT NULL,
  seq              bigint NOT NULL,
  author           text COLLATE "C" NOT NULL,
  source           text NOT NULL CHECK (source IN ('agent', 'operator', 'system', 'end_user')),
  kind             text NOT NULL CHECK (kind IN ('tool_result', 'decision', 'effect', 'message', 'approval', 'statement')),
  classification   text COLLATE "C" NOT NULL,
  holder           text COLLATE "C" NOT NULL,
  subject          text COLLATE "C",
  user_id          text COLLATE "C",
  session_id       text COLLATE "C",
  run_id           text COLLATE "C",
  recall_id        text COLLATE "C",
  intent_id        text COLLATE "C",
  workflow_id      text COLLATE "C",
  decision_key     text COLLATE "C",
  qualifiers       jsonb,
  origin           text COLLATE "C",
  observed_at      timestamptz NOT NULL,
  captured_at      timestamptz NOT NULL,
  pack             text COLLATE "C" NOT NULL,
  ontology_version text COLLATE "C" NOT NULL,
  content          bytea NOT NULL,
  entity           text COLLATE "C",
  vouched          text COLLATE "C",
  valid_from       timestamptz,
  valid_until      timestamptz,
  PRIMARY KEY (tenant_id, capture_id),
  UNIQUE (tenant_id, seq, capture_id, author),
  CONSTRAINT captures_vouched CHECK (
    vouched IS NULL
    OR (vouched = 'user' AND (kind = 'message' OR source = 'end_user') AND (origin IS NULL OR NOT starts_with(origin, 'tool:')))
    OR (origin IS NOT NULL AND vouched = origin AND starts_with(origin, 'tool:') AND length(origin) > 5)
    OR (origin IS NOT NULL AND vouched = origin AND starts_with(origin, 'import:') AND length(origin) > 7 AND source = 'operator')),
  CONSTRAINT captures_valid CHECK (valid_from < valid_until)
) PARTITION BY HASH (tenant_id);
-- What is of one person: of their own runs, or about them.
CREATE INDEX captures_by_user ON captures (tenant_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX captures_by_subject ON captures (tenant_id, subject) WHERE subject IS NOT NULL;
CREATE INDEX captures_by_entity ON captures (tenant_id, entity) WHERE entity IS NOT NULL;
-- What a person stated in their own name.
CREATE INDEX captures_stated ON captures (tenant_id, author, seq, capture_id)
  WHERE source = 'operator' AND kind = 'statement' AND vouched IS NULL;
SELECT divide_by_tenant('captures', 'content');

-- Keys under which captures were made, each its principal's own (CAP-4, CAP-12). Outlives the capture it names. `digest` is
-- keyed with the holder's data key. A principal of '' is from a home of 0.1.0 where it is not known any more. The keys of what
-- was imported are the tenant's, with the kind 'import': an item comes in once, whoever imports it, and not again once it was erased.
CREATE TABLE idempotency_keys (
  tenant_id      text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  key            text COLLATE "C" NOT NULL,
  capture_id     text COLLATE "C" NOT NULL,
  digest         bytea NOT NULL,
  principal_kind text COLLATE "C" NOT NULL,
  principal      text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant_id, key, principal, principal_kind)
);

-- The entities that facts of a capture named, where neither the capture's row nor a candidate's says so: the entity of a fact
-- that is not the capture's subject, and entities that stand in a value (ERA-5). A value is content: such a name is kept as a
-- hash under the tenant's key ('#' and 32 hex digits). `candidate_id` is the fact that named it, '' where that fact was
-- refused. Rows outlive the archiving of their capture.
CREATE TABLE capture_names (
  tenant_id    text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  capture_id   text COLLATE "C" NOT NULL,
  candidate_id text COLLATE "C" NOT NULL,
  name         text COLLATE "C" NOT NULL
    CHECK (name ~ '^[a-z][a-z0-9_]*:[A-Za-z0-9._-]{1,128}$' OR name ~ '^#[0-9a-f]{32}$'),
  PRIMARY KEY (tenant_id, capture_id, candidate_id, name)
);
CREATE INDEX capture_names_by_name ON capture_names (tenant_id, name);

-- Which rows a transaction sees and writes.
SELECT rows_of_tenant('captures', 'capture_names');
SELECT add_policy('idempotency_keys', 'tenant', 'ALL', writes => $$principal <> '' AND principal_kind <> ''$$);

-- Who may do what.
GRANT SELECT, INSERT ON captures, idempotency_keys, capture_names TO muniment_writer;
GRANT SELECT ON captures, idempotency_keys, capture_names TO muniment_auditor;
GRANT SELECT ON capture_names TO muniment_privacy, muniment_jobs;
