-- Erasures and the functions that carry them out, searches for names that are left, and keys that are destroyed or replaced.
--
-- Each function is the one way to something that no login may do by itself (ADR 24). They run as the owner, whom forced row
-- security holds to the tenant of the transaction like everybody else.

-- Erasures, as receipts (ERA-2): who asked, what went, when the last of it was gone from beneath too. Of a person, `names` is every
-- name that it covers: its holders (the subject under all aliases, '@user'), and the hashes that `capture_names` keeps of them
-- (ERA-5). Of one fact, `fact_id` is the memory or proposal that was named, `facts` are its candidates and `captures` the captures
-- that go with it (ERA-8). `requested_by` is on whose request it was done (SUB-3).
CREATE TABLE erasures (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  erasure_id text COLLATE "C" NOT NULL,
  seq        bigint NOT NULL,
  erased_at  timestamptz NOT NULL,
  txid       xid8 NOT NULL,
  by         text COLLATE "C" NOT NULL,
  subject    text COLLATE "C",
  user_id    text COLLATE "C",
  holders    text[] COLLATE "C" NOT NULL,
  memories   int NOT NULL CHECK (memories >= 0),
  purged_at  timestamptz,
  names      text[] COLLATE "C" NOT NULL,
  fact_id    text COLLATE "C",
  facts      text[] COLLATE "C" NOT NULL DEFAULT '{}',
  captures   text[] COLLATE "C" NOT NULL DEFAULT '{}',
  requested_by text COLLATE "C",
  PRIMARY KEY (tenant_id, erasure_id),
  FOREIGN KEY (tenant_id, seq, erased_at, txid) REFERENCES ticks (tenant_id, visible_seq, at, txid),
  CONSTRAINT erasures_names_hold_holders CHECK (names @> holders AND NOT '*' = ANY (names)),
  CONSTRAINT erasures_of_a_person_or_a_fact CHECK (CASE WHEN fact_id IS NULL
    THEN (subject IS NOT NULL OR user_id IS NOT NULL) AND cardinality(holders) > 0 AND facts = '{}' AND captures = '{}'
    ELSE subject IS NULL AND user_id IS NULL AND names = '{}' AND facts <> '{}' END)
);
CREATE INDEX erasures_by_number ON erasures (tenant_id, seq);

-- How many rows of which table an erasure blanked.
CREATE TABLE erased_rows (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  erasure_id text COLLATE "C" NOT NULL,
  what       text NOT NULL,
  rows       bigint NOT NULL CHECK (rows >= 0),
  PRIMARY KEY (tenant_id, erasure_id, what),
  FOREIGN KEY (tenant_id, erasure_id) REFERENCES erasures (tenant_id, erasure_id)
);

-- Searches of opened texts for a name, page by page: who searched, for what (a keyed hash), for which erasure, how far it came and
-- what was found. Never the name itself. Each page continues the one before it, so that one that is finished went through all.
CREATE TABLE name_searches (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  search_id  text COLLATE "C" NOT NULL,
  page       int NOT NULL CHECK (page > 0),
  prev       int CHECK (prev = page - 1),
  seq        bigint NOT NULL,
  at         timestamptz NOT NULL,
  txid       xid8 NOT NULL,
  by         text COLLATE "C" NOT NULL,
  mark       bytea NOT NULL CHECK (length(mark) = 32),
  erasure_id text COLLATE "C",
  place      text COLLATE "C" NOT NULL,
  row_id     text COLLATE "C" NOT NULL,
  searched   int NOT NULL CHECK (searched >= 0),
  hits       int NOT NULL CHECK (hits >= 0),
  finished   boolean NOT NULL,
  -- No page follows one that is finished.
  goes_on    int GENERATED ALWAYS AS (CASE WHEN NOT finished THEN page END) STORED,
  PRIMARY KEY (tenant_id, search_id, page),
  UNIQUE (tenant_id, search_id, goes_on, mark),
  CHECK ((page = 1) = (prev IS NULL)),
  FOREIGN KEY (tenant_id, search_id, prev, mark) REFERENCES name_searches (tenant_id, search_id, goes_on, mark),
  FOREIGN KEY (tenant_id, erasure_id) REFERENCES erasures (tenant_id, erasure_id),
  FOREIGN KEY (tenant_id, seq, at, txid) REFERENCES ticks (tenant_id, seq, at, txid)
);
CREATE INDEX name_searches_by_erasure ON name_searches (tenant_id, erasure_id) WHERE erasure_id IS NOT NULL AND finished;

-- No samples of content and keys.
SELECT no_samples('name_searches', 'mark');

-- Which rows a transaction sees and writes.
SELECT rows_of_transaction('erasures', 'tenant_erase', writes => 'purged_at IS NULL');
SELECT add_policy('erasures', 'purge_once', 'UPDATE', sees => 'purged_at IS NULL', writes => 'purged_at IS NOT NULL');
-- A receipt that said purged is taken back where more of the person's content is found and blanked (`erase_late`).
SELECT add_policy('erasures', 'reopen', 'UPDATE', login => 'owner');
SELECT add_policy('erased_rows', 'tenant_read', 'SELECT');
SELECT add_policy('erased_rows', 'count_them', 'INSERT', login => 'owner');
SELECT rows_of_transaction('name_searches', 'tenant_search');

-- Who may do what.
GRANT SELECT ON erasures TO muniment_writer, muniment_recall;
GRANT SELECT ON erasures, erased_rows, name_searches TO muniment_auditor;
GRANT SELECT, INSERT ON erasures, name_searches TO muniment_privacy;
GRANT SELECT ON erased_rows TO muniment_privacy;
GRANT SELECT ON erased_rows, name_searches TO muniment_jobs;
GRANT SELECT, UPDATE (purged_at) ON erasures TO muniment_jobs;
