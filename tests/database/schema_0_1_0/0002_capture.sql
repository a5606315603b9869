-- Captures, append-only: no role has UPDATE or DELETE.

-- `content` is sealed under the key of `holder`. The unique key on (seq, capture_id, author) serves the
-- consolidator's scan, and the foreign key that binds a candidate to its capture's author.
CREATE TABLE captures (
  tenant_id        text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  capture_id       text COLLATE "C" NOT NULL,
  seq              bigint NOT NULL,
  author           text COLLATE "C" NOT NULL,
  source           text NOT NULL CHECK (source IN ('agent', 'operator', 'system')),
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
  PRIMARY KEY (tenant_id, capture_id),
  UNIQUE (tenant_id, seq, capture_id, author)
) PARTITION BY HASH (tenant_id);
ALTER TABLE captures ENABLE ROW LEVEL SECURITY;
ALTER TABLE captures FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON captures USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON captures TO muniment_writer;
GRANT SELECT ON captures TO muniment_auditor;

-- Outlives the capture it names. `digest` is keyed with the holder's data key.
CREATE TABLE idempotency_keys (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  key        text COLLATE "C" NOT NULL,
  capture_id text COLLATE "C" NOT NULL,
  digest     bytea NOT NULL,
  PRIMARY KEY (tenant_id, key)
);
ALTER TABLE idempotency_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE idempotency_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON idempotency_keys USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON idempotency_keys TO muniment_writer;
GRANT SELECT ON idempotency_keys TO muniment_auditor;
