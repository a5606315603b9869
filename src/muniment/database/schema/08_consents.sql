-- The consent ledger, append-only: a revocation or a renewal is a new record that supersedes one before it (CON-1).

-- Two records cannot supersede the same one: of two officers at once one wins. `root_id` names the first of an
-- unbroken chain of renewals; a memory keeps the root and lives as long as the chain's last record allows it. `predicates` may
-- end in *. `stated_at` and `stated_auditor` are what a consent document says of itself, kept elsewhere before (CON-8): when it was
-- captured or revoked there, and who audited it; `captured_at` and `auditor_id` are when and by whom it was recorded here.
CREATE TABLE consents (
  tenant_id    text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  consent_id   text COLLATE "C" NOT NULL,
  seq          bigint NOT NULL,
  action       text NOT NULL CHECK (action IN ('grant', 'revoke')),
  subject      text COLLATE "C" NOT NULL,
  purpose      text COLLATE "C" NOT NULL,
  predicates   text[] COLLATE "C" NOT NULL,
  labels       text[] COLLATE "C" NOT NULL,
  basis        text COLLATE "C" NOT NULL,
  captured_at  timestamptz NOT NULL,
  valid_from   timestamptz NOT NULL,
  valid_until  timestamptz NOT NULL DEFAULT 'infinity',
  auditor_id   text COLLATE "C" NOT NULL,
  supersedes   text COLLATE "C",
  root_id      text COLLATE "C" NOT NULL,
  evidence     bytea NOT NULL,
  txid         xid8 NOT NULL,
  stated_at      timestamptz,
  stated_auditor text COLLATE "C",
  PRIMARY KEY (tenant_id, consent_id),
  UNIQUE (tenant_id, supersedes),
  UNIQUE (tenant_id, consent_id, subject),
  UNIQUE (tenant_id, consent_id, root_id),
  UNIQUE (tenant_id, consent_id, subject, purpose),
  FOREIGN KEY (tenant_id, root_id, subject, purpose) REFERENCES consents (tenant_id, consent_id, subject, purpose),
  FOREIGN KEY (tenant_id, supersedes, subject) REFERENCES consents (tenant_id, consent_id, subject),
  FOREIGN KEY (tenant_id, seq, captured_at, txid) REFERENCES ticks (tenant_id, visible_seq, at, txid),
  CHECK (valid_until > valid_from),
  CHECK (action = 'grant' OR supersedes IS NOT NULL),
  CONSTRAINT consents_stated CHECK (stated_at <= captured_at AND (stated_auditor IS NULL OR stated_at IS NOT NULL))
);
CREATE INDEX consents_by_subject ON consents (tenant_id, subject);
CREATE INDEX consents_by_root ON consents (tenant_id, root_id);

-- That the memories of an ended consent were taken away: once per unbroken chain of consents (CON-4).
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

-- No samples of content and keys.
SELECT no_samples('consents', 'evidence');

-- Which rows a transaction sees and writes.
SELECT rows_of_transaction('consents', 'tenant_record');
-- An erasure blanks content as the owner (`erase_content`).
SELECT add_policy('consents', 'blank', 'UPDATE', login => 'owner');
SELECT rows_of_transaction('consent_sweeps', 'tenant_sweep');

-- Who may do what.
GRANT SELECT ON consents, consent_sweeps TO muniment_writer, muniment_auditor;
GRANT SELECT ON consents TO muniment_recall, muniment_jobs;
GRANT SELECT, INSERT ON consents TO muniment_privacy;
GRANT SELECT ON consent_sweeps TO muniment_privacy;
GRANT SELECT, INSERT ON consent_sweeps TO muniment_jobs;
