-- What metrics need that nothing else writes down: names, numbers and ids; no content.

-- One answer to one golden query. Those of one asking share `golden_id`; the query is kept by its name alone.
CREATE TABLE golden_runs (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  golden_id text COLLATE "C" NOT NULL,
  query     text COLLATE "C" NOT NULL,
  at        timestamptz NOT NULL,
  by        text COLLATE "C" NOT NULL,
  passed    boolean NOT NULL,
  precision float8 CHECK (precision BETWEEN 0 AND 1),
  recall    float8 CHECK (recall BETWEEN 0 AND 1),
  PRIMARY KEY (tenant_id, golden_id, query)
);

-- How far promoted memory was scanned for personal data that should have been masked: a pass over memories in the order of
-- their promotion, up to this one; `found` names those with personal data in them, each with its kinds. Two passes over the
-- same come to one row.
CREATE TABLE pii_scans (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  seq        bigint NOT NULL,
  memory_id  text COLLATE "C" NOT NULL,
  scanned_at timestamptz NOT NULL,
  scanned    int NOT NULL CHECK (scanned > 0),
  found      jsonb NOT NULL CHECK (jsonb_typeof(found) = 'object'),
  PRIMARY KEY (tenant_id, seq, memory_id),
  FOREIGN KEY (tenant_id, memory_id) REFERENCES memories (tenant_id, memory_id)
);

-- No samples of content and keys.
SELECT no_samples('golden_runs', 'query');

-- Which rows a transaction sees and writes.
SELECT rows_of_tenant('golden_runs', 'pii_scans');

-- Who may do what.
GRANT INSERT ON golden_runs TO muniment_recall;
GRANT SELECT ON golden_runs, pii_scans TO muniment_auditor;
GRANT SELECT, INSERT ON pii_scans TO muniment_jobs;
