-- The log of what happened, and the chain that seals it.

-- What happened, as canonical bytes: ids, classes, reasons and counts, never content. What happened several times in a
-- transaction is one event for each type, actor and 500 rows (AUD-1). `rows` lists the rows that the event
-- tells of, packed: forms, ids and keyed digests (AUD-4). The event's hash covers them; nobody is sent them.
CREATE TABLE events (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  seq       bigint NOT NULL,
  n         smallint NOT NULL,
  event_id  text COLLATE "C" NOT NULL,
  type      text NOT NULL CHECK (type LIKE 'memory.%'),
  at        timestamptz NOT NULL,
  actor     text COLLATE "C" NOT NULL,
  body      bytea NOT NULL,
  txid      xid8 NOT NULL,
  rows      bytea,
  PRIMARY KEY (tenant_id, seq, n),
  UNIQUE (tenant_id, event_id),
  FOREIGN KEY (tenant_id, seq, at, txid) REFERENCES ticks (tenant_id, seq, at, txid)
);
-- Denied attempts (AUD-3) are few among all events, and are what is looked for first.
CREATE INDEX events_of_security ON events (tenant_id, seq, n) WHERE type = 'memory.security';

-- The key of those digests, wrapped by the tenant's key. It is never destroyed: no erasure names it, and no version of the
-- tenant's key that it is wrapped under can be dropped. Logins that write no rows with an event do not read it; the jobs
-- see whether there is one.
CREATE TABLE audit_keys (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  wrapped     bytea NOT NULL,
  key_version int NOT NULL,
  created_at  timestamptz NOT NULL,
  PRIMARY KEY (tenant_id),
  FOREIGN KEY (tenant_id, key_version) REFERENCES tenant_keys (tenant_id, version)
);

-- Events sealed in batches, each of which continues the one before it (AUD-2). `leaves` has place and hash of every event;
-- `root` is their Merkle root, `hash` covers it with all that stands beside it and with the batch before, `seal` is keyed: who
-- can write here but has no key cannot make a batch. Of two who seal at once one wins, by primary key. A batch begins where
-- the one before it ended, and ends at an event that is there. Rows that came without an event are listed in `rows`; a batch may
-- have such a list and no event. `rows_until` is the time up to which it was looked for them.
CREATE TABLE chain_batches (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  number     bigint NOT NULL CHECK (number > 0),
  prev       bigint CHECK (prev = number - 1),
  prev_hash  bytea CHECK (length(prev_hash) = 32),
  after_seq  bigint,
  after_n    smallint,
  first_seq  bigint NOT NULL,
  last_seq   bigint NOT NULL,
  last_n     smallint NOT NULL,
  events     int NOT NULL,
  leaves     bytea NOT NULL CHECK (length(leaves) = 42 * events),
  root       bytea NOT NULL CHECK (length(root) = 32),
  hash       bytea NOT NULL CHECK (length(hash) = 32),
  seal       bytea NOT NULL CHECK (length(seal) = 32),
  sealed_at  timestamptz NOT NULL CHECK (isfinite(sealed_at)),
  rows       bytea,
  rows_until timestamptz,
  PRIMARY KEY (tenant_id, number),
  UNIQUE (tenant_id, number, hash, last_seq, last_n),
  CHECK ((number = 1) = (prev IS NULL)),
  CHECK (num_nonnulls(prev, prev_hash, after_seq, after_n) IN (0, 4)),
  CHECK (last_seq >= first_seq AND first_seq >= coalesce(after_seq, 1)),
  CONSTRAINT chain_batches_events_check CHECK (events > 0 OR (events = 0 AND rows IS NOT NULL)),
  CONSTRAINT chain_batches_goes_on CHECK (
    (last_seq, last_n) > (coalesce(after_seq, 0), coalesce(after_n, 0))
    OR (events = 0 AND (last_seq, last_n) = (after_seq, after_n))),
  CONSTRAINT chain_batches_rows_until CHECK ((rows IS NULL) = (rows_until IS NULL)),
  FOREIGN KEY (tenant_id, prev, prev_hash, after_seq, after_n)
    REFERENCES chain_batches (tenant_id, number, hash, last_seq, last_n),
  FOREIGN KEY (tenant_id, last_seq, last_n) REFERENCES events (tenant_id, seq, n)
);

-- No samples of content and keys.
SELECT no_samples('audit_keys', 'wrapped');

-- Which rows a transaction sees and writes.
SELECT rows_of_tenant('audit_keys', 'chain_batches');
SELECT rows_of_transaction('events', 'tenant_emit');

-- Who may do what.
GRANT SELECT, INSERT ON events, audit_keys TO muniment_writer;
GRANT SELECT ON events, audit_keys, chain_batches TO muniment_auditor;
GRANT SELECT, INSERT ON events TO muniment_privacy;
GRANT SELECT ON audit_keys TO muniment_privacy;
GRANT SELECT, INSERT ON events, chain_batches TO muniment_jobs;
GRANT SELECT (tenant_id, created_at) ON audit_keys TO muniment_jobs;
