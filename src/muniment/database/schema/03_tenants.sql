-- Tenants: their keys, and the clock that numbers and dates all that happens in a tenant.
--
-- Every row of every table belongs to a tenant, and `tenant_id` is the first column of every key and foreign key: no row can
-- point at another tenant's. Ids are compared byte for byte (COLLATE "C", ISO-4). There are no triggers and few functions, so
-- that the tables can be distributed over a cluster by tenant.

-- Which server this is: its system identifier, its timeline and the database, in 22 bits that are never all zero. It does
-- not change while a connection lives, so that plans may keep it: reading it takes 25 microseconds.
CREATE FUNCTION server_mark() RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN greatest(1, ('x' || left(md5(
  (SELECT system_identifier FROM pg_control_system())::text
  || ':' || left(pg_walfile_name(pg_current_wal_lsn()), 8)
  || ':' || (SELECT oid FROM pg_database WHERE datname = current_database())::text), 6))::bit(24)::bigint & 4194303);

-- This transaction among those of all servers: after a restore on another one the ids of transactions come round again (SCL-5).
CREATE FUNCTION transaction_mark() RETURNS xid8 LANGUAGE sql STABLE PARALLEL SAFE
RETURN ((muniment.server_mark() << 40) | (pg_current_xact_id()::text::bigint & 1099511627775))::text::xid8;

-- How far ahead of the database's own clock a tenant's may be dated (AUD-5); none where it is null. Only the owner of the
-- schema can replace it. Homes for tests have none.
CREATE FUNCTION clock_bound() RETURNS interval LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN interval '5 minutes';

REVOKE ALL ON FUNCTION name_characters(), name_keys(text), is_among(text, text[]), server_mark(), transaction_mark(), clock_bound() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION name_characters(), name_keys(text), is_among(text, text[]), server_mark(), transaction_mark(), clock_bound() TO muniment_writer, muniment_recall, muniment_auditor, muniment_privacy, muniment_jobs, muniment_subject;

-- The list of tenants: the jobs walk all of it, the writer may add its own, nobody else sees any of it.
CREATE TABLE tenants (
  tenant_id  text COLLATE "C" PRIMARY KEY CHECK (tenant_id <> ''),
  created_at timestamptz NOT NULL
);

-- The tenant's key, wrapped by the master key. Content is sealed under subjects' keys, those are wrapped by this one (ERA-1).
-- The writer gives a tenant its first key; later versions come by rotation (ERA-4).
CREATE TABLE tenant_keys (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  version    int NOT NULL CHECK (version > 0),
  wrapped    bytea NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, version)
);

-- One data key per holder: a CEID, '@user', or '*' for the tenant itself; null once it is destroyed (ERA-2). A share lock on the
-- row holds off a revocation or an erasure (PRO-7); the column `lock` cannot change and only carries the right to lock.
-- `display_name` is what people call them, sealed under their own key: it goes when that is destroyed.
CREATE TABLE subjects (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  holder      text COLLATE "C" NOT NULL CHECK (holder <> ''),
  wrapped_key bytea,
  key_version int NOT NULL,
  created_at  timestamptz NOT NULL,
  lock        smallint NOT NULL DEFAULT 0 CHECK (lock = 0),
  display_name bytea,
  PRIMARY KEY (tenant_id, holder),
  -- A name that nobody can open is nobody's.
  CONSTRAINT subjects_named_while_known CHECK (display_name IS NULL OR wrapped_key IS NOT NULL),
  FOREIGN KEY (tenant_id, key_version) REFERENCES tenant_keys (tenant_id, version)
) PARTITION BY HASH (tenant_id);
SELECT divide_by_tenant('subjects', 'wrapped_key', 'display_name');

-- The tenant's clock: its row is the last lock before a commit, so that numbers follow the order of commits (AUD-1). The jobs
-- see the clocks of all tenants, to know where work waits.
CREATE TABLE tenant_clock (
  tenant_id text COLLATE "C" PRIMARY KEY CHECK (tenant_id <> ''),
  seq       bigint NOT NULL DEFAULT 0,
  at        timestamptz CHECK (isfinite(at)),
  prev_at   timestamptz
) WITH (fillfactor = 10);

-- Every number that was taken. Each continues the one before it, cannot be earlier, and belongs to the transaction that took
-- it. What carries (seq, at, txid) of a tick by foreign key can therefore not be dated back. `reset` is the number itself
-- where an admin brought the clock back: the one step in which time may go backwards.
-- `visible_seq` is the number itself where the transaction may change what a recall sees; the rows that do so refer to
-- it, and to no other tick. The last of them is the tenant's visibility number: while it and its random `mark` are the
-- same, an index of memories in a process is up to date (ADR 55). A restored database has other marks after the restore.
CREATE TABLE ticks (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  seq       bigint NOT NULL CHECK (seq > 0),
  at        timestamptz NOT NULL CHECK (isfinite(at)),
  prev_seq  bigint CHECK (prev_seq = seq - 1),
  prev_at   timestamptz,
  txid      xid8 NOT NULL,
  reset     bigint,
  visible_seq bigint,
  mark      uuid NOT NULL DEFAULT gen_random_uuid(),
  PRIMARY KEY (tenant_id, seq),
  UNIQUE (tenant_id, seq, at, txid),
  UNIQUE (tenant_id, seq, at),
  CONSTRAINT ticks_visible UNIQUE (tenant_id, visible_seq, at, txid),
  CONSTRAINT ticks_visible_is_its_number CHECK (visible_seq = seq),
  CONSTRAINT ticks_check2 CHECK ((seq = 1) = (prev_seq IS NULL)),
  CONSTRAINT ticks_check3 CHECK ((prev_seq IS NULL) = (prev_at IS NULL)),
  CONSTRAINT ticks_forward CHECK (prev_at <= at OR reset IS NOT NULL),
  CONSTRAINT ticks_reset CHECK (reset IS NULL OR (reset = seq AND prev_at IS NOT NULL)),
  FOREIGN KEY (tenant_id, prev_seq, prev_at) REFERENCES ticks (tenant_id, seq, at)
);

-- That an admin brought a tenant's clock back (AUD-5): only from a clock that is ahead of the database's, and to the database's
-- own time; where there is no bound, to any earlier one.
CREATE TABLE clock_resets (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  seq       bigint NOT NULL,
  at        timestamptz NOT NULL,
  prev_at   timestamptz NOT NULL,
  txid      xid8 NOT NULL,
  reset_by  text COLLATE "C" NOT NULL CHECK (reset_by <> ''),
  reason    text NOT NULL CHECK (reason <> ''),
  PRIMARY KEY (tenant_id, seq),
  UNIQUE (tenant_id, seq, at, prev_at),
  FOREIGN KEY (tenant_id, seq, at, txid) REFERENCES ticks (tenant_id, seq, at, txid),
  CHECK (at < prev_at)
);
ALTER TABLE ticks ADD CONSTRAINT ticks_reset_recorded FOREIGN KEY (tenant_id, reset, at, prev_at)
  REFERENCES clock_resets (tenant_id, seq, at, prev_at) DEFERRABLE INITIALLY DEFERRED;

-- No samples of content and keys.
SELECT no_samples('tenant_keys', 'wrapped');

-- Which rows a transaction sees and writes.
SELECT rows_of_tenant('subjects');
-- Of the tenant's keys the writer makes the first; the officer's rotation makes others, and the owner takes old ones away.
SELECT add_policy('tenant_keys', 'tenant', 'ALL', login => 'recall, auditor, privacy, jobs, owner');
SELECT add_policy('tenant_keys', 'writer_read', 'SELECT', login => 'writer');
SELECT add_policy('tenant_keys', 'first_key', 'INSERT', writes => 'version = 1', login => 'writer');
SELECT add_policy('tenants', 'tenant', 'INSERT');
CREATE POLICY every_tenant ON tenants FOR SELECT TO muniment_jobs USING (true);
SELECT add_policy('tenant_clock', 'tenant', 'ALL',
  writes => $$coalesce(at, '-infinity') <= coalesce(statement_timestamp() + muniment.clock_bound(), 'infinity')$$);
CREATE POLICY every_tenant ON tenant_clock FOR SELECT TO muniment_jobs USING (true);
SELECT rows_of_transaction('ticks', 'tenant_tick',
  writes => $$at <= coalesce(statement_timestamp() + muniment.clock_bound(), 'infinity')$$);
SELECT rows_of_transaction('clock_resets', 'tenant_reset', writes => $$
  prev_at > CASE WHEN muniment.clock_bound() IS NULL THEN '-infinity' ELSE statement_timestamp() END
  AND at >= coalesce(statement_timestamp() - muniment.clock_bound(), '-infinity')
  AND at <= coalesce(statement_timestamp() + muniment.clock_bound(), 'infinity')$$);

-- Who may do what.
GRANT INSERT ON tenants TO muniment_writer;
GRANT SELECT, INSERT ON tenant_keys, ticks, clock_resets TO muniment_writer;
GRANT SELECT ON tenant_keys, subjects, tenant_clock, ticks, clock_resets TO muniment_recall, muniment_auditor;
GRANT SELECT, INSERT ON tenant_keys, ticks TO muniment_privacy;
GRANT SELECT, INSERT ON ticks TO muniment_jobs;
GRANT SELECT ON tenants TO muniment_jobs;
GRANT SELECT, INSERT, UPDATE (lock) ON subjects TO muniment_writer, muniment_privacy;
GRANT UPDATE (display_name) ON subjects TO muniment_writer;
GRANT SELECT (tenant_id, holder), UPDATE (lock) ON subjects TO muniment_jobs;
GRANT SELECT, INSERT, UPDATE (seq, at, prev_at) ON tenant_clock TO muniment_writer, muniment_privacy, muniment_jobs;
