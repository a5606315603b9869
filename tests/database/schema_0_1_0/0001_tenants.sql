-- Roles by task, tenants, their keys, their clock, and the events that follow it.
--
-- Every table with a tenant has forced row-level security in the same migration: a row is seen and written
-- only by a transaction that has set muniment.tenant to its tenant. No setting, or the empty string that a
-- used-up setting falls back to: nothing. Triggers and functions are avoided throughout, so that the same
-- schema can be distributed by tenant_id.

CREATE EXTENSION IF NOT EXISTS vector SCHEMA public;

DO $$
DECLARE task text;
BEGIN
  FOREACH task IN ARRAY ARRAY['writer', 'recall', 'auditor', 'privacy', 'jobs'] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'muniment_' || task) THEN
      EXECUTE format('CREATE ROLE %I LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS NOINHERIT', 'muniment_' || task);
    END IF;
    EXECUTE format('GRANT USAGE ON SCHEMA muniment TO %I', 'muniment_' || task);
    EXECUTE format('GRANT SELECT ON muniment.schema_migrations TO %I', 'muniment_' || task);
  END LOOP;
END $$;

-- The list of tenants: the jobs walk all of it, the writer may add its own, nobody else sees any of it.
CREATE TABLE tenants (
  tenant_id  text COLLATE "C" PRIMARY KEY CHECK (tenant_id <> ''),
  created_at timestamptz NOT NULL
);
ALTER TABLE tenants ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenants FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON tenants FOR INSERT WITH CHECK (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY every_tenant ON tenants FOR SELECT TO muniment_jobs USING (true);
GRANT INSERT ON tenants TO muniment_writer;
GRANT SELECT ON tenants TO muniment_jobs;

-- The tenant's key, wrapped by the master key. Content is sealed under subjects' keys, those under this one.
CREATE TABLE tenant_keys (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  version    int NOT NULL CHECK (version > 0),
  wrapped    bytea NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, version)
);
ALTER TABLE tenant_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenant_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON tenant_keys USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON tenant_keys TO muniment_writer;
GRANT SELECT ON tenant_keys TO muniment_recall, muniment_auditor, muniment_privacy;

-- One data key per holder: a CEID, '@user', or '*' for the tenant itself. Locking the row in share mode holds
-- off a revocation or an erasure; the column `lock` cannot change and only carries the right to lock.
CREATE TABLE subjects (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  holder      text COLLATE "C" NOT NULL CHECK (holder <> ''),
  wrapped_key bytea,
  key_version int NOT NULL,
  created_at  timestamptz NOT NULL,
  lock        smallint NOT NULL DEFAULT 0 CHECK (lock = 0),
  PRIMARY KEY (tenant_id, holder),
  FOREIGN KEY (tenant_id, key_version) REFERENCES tenant_keys (tenant_id, version)
) PARTITION BY HASH (tenant_id);
ALTER TABLE subjects ENABLE ROW LEVEL SECURITY;
ALTER TABLE subjects FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON subjects USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT, UPDATE (lock) ON subjects TO muniment_writer, muniment_privacy;
GRANT SELECT ON subjects TO muniment_recall, muniment_auditor;

-- The tenant's clock: its row is the last lock before a commit, so numbers follow the order of commits.
CREATE TABLE tenant_clock (
  tenant_id text COLLATE "C" PRIMARY KEY CHECK (tenant_id <> ''),
  seq       bigint NOT NULL DEFAULT 0,
  at        timestamptz CHECK (isfinite(at)),
  prev_at   timestamptz
) WITH (fillfactor = 10);
ALTER TABLE tenant_clock ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenant_clock FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON tenant_clock USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT, UPDATE (seq, at, prev_at) ON tenant_clock TO muniment_writer, muniment_privacy;
GRANT SELECT ON tenant_clock TO muniment_recall, muniment_auditor;

-- Every number that was taken. Each continues the one before it and cannot be earlier; each belongs to the
-- transaction that took it. What carries (seq, at, txid) of a tick can therefore not be back-dated.
CREATE TABLE ticks (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  seq       bigint NOT NULL CHECK (seq > 0),
  at        timestamptz NOT NULL CHECK (isfinite(at)),
  prev_seq  bigint CHECK (prev_seq = seq - 1),
  prev_at   timestamptz CHECK (prev_at <= at),
  txid      xid8 NOT NULL,
  PRIMARY KEY (tenant_id, seq),
  UNIQUE (tenant_id, seq, at, txid),
  UNIQUE (tenant_id, seq, at),
  CHECK ((seq = 1) = (prev_seq IS NULL)),
  CHECK ((prev_seq IS NULL) = (prev_at IS NULL)),
  FOREIGN KEY (tenant_id, prev_seq, prev_at) REFERENCES ticks (tenant_id, seq, at)
);
ALTER TABLE ticks ENABLE ROW LEVEL SECURITY;
ALTER TABLE ticks FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON ticks FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_tick ON ticks FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = pg_current_xact_id());
GRANT SELECT, INSERT ON ticks TO muniment_writer, muniment_privacy;
GRANT SELECT ON ticks TO muniment_recall, muniment_auditor;

-- What happened, as canonical bytes: ids, classes, reasons and counts, never content.
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
  PRIMARY KEY (tenant_id, seq, n),
  UNIQUE (tenant_id, event_id),
  FOREIGN KEY (tenant_id, seq, at, txid) REFERENCES ticks (tenant_id, seq, at, txid)
);
ALTER TABLE events ENABLE ROW LEVEL SECURITY;
ALTER TABLE events FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON events FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_emit ON events FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = pg_current_xact_id());
GRANT SELECT, INSERT ON events TO muniment_writer, muniment_privacy;
GRANT SELECT ON events TO muniment_auditor;

-- Packs: immutable once registered. Their labels stand beside them so that a memory's `sensitive` is the pack's word.
CREATE TABLE packs (
  tenant_id        text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  pack             text COLLATE "C" NOT NULL,
  pack_id          text COLLATE "C" NOT NULL,
  version          text COLLATE "C" NOT NULL,
  ontology_version text COLLATE "C" NOT NULL,
  digest           text NOT NULL,
  document         jsonb NOT NULL,
  seq              bigint NOT NULL,
  registered_at    timestamptz NOT NULL,
  registered_by    text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant_id, pack),
  CHECK (pack = pack_id || '@' || version)
);
ALTER TABLE packs ENABLE ROW LEVEL SECURITY;
ALTER TABLE packs FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON packs USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON packs TO muniment_writer;
GRANT SELECT ON packs TO muniment_recall, muniment_auditor, muniment_privacy;

CREATE TABLE pack_labels (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  pack      text COLLATE "C" NOT NULL,
  label     text COLLATE "C" NOT NULL,
  rank      smallint NOT NULL,
  sensitive boolean NOT NULL,
  PRIMARY KEY (tenant_id, pack, label),
  UNIQUE (tenant_id, pack, label, sensitive),
  FOREIGN KEY (tenant_id, pack) REFERENCES packs (tenant_id, pack)
);
ALTER TABLE pack_labels ENABLE ROW LEVEL SECURITY;
ALTER TABLE pack_labels FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON pack_labels USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON pack_labels TO muniment_writer;
GRANT SELECT ON pack_labels TO muniment_recall, muniment_auditor;
