-- The recall plane: vectors, words and links to find memories by, recalls that can be replayed, compiled prompts.
--
-- Vectors, words and links are content too: they go with the body that they were made of, and where that is gone none can be
-- written any more (ERA-2).

-- Where a promoted text lies among others. A large tenant gets an index of its own vectors (database/vector_index.py).
CREATE TABLE memory_vectors (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  memory_id text COLLATE "C" NOT NULL,
  embedder  text COLLATE "C" NOT NULL,
  vector    public.halfvec NOT NULL,
  PRIMARY KEY (tenant_id, memory_id, embedder)
) PARTITION BY HASH (tenant_id);
SELECT divide_by_tenant('memory_vectors', 'vector');
SELECT key_between_partitions('memory_vectors', 'tenant_id, memory_id', 'memory_bodies', 'tenant_id, memory_id', 'ON DELETE CASCADE');

-- The words of a promoted text, packed in one value (database/packed_words.py): for each distinct word eight bytes with its hash
-- under the tenant's key, and two with how often it occurs. `words` is how many words the text has.
CREATE TABLE memory_words (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  memory_id text COLLATE "C" NOT NULL,
  words     smallint NOT NULL CHECK (words > 0),
  terms     bytea NOT NULL CHECK (octet_length(terms) > 0 AND octet_length(terms) % 10 = 0),
  PRIMARY KEY (tenant_id, memory_id)
) PARTITION BY HASH (tenant_id);
SELECT divide_by_tenant('memory_words', 'terms');
SELECT key_between_partitions('memory_words', 'tenant_id, memory_id', 'memory_bodies', 'tenant_id, memory_id', 'ON DELETE CASCADE');

-- Postings: the memories with a word, the newest last. Only large tenants have them, up to the cursor `terms`; the owner writes
-- them from the words (promotion/postings.py).
CREATE TABLE memory_terms (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  term      bigint NOT NULL,
  user_id   text COLLATE "C" NOT NULL,
  memory_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant_id, term, user_id, memory_id)
) PARTITION BY HASH (tenant_id);
CREATE INDEX memory_terms_by_memory ON memory_terms (tenant_id, memory_id);
SELECT divide_by_tenant('memory_terms', 'term');
SELECT key_between_partitions('memory_terms', 'tenant_id, memory_id', 'memory_bodies', 'tenant_id, memory_id', 'ON DELETE CASCADE');

-- The entity graph (REC-6): facts whose value names another entity. Both ends are hashes under the tenant's key.
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

-- Which embedders made vectors here. One that came later is used only when it has made all of them.
CREATE TABLE embedders (
  tenant_id    text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  embedder     text COLLATE "C" NOT NULL CHECK (embedder <> ''),
  dimensions   int NOT NULL CHECK (dimensions BETWEEN 1 AND 4000),
  since        timestamptz NOT NULL,
  completed_at timestamptz,
  PRIMARY KEY (tenant_id, embedder)
);

-- That words or vectors of memories were made anew, under a visibility number of its own: an index in a process that was
-- read before is read again (ADR 55).
CREATE TABLE index_rebuilds (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  seq       bigint NOT NULL,
  at        timestamptz NOT NULL,
  txid      xid8 NOT NULL,
  PRIMARY KEY (tenant_id, seq),
  FOREIGN KEY (tenant_id, seq, at, txid) REFERENCES ticks (tenant_id, visible_seq, at, txid)
);

-- The processes that hold vectors and words of the tenant's memories in memory (ADR 56): none that ended up to
-- `confirmed_seq`. One that could not confirm for so long that `leased_until` has passed, by the database's clock, has
-- dropped them. A purge waits for all others (ERA-3).
CREATE TABLE index_holders (
  tenant_id     text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  holder_id     text COLLATE "C" NOT NULL,
  confirmed_seq bigint NOT NULL,
  leased_until  timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, holder_id)
);

-- Every recall (REC-8): what was asked, under which pack, what came back. Written by the reader, never changed. For a replay
-- (REC-9): the query, sealed under the key of the run's user (`holder`), the moment that was asked about, what was missing at
-- the time, and, where search was approximate, what it chose from.
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
  holder     text COLLATE "C",
  query      bytea,
  as_of_seq  bigint,
  as_of      timestamptz,
  degraded   text[] COLLATE "C" NOT NULL DEFAULT '{}',
  candidates text[] COLLATE "C",
  PRIMARY KEY (tenant_id, recall_id),
  CHECK ((query IS NULL) OR (holder IS NOT NULL)),
  CHECK ((as_of IS NULL) = (as_of_seq IS NULL))
);
-- The recalls of one user or one run, the latest first: their ids begin with the time. Those of the tenant are found by
-- the primary key.
CREATE INDEX recalls_by_user ON recalls (tenant_id, user_id, recall_id) WHERE user_id IS NOT NULL;
CREATE INDEX recalls_by_run ON recalls (tenant_id, run_id, recall_id);

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

-- No samples of content and keys.
SELECT no_samples('recalls', 'query');

-- Which rows a transaction sees and writes.
SELECT rows_of_tenant('memory_vectors', 'memory_words', 'memory_terms', 'memory_links', 'index_holders', 'recalls', 'compiles');
SELECT add_policy('embedders', 'tenant_read', 'SELECT');
SELECT add_policy('embedders', 'tenant_add', 'INSERT');
SELECT add_policy('embedders', 'complete_once', 'UPDATE', sees => 'completed_at IS NULL', writes => 'completed_at IS NOT NULL');

SELECT rows_of_transaction('index_rebuilds', 'tenant_rebuild');

-- Who may do what.
GRANT SELECT, INSERT ON index_rebuilds TO muniment_writer;
GRANT SELECT ON index_rebuilds TO muniment_recall, muniment_auditor;
GRANT SELECT, INSERT ON memory_vectors, memory_words, memory_links TO muniment_writer;
GRANT SELECT ON compiles TO muniment_writer, muniment_jobs;
GRANT INSERT ON compiles TO muniment_recall;
GRANT SELECT ON memory_vectors, memory_words, memory_terms, memory_links, embedders, cursors TO muniment_recall;
GRANT SELECT ON memory_vectors, memory_words, memory_terms, memory_links, embedders, recalls, compiles TO muniment_auditor;
GRANT SELECT, INSERT, UPDATE (completed_at) ON embedders TO muniment_writer;
GRANT SELECT (tenant_id, recall_id, result_ids) ON recalls TO muniment_writer, muniment_privacy, muniment_jobs;
GRANT SELECT (tenant_id, seq), INSERT ON recalls TO muniment_recall;
GRANT SELECT (tenant_id, compile_id, memory_ids) ON compiles TO muniment_privacy;
GRANT SELECT, INSERT, UPDATE (confirmed_seq, leased_until), DELETE ON index_holders TO muniment_recall;
GRANT SELECT, DELETE ON index_holders TO muniment_jobs;

-- The number of a tenant's clock, for a row that a cluster inserts by its values: one that is inserted by a query waits there while
-- any shard is moved, and is planned once for each.
CREATE FUNCTION clock_number(whose text) RETURNS bigint LANGUAGE sql STABLE
AS $$ SELECT seq FROM muniment.tenant_clock WHERE tenant_id = whose $$;
REVOKE ALL ON FUNCTION clock_number(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION clock_number(text) TO muniment_recall;
