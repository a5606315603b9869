-- The consent ledger, append-only: a revocation or a renewal is a new record that supersedes one before it.

-- Two records cannot supersede the same one: of two officers at once one wins. `root_id` names the first of an
-- unbroken chain of renewals; a memory keeps the root and lives as long as the chain's last record allows it.
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
  PRIMARY KEY (tenant_id, consent_id),
  UNIQUE (tenant_id, supersedes),
  UNIQUE (tenant_id, consent_id, subject),
  UNIQUE (tenant_id, consent_id, root_id),
  UNIQUE (tenant_id, consent_id, subject, purpose),
  FOREIGN KEY (tenant_id, root_id, subject, purpose) REFERENCES consents (tenant_id, consent_id, subject, purpose),
  FOREIGN KEY (tenant_id, supersedes, subject) REFERENCES consents (tenant_id, consent_id, subject),
  FOREIGN KEY (tenant_id, seq, captured_at, txid) REFERENCES ticks (tenant_id, seq, at, txid),
  CHECK (valid_until > valid_from),
  CHECK (action = 'grant' OR supersedes IS NOT NULL)
);
CREATE INDEX consents_by_subject ON consents (tenant_id, subject);
CREATE INDEX consents_by_root ON consents (tenant_id, root_id);
ALTER TABLE consents ENABLE ROW LEVEL SECURITY;
ALTER TABLE consents FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON consents FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_record ON consents FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = pg_current_xact_id());
GRANT SELECT, INSERT ON consents TO muniment_privacy;
GRANT SELECT ON consents TO muniment_writer, muniment_recall, muniment_auditor;
