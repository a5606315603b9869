-- Requests: that one was made under a key of its caller's, in the transaction of what it asked for, and what was answered.

-- `key` and `fingerprint` are keyed digests of the caller's key and of what was asked; neither can be told from them.
-- `answer` is sealed under a key that only the tenant's own data key and the caller's key make together, and the caller's is
-- kept nowhere. An answer is written once, and not any more where `closed` says so: an erasure came after the claim. Of two
-- who make the same request at once one wins, by primary key.
CREATE TABLE requests (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  principal   text COLLATE "C" NOT NULL,
  key         bytea NOT NULL CHECK (length(key) = 32),
  fingerprint bytea NOT NULL CHECK (length(fingerprint) = 32),
  at          timestamptz NOT NULL CHECK (isfinite(at)),
  status      smallint CHECK (status BETWEEN 100 AND 599),
  answer      bytea CHECK (status IS NOT NULL OR answer IS NULL),
  closed      boolean NOT NULL DEFAULT false CHECK (NOT closed OR answer IS NULL),
  CONSTRAINT requests_once PRIMARY KEY (tenant_id, principal, key)
);
ALTER TABLE requests ALTER COLUMN answer SET STATISTICS 0;
ALTER TABLE requests ENABLE ROW LEVEL SECURITY;
ALTER TABLE requests FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON requests FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY claim ON requests FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND status IS NULL AND NOT closed);
CREATE POLICY answer_once ON requests FOR UPDATE TO muniment_writer
  USING (tenant_id = current_setting('muniment.tenant', true) AND status IS NULL AND NOT closed)
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND status IS NOT NULL);
CREATE POLICY close_once ON requests FOR UPDATE TO muniment_privacy
  USING (tenant_id = current_setting('muniment.tenant', true) AND NOT closed)
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND closed AND answer IS NULL);
CREATE POLICY outlived ON requests FOR DELETE TO muniment_jobs USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT, UPDATE (status, answer) ON requests TO muniment_writer;
GRANT SELECT (tenant_id, key, closed), INSERT, UPDATE (answer, closed) ON requests TO muniment_privacy;
GRANT SELECT (tenant_id, at), DELETE ON requests TO muniment_jobs;
CREATE INDEX requests_by_time ON requests (tenant_id, at);
