-- Bringing a tenant in from a backup of it (IMP-3): only where there is no such tenant, by the owner of the tables, in one
-- transaction.

-- That a tenant was restored, once for each backup that it came from: by whom, and a digest of the file.
CREATE TABLE tenant_restores (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  backup_id   text COLLATE "C" NOT NULL CHECK (backup_id <> ''),
  restored_at timestamptz NOT NULL,
  restored_by text COLLATE "C" NOT NULL CHECK (restored_by <> ''),
  digest      bytea NOT NULL CHECK (length(digest) = 32),
  txid        xid8 NOT NULL,
  PRIMARY KEY (tenant_id, backup_id)
);

-- Which rows a transaction sees and writes. A transaction of the owner that restores its tenant says so in `muniment.restoring`.
SELECT add_policy('tenant_restores', 'tenant_read', 'SELECT');
SELECT add_policy('tenant_restores', 'begin', 'INSERT', login => 'owner',
  writes => $$txid = muniment.transaction_mark() AND tenant_id = current_setting('muniment.restoring', true)$$);

-- Whoever owns the tables copies a tenant, one at a time, and with it that there is one.
SELECT add_policy('tenants', 'copied', 'SELECT', login => 'owner');

-- Who may do what.
GRANT SELECT ON tenant_restores TO muniment_auditor;

-- While its tenant is restored the owner writes rows as they were, with the numbers and transactions of another server.
DO $$
DECLARE place text;
BEGIN
  FOR place IN SELECT relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE relnamespace = 'muniment'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition AND attname = 'tenant_id'
    ORDER BY relname
  LOOP
    PERFORM add_policy(place, 'restore', 'INSERT', writes => $own$tenant_id = current_setting('muniment.restoring', true)$own$, login => 'owner');
  END LOOP;
END $$;
