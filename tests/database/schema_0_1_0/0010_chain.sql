-- The audit chain: events sealed in batches, each of which continues the one before it.

-- `leaves` has place and hash of every event; `root` is their Merkle root, `hash` covers it with all that stands beside it
-- and with the batch before, `seal` is keyed: who can write here but has no key cannot make a batch. Of two who seal at
-- once one wins, by primary key. A batch begins where the one before it ended, and ends at an event that is there.
CREATE TABLE chain_batches (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  number    bigint NOT NULL CHECK (number > 0),
  prev      bigint CHECK (prev = number - 1),
  prev_hash bytea CHECK (length(prev_hash) = 32),
  after_seq bigint,
  after_n   smallint,
  first_seq bigint NOT NULL,
  last_seq  bigint NOT NULL,
  last_n    smallint NOT NULL,
  events    int NOT NULL CHECK (events > 0),
  leaves    bytea NOT NULL CHECK (length(leaves) = 42 * events),
  root      bytea NOT NULL CHECK (length(root) = 32),
  hash      bytea NOT NULL CHECK (length(hash) = 32),
  seal      bytea NOT NULL CHECK (length(seal) = 32),
  sealed_at timestamptz NOT NULL CHECK (isfinite(sealed_at)),
  PRIMARY KEY (tenant_id, number),
  UNIQUE (tenant_id, number, hash, last_seq, last_n),
  CHECK ((number = 1) = (prev IS NULL)),
  CHECK (num_nonnulls(prev, prev_hash, after_seq, after_n) IN (0, 4)),
  CHECK (last_seq >= first_seq AND first_seq >= coalesce(after_seq, 1)),
  CHECK ((last_seq, last_n) > (coalesce(after_seq, 0), coalesce(after_n, 0))),
  FOREIGN KEY (tenant_id, prev, prev_hash, after_seq, after_n)
    REFERENCES chain_batches (tenant_id, number, hash, last_seq, last_n),
  FOREIGN KEY (tenant_id, last_seq, last_n) REFERENCES events (tenant_id, seq, n)
);
ALTER TABLE chain_batches ENABLE ROW LEVEL SECURITY;
ALTER TABLE chain_batches FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON chain_batches USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON chain_batches TO muniment_jobs;
GRANT SELECT ON chain_batches TO muniment_auditor;
