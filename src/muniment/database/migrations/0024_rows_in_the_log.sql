-- Rows are held against the log (AUD-4): events list the rows they tell of, with keyed digests.

-- The key of the digests, wrapped by the tenant's key. It is never destroyed: no erasure names it, and no version of the
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
ALTER TABLE audit_keys ALTER COLUMN wrapped SET STATISTICS 0;
ALTER TABLE audit_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON audit_keys USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON audit_keys TO muniment_writer;
GRANT SELECT ON audit_keys TO muniment_privacy, muniment_auditor;
GRANT SELECT (tenant_id, created_at) ON audit_keys TO muniment_jobs;

-- The audit key wrapped anew under a later key of the tenant, if it is as it was read.
CREATE FUNCTION rewrap_audit_key(whose text, before bytea, anew bytea, version int) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = muniment, pg_temp AS $$
  UPDATE audit_keys SET wrapped = anew, key_version = version
  WHERE tenant_id = whose AND tenant_id = current_setting('muniment.tenant') AND wrapped = before AND key_version < version
$$;
REVOKE ALL ON FUNCTION rewrap_audit_key(text, bytea, bytea, int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rewrap_audit_key(text, bytea, bytea, int) TO muniment_privacy;

CREATE OR REPLACE FUNCTION drop_tenant_keys(before int) RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = muniment, pg_temp AS $$
  DELETE FROM tenant_keys k WHERE k.tenant_id = current_setting('muniment.tenant') AND k.version < before
    AND NOT EXISTS (SELECT FROM subjects s WHERE s.tenant_id = k.tenant_id AND s.key_version = k.version)
    AND NOT EXISTS (SELECT FROM audit_keys a WHERE a.tenant_id = k.tenant_id AND a.key_version = k.version);
  SELECT count(*) FROM tenant_keys k WHERE k.tenant_id = current_setting('muniment.tenant') AND k.version < before
$$;

-- The rows an event tells of: forms, ids and keyed digests, packed. The event's hash covers them; nobody is sent them.
ALTER TABLE events ADD COLUMN rows bytea;
CREATE INDEX events_with_rows ON events (tenant_id, seq, n) WHERE rows IS NOT NULL;

-- Rows that came without an event are listed by a batch of the chain, whose hash covers the list; a batch may have such a
-- list and no event. `rows_until` is the time up to which it was looked for them.
ALTER TABLE chain_batches ADD COLUMN rows bytea;
ALTER TABLE chain_batches ADD COLUMN rows_until timestamptz;
ALTER TABLE chain_batches DROP CONSTRAINT chain_batches_events_check;
ALTER TABLE chain_batches DROP CONSTRAINT chain_batches_check5;
ALTER TABLE chain_batches ADD CONSTRAINT chain_batches_events_check CHECK (events > 0 OR (events = 0 AND rows IS NOT NULL));
ALTER TABLE chain_batches ADD CONSTRAINT chain_batches_goes_on CHECK (
  (last_seq, last_n) > (coalesce(after_seq, 0), coalesce(after_n, 0))
  OR (events = 0 AND (last_seq, last_n) = (after_seq, after_n)));
ALTER TABLE chain_batches ADD CONSTRAINT chain_batches_rows_until CHECK ((rows IS NULL) = (rows_until IS NULL));

-- The rows that lost their content in this very transaction, which an erasure's event tells of. The transaction that wrote
-- a row last stands in its header.
CREATE FUNCTION blanked_rows(whose text) RETURNS TABLE (form text, id text) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = muniment, pg_temp AS $$
  SELECT 'captures', capture_id FROM captures
  WHERE tenant_id = whose AND tenant_id = current_setting('muniment.tenant') AND content = '' AND xmin = pg_current_xact_id()::xid
  UNION ALL
  SELECT 'candidates', candidate_id FROM candidates
  WHERE tenant_id = whose AND tenant_id = current_setting('muniment.tenant') AND content = '' AND xmin = pg_current_xact_id()::xid
  UNION ALL
  SELECT 'verdicts', verdict_id FROM verdicts
  WHERE tenant_id = whose AND tenant_id = current_setting('muniment.tenant') AND remark IS NULL AND xmin = pg_current_xact_id()::xid
  UNION ALL
  SELECT 'consents', consent_id FROM consents
  WHERE tenant_id = whose AND tenant_id = current_setting('muniment.tenant') AND evidence = '' AND xmin = pg_current_xact_id()::xid
  UNION ALL
  SELECT 'recalls', recall_id FROM recalls
  WHERE tenant_id = whose AND tenant_id = current_setting('muniment.tenant') AND query IS NULL AND xmin = pg_current_xact_id()::xid
$$;
REVOKE ALL ON FUNCTION blanked_rows(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION blanked_rows(text) TO muniment_privacy;
