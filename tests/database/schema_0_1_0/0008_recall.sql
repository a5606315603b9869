-- The recall plane: words and links to find memories by, recalls that can be replayed, compiled prompts, embedders.

-- Words of promoted texts, as hashes under the tenant's key. Content too: gone with the body they were taken from, and
-- where that is gone none can be written any more.
CREATE TABLE memory_terms (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  term      bigint NOT NULL,
  user_id   text COLLATE "C" NOT NULL,
  memory_id text COLLATE "C" NOT NULL,
  tf        smallint NOT NULL CHECK (tf > 0),
  words     smallint NOT NULL CHECK (words >= tf),
  PRIMARY KEY (tenant_id, term, user_id, memory_id) INCLUDE (tf, words),
  FOREIGN KEY (tenant_id, memory_id) REFERENCES memory_bodies (tenant_id, memory_id) ON DELETE CASCADE
) PARTITION BY HASH (tenant_id);
CREATE INDEX memory_terms_by_memory ON memory_terms (tenant_id, memory_id);
ALTER TABLE memory_terms ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_terms FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON memory_terms USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON memory_terms TO muniment_writer;
GRANT SELECT ON memory_terms, memory_vectors TO muniment_recall, muniment_auditor;
DO $$
BEGIN
  FOR n IN 0..7 LOOP
    EXECUTE format('CREATE TABLE memory_terms_%s PARTITION OF memory_terms FOR VALUES WITH (MODULUS 8, REMAINDER %s)', n, n);
    EXECUTE format('ALTER TABLE memory_terms_%s ENABLE ROW LEVEL SECURITY', n);
    EXECUTE format('ALTER TABLE memory_terms_%s FORCE ROW LEVEL SECURITY', n);
    EXECUTE format('ALTER TABLE memory_terms_%s ALTER COLUMN term SET STATISTICS 0', n);
  END LOOP;
END $$;
ALTER TABLE memory_terms ALTER COLUMN term SET STATISTICS 0;

-- The entity graph: facts whose value names another entity. A value is content: both ends are hashes under the tenant's key.
CREATE TABLE memory_links (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  memory_id text COLLATE "C" NOT NULL,
  entity    bigint NOT NULL,
  links_to  bigint NOT NULL CHECK (links_to <> entity),
  PRIMARY KEY (tenant_id, memory_id),
  FOREIGN KEY (tenant_id, memory_id) REFERENCES memory_bodies (tenant_id, memory_id) ON DELETE CASCADE
);
CREATE INDEX memory_links_from ON memory_links (tenant_id, entity);
CREATE INDEX memory_links_to ON memory_links (tenant_id, links_to);
ALTER TABLE memory_links ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_links FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON memory_links USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON memory_links TO muniment_writer;
GRANT SELECT ON memory_links TO muniment_recall, muniment_auditor;

-- The owner may make the durable tier's projection again, from rows that nobody can change (TIR-4).
CREATE POLICY rebuild ON memory_scope TO CURRENT_USER
  USING (tenant_id = current_setting('muniment.tenant', true) AND tier = 'durable');

-- Found by the decision they belong to, too.
CREATE INDEX memories_by_decision ON memories (tenant_id, decision_key) WHERE decision_key IS NOT NULL;

-- Which embedders made vectors here. One that came later is used only when it has made all of them.
CREATE TABLE embedders (
  tenant_id    text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  embedder     text COLLATE "C" NOT NULL CHECK (embedder <> ''),
  dimensions   int NOT NULL CHECK (dimensions BETWEEN 1 AND 4000),
  since        timestamptz NOT NULL,
  completed_at timestamptz,
  PRIMARY KEY (tenant_id, embedder)
);
ALTER TABLE embedders ENABLE ROW LEVEL SECURITY;
ALTER TABLE embedders FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON embedders FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_add ON embedders FOR INSERT WITH CHECK (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY complete_once ON embedders FOR UPDATE
  USING (tenant_id = current_setting('muniment.tenant', true) AND completed_at IS NULL)
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND completed_at IS NOT NULL);
GRANT SELECT, INSERT, UPDATE (completed_at) ON embedders TO muniment_writer;
GRANT SELECT ON embedders TO muniment_recall, muniment_auditor;

-- The vectors that are there are complete. The owner sees them meanwhile.
ALTER TABLE memory_vectors NO FORCE ROW LEVEL SECURITY;
ALTER TABLE embedders NO FORCE ROW LEVEL SECURITY;
INSERT INTO embedders (tenant_id, embedder, dimensions, since, completed_at)
SELECT tenant_id, embedder, max(vector_dims(vector)), now(), now() FROM memory_vectors GROUP BY tenant_id, embedder;
ALTER TABLE embedders FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_vectors FORCE ROW LEVEL SECURITY;

-- What a replay needs beside the request: the query, sealed under the key of the run's user (`holder`), the moment that
-- was asked about, what was missing at the time, and, where search was approximate, what it chose from.
ALTER TABLE recalls
  ADD COLUMN holder     text COLLATE "C",
  ADD COLUMN query      bytea,
  ADD COLUMN as_of_seq  bigint,
  ADD COLUMN as_of      timestamptz,
  ADD COLUMN degraded   text[] COLLATE "C" NOT NULL DEFAULT '{}',
  ADD COLUMN candidates text[] COLLATE "C",
  ADD CHECK ((query IS NULL) OR (holder IS NOT NULL)),
  ADD CHECK ((as_of IS NULL) = (as_of_seq IS NULL));
ALTER TABLE recalls ALTER COLUMN query SET STATISTICS 0;
GRANT SELECT (tenant_id, recall_id, result_ids) ON recalls TO muniment_writer, muniment_jobs;

-- Every compiled prompt: which memories went in, in which blocks; the text itself is kept nowhere.
CREATE TABLE compiles (
  tenant_id    text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  compile_id   text COLLATE "C" NOT NULL,
  recall_id    text COLLATE "C" NOT NULL,
  at           timestamptz NOT NULL,
  seq          bigint NOT NULL,
  agent_id     text COLLATE "C" NOT NULL,
  run_id       text COLLATE "C" NOT NULL,
  token_budget int NOT NULL CHECK (token_budget > 0),
  tokens       int NOT NULL CHECK (tokens BETWEEN 0 AND token_budget),
  format       text NOT NULL,
  tokenizer    text NOT NULL,
  blocks       jsonb NOT NULL,
  memory_ids   text[] COLLATE "C" NOT NULL,
  left_out     text[] COLLATE "C" NOT NULL,
  told_seq     bigint NOT NULL,
  digest       text NOT NULL,
  PRIMARY KEY (tenant_id, compile_id)
);
CREATE INDEX compiles_by_run ON compiles (tenant_id, run_id, told_seq);
CREATE INDEX compiles_by_recall ON compiles (tenant_id, recall_id);
ALTER TABLE compiles ENABLE ROW LEVEL SECURITY;
ALTER TABLE compiles FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON compiles USING (tenant_id = current_setting('muniment.tenant', true));
GRANT INSERT ON compiles TO muniment_recall;
GRANT SELECT ON compiles TO muniment_writer, muniment_auditor, muniment_jobs;

-- The run a proposal came out of: a compile tells a run of its own (REC-12).
ALTER TABLE proposals ADD COLUMN run_id text COLLATE "C";
CREATE INDEX proposals_by_run ON proposals (tenant_id, run_id, seq) WHERE run_id IS NOT NULL;

-- No candidate without the record of every gate, in their order; those from before had fewer.
ALTER TABLE candidates ADD CONSTRAINT candidates_passed_every_gate CHECK (jsonb_path_query_array(gates, '$[*].gate') =
  '["allow_list", "evidence", "redaction", "classification", "consent", "trust", "confidence", "rejection"]') NOT VALID;
