-- What the jobs keep: when each ran, what was told, where events are posted, memories that follow a new ontology.

-- When each job of a tenant ran last, by the fabric's own clock, how far the tenant was then, and when it wants to run
-- again whatever happens. The jobs see those of all tenants: from there they know where work waits.
CREATE TABLE job_runs (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  job       text COLLATE "C" NOT NULL,
  ran_at    timestamptz NOT NULL,
  seq       bigint NOT NULL,
  next_at   timestamptz,
  took      float8 NOT NULL CHECK (took >= 0),
  failures  int NOT NULL DEFAULT 0,
  error     text COLLATE "C",
  PRIMARY KEY (tenant_id, job)
);

-- What was told and need not be told again while it lasts (JOB-7).
CREATE TABLE alerts (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  key       text COLLATE "C" NOT NULL,
  raised_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, key)
);

-- Orders to bring live memories under the ontology of a pack (JOB-8): who gave it is the approver of every record it makes, and is
-- a person. `seq` bounds what it is about; `place_seq` and `place` are how far it has come, in the order of promotion. One at a
-- time: what is not finished stands alone in its tenant, and what is finished stays so.
CREATE TABLE backfills (
  tenant_id        text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  backfill_id      text COLLATE "C" NOT NULL,
  seq              bigint NOT NULL,
  ordered_at       timestamptz NOT NULL,
  txid             xid8 NOT NULL,
  ordered_by       text COLLATE "C" NOT NULL CHECK (ordered_by <> 'muniment:backfill'),
  pack             text COLLATE "C" NOT NULL,
  ontology_version text COLLATE "C" NOT NULL,
  from_versions    text[] COLLATE "C" NOT NULL,
  place_seq        bigint NOT NULL DEFAULT 0,
  place            text COLLATE "C" NOT NULL DEFAULT '',
  finished_at      timestamptz,
  PRIMARY KEY (tenant_id, backfill_id),
  FOREIGN KEY (tenant_id, pack) REFERENCES packs (tenant_id, pack),
  FOREIGN KEY (tenant_id, seq, ordered_at, txid) REFERENCES ticks (tenant_id, seq, at, txid),
  CONSTRAINT backfills_by_a_person CHECK (NOT muniment.is_among(ordered_by, ARRAY['muniment:backfill']))
);
CREATE UNIQUE INDEX backfills_one_at_a_time ON backfills (tenant_id) WHERE finished_at IS NULL;

-- What became of each memory that an order is about; none twice. `reason` is a code, no content.
CREATE TABLE backfill_items (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  backfill_id text COLLATE "C" NOT NULL,
  memory_id   text COLLATE "C" NOT NULL,
  change      text NOT NULL CHECK (change IN ('renamed', 'retyped', 'alias_resolved', 'dropped')),
  outcome     text NOT NULL CHECK (outcome IN ('migrated', 'merged', 'dropped', 'left', 'refused', 'held')),
  reason      text COLLATE "C",
  proposal_id text COLLATE "C",
  became      text COLLATE "C",
  at          timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, backfill_id, memory_id),
  FOREIGN KEY (tenant_id, backfill_id) REFERENCES backfills (tenant_id, backfill_id),
  FOREIGN KEY (tenant_id, memory_id) REFERENCES memories (tenant_id, memory_id),
  FOREIGN KEY (tenant_id, became) REFERENCES memories (tenant_id, memory_id),
  FOREIGN KEY (tenant_id, proposal_id) REFERENCES proposals (tenant_id, proposal_id),
  CHECK ((outcome IN ('migrated', 'merged')) = (became IS NOT NULL))
);

-- Which rows a transaction sees and writes.
SELECT rows_of_tenant('job_runs', 'alerts', 'backfill_items');
CREATE POLICY every_tenant ON job_runs FOR SELECT TO muniment_jobs USING (true);
SELECT rows_of_transaction('backfills', 'tenant_order', writes => 'finished_at IS NULL');
SELECT add_policy('backfills', 'until_finished', 'UPDATE', sees => 'finished_at IS NULL');

-- Who may do what. The officer sees why a purge waits: it stands on the receipt.
GRANT SELECT, INSERT ON backfill_items TO muniment_writer;
GRANT SELECT ON job_runs, alerts, backfills, backfill_items TO muniment_auditor;
GRANT SELECT, INSERT, DELETE ON alerts TO muniment_jobs;
GRANT SELECT (tenant_id, job, error) ON job_runs TO muniment_privacy;
GRANT SELECT, INSERT, UPDATE (ran_at, seq, next_at, took, failures, error) ON job_runs TO muniment_jobs;
GRANT SELECT, INSERT, UPDATE (place_seq, place, finished_at) ON backfills TO muniment_writer;
