-- The gate: vectors for finding neighbours, what was masked and passed, contradictions from the moment they are seen,
-- how each ended, remembered rejections, duplicates that come back, corrections, tombstones.

-- What a candidate went through: the gates with their reasons, how often which kind was masked. No content.
ALTER TABLE candidates
  ADD COLUMN gates      jsonb NOT NULL DEFAULT '[]',
  ADD COLUMN redactions jsonb NOT NULL DEFAULT '{}',
  ADD COLUMN corrects   text COLLATE "C",
  ADD FOREIGN KEY (tenant_id, corrects) REFERENCES memories (tenant_id, memory_id);

-- The rejected proposal that a refusal follows.
ALTER TABLE refusals
  ADD COLUMN rejection text COLLATE "C",
  ADD FOREIGN KEY (tenant_id, rejection) REFERENCES proposals (tenant_id, proposal_id);

-- A duplicate whose original was found wrong comes back, once, as a proposal of its own.
ALTER TABLE proposals
  ADD COLUMN reopens text COLLATE "C",
  ADD CHECK (reopens <> proposal_id),
  ADD UNIQUE (tenant_id, reopens),
  ADD FOREIGN KEY (tenant_id, reopens) REFERENCES proposals (tenant_id, proposal_id);
CREATE INDEX verdicts_by_memory ON verdicts (tenant_id, memory_id) WHERE action = 'duplicate';

-- A rejection can be lifted, once, by a named person.
ALTER TABLE verdicts DROP CONSTRAINT verdicts_action_check;
ALTER TABLE verdicts ADD CONSTRAINT verdicts_action_check CHECK (
  action IN ('approve', 'edit', 'reject', 'hold', 'block', 'duplicate', 'withdraw', 'override', 'assign', 'release', 'lift',
    'resolve'));
ALTER TABLE verdicts ADD CONSTRAINT verdicts_lift CHECK (action <> 'lift' OR by_kind = 'operator');
CREATE UNIQUE INDEX verdicts_one_lift ON verdicts (tenant_id, proposal_id) WHERE action = 'lift';

-- What a rejected fact is found by: keyed hashes of its fingerprint and of its place among texts, never the text.
CREATE TABLE rejection_marks (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  mark        bigint NOT NULL,
  proposal_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant_id, mark, proposal_id),
  FOREIGN KEY (tenant_id, proposal_id) REFERENCES proposals (tenant_id, proposal_id)
);
ALTER TABLE rejection_marks ENABLE ROW LEVEL SECURITY;
ALTER TABLE rejection_marks FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON rejection_marks USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON rejection_marks TO muniment_writer;

-- Where a promoted text lies among others. Content too: kept for what was promoted only, gone with its body, and where
-- the body is gone none can be written any more.
CREATE TABLE memory_vectors (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  memory_id text COLLATE "C" NOT NULL,
  embedder  text COLLATE "C" NOT NULL,
  vector    public.halfvec NOT NULL,
  PRIMARY KEY (tenant_id, memory_id, embedder),
  FOREIGN KEY (tenant_id, memory_id) REFERENCES memory_bodies (tenant_id, memory_id) ON DELETE CASCADE
) PARTITION BY HASH (tenant_id);
ALTER TABLE memory_vectors ENABLE ROW LEVEL SECURITY;
ALTER TABLE memory_vectors FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON memory_vectors USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON memory_vectors TO muniment_writer;
DO $$
BEGIN
  FOR n IN 0..7 LOOP
    EXECUTE format('CREATE TABLE memory_vectors_%s PARTITION OF memory_vectors FOR VALUES WITH (MODULUS 8, REMAINDER %s)', n, n);
    EXECUTE format('ALTER TABLE memory_vectors_%s ENABLE ROW LEVEL SECURITY', n);
    EXECUTE format('ALTER TABLE memory_vectors_%s FORCE ROW LEVEL SECURITY', n);
    EXECUTE format('ALTER TABLE memory_vectors_%s ALTER COLUMN vector SET STATISTICS 0', n);
  END LOOP;
END $$;
CREATE INDEX memory_vectors_near ON memory_vectors USING hnsw ((vector::public.halfvec(256)) public.halfvec_cosine_ops)
  WHERE embedder = 'wordllama-256@1';

-- No samples of content in the planner's statistics: not of a whole table either, nor of an expression in an index.
ALTER TABLE subjects ALTER COLUMN wrapped_key SET STATISTICS 0;
ALTER TABLE captures ALTER COLUMN content SET STATISTICS 0;
ALTER TABLE candidates ALTER COLUMN content SET STATISTICS 0;
ALTER TABLE memory_bodies ALTER COLUMN content SET STATISTICS 0;
ALTER TABLE memory_vectors ALTER COLUMN vector SET STATISTICS 0;
DO $$
DECLARE part regclass;
BEGIN
  FOR part IN SELECT inhrelid FROM pg_inherits WHERE inhparent = 'memory_vectors_near'::regclass LOOP
    EXECUTE format('ALTER INDEX %s ALTER COLUMN 1 SET STATISTICS 0', part);
  END LOOP;
END $$;

-- A contradiction is opened when it is seen: between a memory and a proposal, which may become a memory.
-- The owner sees the rows meanwhile, those that the new foreign key is checked against too.
ALTER TABLE contradictions NO FORCE ROW LEVEL SECURITY;
ALTER TABLE memories NO FORCE ROW LEVEL SECURITY;
ALTER TABLE proposals NO FORCE ROW LEVEL SECURITY;
ALTER TABLE contradictions ADD COLUMN proposal_id text COLLATE "C";
UPDATE contradictions c SET proposal_id = m.proposal_id
FROM memories m WHERE m.tenant_id = c.tenant_id AND m.memory_id = c.incoming;
ALTER TABLE contradictions DROP COLUMN incoming;
ALTER TABLE contradictions
  ALTER COLUMN proposal_id SET NOT NULL,
  ADD UNIQUE (tenant_id, existing, proposal_id),
  ADD FOREIGN KEY (tenant_id, proposal_id) REFERENCES proposals (tenant_id, proposal_id);
CREATE INDEX contradictions_by_proposal ON contradictions (tenant_id, proposal_id);
ALTER TABLE proposals FORCE ROW LEVEL SECURITY;
ALTER TABLE memories FORCE ROW LEVEL SECURITY;
ALTER TABLE contradictions FORCE ROW LEVEL SECURITY;

-- How a contradiction ended, once.
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
  FOREIGN KEY (tenant_id, seq, resolved_at, txid) REFERENCES ticks (tenant_id, seq, at, txid)
);
ALTER TABLE resolutions ENABLE ROW LEVEL SECURITY;
ALTER TABLE resolutions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON resolutions FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_resolve ON resolutions FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = pg_current_xact_id());
CREATE POLICY jobs_resolve ON resolutions AS RESTRICTIVE FOR INSERT TO muniment_jobs
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND outcome = 'consent_revoked');
GRANT SELECT, INSERT ON resolutions TO muniment_writer, muniment_jobs;
GRANT SELECT ON resolutions TO muniment_recall, muniment_auditor;

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
  FOREIGN KEY (tenant_id, seq, qualified_at, txid) REFERENCES ticks (tenant_id, seq, at, txid)
);
ALTER TABLE qualifications ENABLE ROW LEVEL SECURITY;
ALTER TABLE qualifications FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON qualifications FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_qualify ON qualifications FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = pg_current_xact_id());
GRANT SELECT, INSERT ON qualifications TO muniment_writer;
GRANT SELECT ON qualifications TO muniment_recall, muniment_auditor;

-- What is left of a memory whose content had to go: when, why, and a digest over the sealed bytes that were there.
CREATE TABLE tombstones (
  tenant_id     text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  memory_id     text COLLATE "C" NOT NULL,
  seq           bigint NOT NULL,
  tombstoned_at timestamptz NOT NULL,
  txid          xid8 NOT NULL,
  digest        bytea NOT NULL CHECK (length(digest) = 32),
  PRIMARY KEY (tenant_id, memory_id),
  UNIQUE (tenant_id, memory_id, seq),
  FOREIGN KEY (tenant_id, memory_id) REFERENCES retractions (tenant_id, memory_id),
  FOREIGN KEY (tenant_id, seq, tombstoned_at, txid) REFERENCES ticks (tenant_id, seq, at, txid)
);
ALTER TABLE tombstones ENABLE ROW LEVEL SECURITY;
ALTER TABLE tombstones FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON tombstones FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_entomb ON tombstones FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = pg_current_xact_id());
GRANT SELECT, INSERT ON tombstones TO muniment_jobs;
GRANT SELECT ON tombstones TO muniment_auditor, muniment_recall, muniment_writer;

-- A memory has its body until it has its tombstone, and no longer: `body_id` is its id until then. A body that is needed
-- cannot be deleted, one that is not cannot stay or come back beyond the commit. Vectors go with their body.
-- The owner sees the rows meanwhile that the foreign keys are checked against.
ALTER TABLE memory_scope NO FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_bodies NO FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_scope
  ADD COLUMN tomb_seq bigint,
  ADD COLUMN body_id  text COLLATE "C" GENERATED ALWAYS AS (CASE WHEN tomb_seq IS NULL THEN memory_id END) STORED,
  ADD UNIQUE (tenant_id, body_id),
  ADD CONSTRAINT memory_scope_dead_first CHECK (tomb_seq IS NULL OR dead_seq IS NOT NULL),
  ADD FOREIGN KEY (tenant_id, memory_id, tomb_seq) REFERENCES tombstones (tenant_id, memory_id, seq),
  ADD FOREIGN KEY (tenant_id, body_id) REFERENCES memory_bodies (tenant_id, memory_id);
ALTER TABLE memory_bodies ADD FOREIGN KEY (tenant_id, memory_id)
  REFERENCES memory_scope (tenant_id, body_id) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE memory_bodies FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_scope FORCE ROW LEVEL SECURITY;
CREATE POLICY entomb_once ON memory_scope FOR UPDATE TO muniment_jobs
  USING (tenant_id = current_setting('muniment.tenant', true) AND dead_seq IS NOT NULL AND tomb_seq IS NULL)
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND tomb_seq IS NOT NULL);

-- That the memories of an ended consent were taken away: once per unbroken chain of consents.
CREATE TABLE consent_sweeps (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  root_id   text COLLATE "C" NOT NULL,
  seq       bigint NOT NULL,
  swept_at  timestamptz NOT NULL,
  txid      xid8 NOT NULL,
  memories  int NOT NULL CHECK (memories >= 0),
  PRIMARY KEY (tenant_id, root_id),
  FOREIGN KEY (tenant_id, root_id, root_id) REFERENCES consents (tenant_id, consent_id, root_id),
  FOREIGN KEY (tenant_id, seq, swept_at, txid) REFERENCES ticks (tenant_id, seq, at, txid)
);
ALTER TABLE consent_sweeps ENABLE ROW LEVEL SECURITY;
ALTER TABLE consent_sweeps FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON consent_sweeps FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_sweep ON consent_sweeps FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = pg_current_xact_id());
GRANT SELECT, INSERT ON consent_sweeps TO muniment_jobs;
GRANT SELECT ON consent_sweeps TO muniment_auditor, muniment_privacy, muniment_writer;

CREATE INDEX memory_scope_by_consent ON memory_scope (tenant_id, consent_root) WHERE consent_root IS NOT NULL;
GRANT SELECT ON consents, memories, contradictions TO muniment_jobs;
GRANT SELECT, UPDATE (dead_seq, tomb_seq) ON memory_scope TO muniment_jobs;
CREATE POLICY jobs_retract ON retractions AS RESTRICTIVE FOR INSERT TO muniment_jobs
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND reason = 'consent_revoked');
GRANT SELECT, INSERT ON retractions, ticks, events TO muniment_jobs;
GRANT SELECT, INSERT, UPDATE (seq, at, prev_at) ON tenant_clock TO muniment_jobs;
GRANT SELECT (tenant_id, holder), UPDATE (lock) ON subjects TO muniment_jobs;
GRANT SELECT, DELETE ON memory_bodies TO muniment_jobs;
