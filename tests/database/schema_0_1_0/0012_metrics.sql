-- What metrics need that nothing else writes down: how golden queries were answered, and how far promoted memory was
-- scanned for personal data that should have been masked. Names, numbers and ids; no content.

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
ALTER TABLE golden_runs ENABLE ROW LEVEL SECURITY;
ALTER TABLE golden_runs FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON golden_runs USING (tenant_id = current_setting('muniment.tenant', true));
GRANT INSERT ON golden_runs TO muniment_recall;
GRANT SELECT ON golden_runs TO muniment_auditor;

-- A pass over memories in the order of their promotion, up to this one; `found` names those with personal data in them,
-- each with its kinds. Two passes over the same come to one row.
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
ALTER TABLE pii_scans ENABLE ROW LEVEL SECURITY;
ALTER TABLE pii_scans FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON pii_scans USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON pii_scans TO muniment_jobs;
GRANT SELECT ON pii_scans TO muniment_auditor;

-- A tenant's memories in the order of their promotion.
CREATE INDEX memories_by_number ON memories (tenant_id, born_seq, memory_id);

-- Names of queries, no content; but nobody needs samples of them either.
ALTER TABLE golden_runs ALTER COLUMN query SET STATISTICS 0;
