-- Archives: captures that left the database for a file, by which they are still found.

CREATE TABLE archives (
  tenant_id        text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  archive_id       text COLLATE "C" NOT NULL,
  seq              bigint NOT NULL,
  archived_at      timestamptz NOT NULL,
  txid             xid8 NOT NULL,
  kind             text NOT NULL,
  ontology_version text COLLATE "C" NOT NULL,
  captures         int NOT NULL CHECK (captures > 0),
  last_at          timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, archive_id),
  FOREIGN KEY (tenant_id, seq, archived_at, txid) REFERENCES ticks (tenant_id, seq, at, txid)
);

-- The file of an archive as it is now: written anew where an erasure reached into it, gone after its retention. Each revision
-- belongs to a number, whose event names its digest: the audit chain proves the files too.
CREATE TABLE archive_files (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  archive_id text COLLATE "C" NOT NULL,
  revision   int NOT NULL CHECK (revision > 0),
  digest     bytea NOT NULL CHECK (length(digest) = 32),
  bytes      bigint NOT NULL CHECK (bytes >= 0),
  dropped    boolean NOT NULL,
  written_at timestamptz NOT NULL,
  seq        bigint NOT NULL,
  txid       xid8 NOT NULL,
  PRIMARY KEY (tenant_id, archive_id, revision),
  FOREIGN KEY (tenant_id, archive_id) REFERENCES archives (tenant_id, archive_id),
  FOREIGN KEY (tenant_id, seq, written_at, txid) REFERENCES ticks (tenant_id, seq, at, txid)
);

-- What is still known of an archived capture: where it is, and whom an erasure would find in it.
CREATE TABLE archived_captures (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  capture_id  text COLLATE "C" NOT NULL,
  archive_id  text COLLATE "C" NOT NULL,
  seq         bigint NOT NULL,
  captured_at timestamptz NOT NULL,
  holder      text COLLATE "C" NOT NULL,
  subject     text COLLATE "C",
  user_id     text COLLATE "C",
  entity      text COLLATE "C",
  vouched     text COLLATE "C",
  PRIMARY KEY (tenant_id, capture_id),
  FOREIGN KEY (tenant_id, archive_id) REFERENCES archives (tenant_id, archive_id)
);
CREATE INDEX archived_captures_by_archive ON archived_captures (tenant_id, archive_id);
-- By when they came, for figures of that time.
CREATE INDEX archived_captures_by_number ON archived_captures (tenant_id, seq);

-- Which rows a transaction sees and writes.
SELECT rows_of_tenant('archived_captures');
SELECT rows_of_transaction('archives', 'tenant_archive');
SELECT rows_of_transaction('archive_files', 'tenant_write');

-- Who may do what.
GRANT SELECT ON archives, archive_files, archived_captures TO muniment_writer, muniment_auditor;
GRANT SELECT ON archives, archived_captures TO muniment_privacy;
GRANT SELECT, INSERT ON archives, archive_files, archived_captures TO muniment_jobs;
