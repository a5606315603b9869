-- Contradictions from the moment they are seen, and how each ended.

-- Between a memory and a proposal, which may become a memory (CTR-3). Open while both stand.
CREATE TABLE contradictions (
  tenant_id        text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  contradiction_id text COLLATE "C" NOT NULL,
  seq              bigint NOT NULL,
  opened_at        timestamptz NOT NULL,
  entity           text COLLATE "C",
  predicate        text COLLATE "C",
  existing         text COLLATE "C" NOT NULL,
  reason           text NOT NULL,
  txid             xid8 NOT NULL,
  proposal_id      text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant_id, contradiction_id),
  UNIQUE (tenant_id, existing, proposal_id),
  FOREIGN KEY (tenant_id, existing) REFERENCES memories (tenant_id, memory_id),
  FOREIGN KEY (tenant_id, proposal_id) REFERENCES proposals (tenant_id, proposal_id),
  FOREIGN KEY (tenant_id, seq, opened_at, txid) REFERENCES ticks (tenant_id, visible_seq, at, txid)
);
CREATE INDEX contradictions_by_proposal ON contradictions (tenant_id, proposal_id);

-- How a contradiction ended, once (CTR-5). The jobs and the officer end one for their own reasons alone.
CREATE TABLE resolutions (
  tenant_id        text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  contradiction_id text COLLATE "C" NOT NULL,
  seq              bigint NOT NULL,
  resolved_at      timestamptz NOT NULL,
  txid             xid8 NOT NULL,
  resolved_by      text COLLATE "C" NOT NULL,
  outcome          text NOT NULL CHECK (outcome IN ('superseded', 'corrected', 'coexist', 'retracted', 'blocked', 'rejected',
    'edited', 'duplicate', 'withdrawn', 'consent_revoked')),
  PRIMARY KEY (tenant_id, contradiction_id),
  UNIQUE (tenant_id, contradiction_id, outcome, seq),
  FOREIGN KEY (tenant_id, contradiction_id) REFERENCES contradictions (tenant_id, contradiction_id),
  FOREIGN KEY (tenant_id, seq, resolved_at, txid) REFERENCES ticks (tenant_id, visible_seq, at, txid)
);

-- Two sides that may both stand, each for its own runs: a run sees the memory only if it says all of these qualifiers.
-- They are given with the resolution, under its number, and never later.
CREATE TABLE qualifications (
  tenant_id        text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  memory_id        text COLLATE "C" NOT NULL,
  contradiction_id text COLLATE "C" NOT NULL,
  outcome          text NOT NULL DEFAULT 'coexist' CHECK (outcome = 'coexist'),
  seq              bigint NOT NULL,
  qualified_at     timestamptz NOT NULL,
  txid             xid8 NOT NULL,
  qualifiers       jsonb NOT NULL CHECK (jsonb_typeof(qualifiers) = 'object' AND qualifiers <> '{}'),
  PRIMARY KEY (tenant_id, memory_id, contradiction_id),
  FOREIGN KEY (tenant_id, memory_id) REFERENCES memories (tenant_id, memory_id),
  FOREIGN KEY (tenant_id, contradiction_id, outcome, seq) REFERENCES resolutions (tenant_id, contradiction_id, outcome, seq),
  FOREIGN KEY (tenant_id, seq, qualified_at, txid) REFERENCES ticks (tenant_id, visible_seq, at, txid)
);

-- Which rows a transaction sees and writes.
SELECT rows_of_transaction('contradictions', 'tenant_mark');
SELECT rows_of_transaction('resolutions', 'tenant_resolve', login => 'writer');
SELECT add_writing_policy('resolutions', 'jobs_resolve', $$outcome = 'consent_revoked'$$, login => 'jobs');
SELECT add_writing_policy('resolutions', 'officer_resolve', $$outcome IN ('retracted', 'withdrawn')$$, login => 'privacy');
SELECT rows_of_transaction('qualifications', 'tenant_qualify');

-- Who may do what.
GRANT SELECT, INSERT ON contradictions, resolutions, qualifications TO muniment_writer;
GRANT SELECT ON contradictions, resolutions, qualifications TO muniment_recall, muniment_auditor;
GRANT SELECT, INSERT ON resolutions TO muniment_privacy, muniment_jobs;
GRANT SELECT ON contradictions TO muniment_privacy, muniment_jobs;
