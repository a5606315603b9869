-- API keys: who a request comes from when a program makes it.

-- The secret is nowhere: `digest` is a hash of it and of all that the key stands for, under a key derived from the tenant's
-- own data key, so that a row that was moved, copied or changed opens nothing. `label` is sealed under the key of the user it
-- is for, else the tenant's own.
CREATE TABLE api_keys (
  tenant_id    text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  key_id       text COLLATE "C" NOT NULL,
  digest       bytea NOT NULL CHECK (length(digest) = 32),
  label        bytea,
  principal_id text COLLATE "C" NOT NULL CHECK (principal_id <> ''),
  kind         text COLLATE "C" NOT NULL CHECK (kind IN ('agent', 'operator', 'system')),
  roles        text[] COLLATE "C" NOT NULL CHECK (
    cardinality(roles) > 0 AND roles <@ ARRAY['agent', 'reviewer', 'correction_writer', 'privacy_officer', 'auditor', 'admin']
  ),
  user_id      text COLLATE "C" CHECK (user_id <> ''),
  clearance    text[] COLLATE "C" NOT NULL,
  created_at   timestamptz NOT NULL,
  created_by   text COLLATE "C" NOT NULL,
  expires_at   timestamptz,
  last_used_at timestamptz,
  revoked_at   timestamptz,
  revoked_by   text COLLATE "C",
  PRIMARY KEY (tenant_id, key_id),
  CHECK (expires_at > created_at),
  CHECK ((revoked_at IS NULL) = (revoked_by IS NULL)),
  CHECK (kind <> 'agent' OR roles = ARRAY['agent']),
  CHECK (user_id IS NULL OR 'agent' = ANY (roles))
);
ALTER TABLE api_keys ALTER COLUMN digest SET STATISTICS 0;
ALTER TABLE api_keys ALTER COLUMN label SET STATISTICS 0;
ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY;
ALTER TABLE api_keys FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON api_keys FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_add ON api_keys FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND revoked_at IS NULL);
-- What was revoked stays so.
CREATE POLICY until_revoked ON api_keys FOR UPDATE TO muniment_writer
  USING (tenant_id = current_setting('muniment.tenant', true) AND revoked_at IS NULL)
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));
-- An erasure forgets the user, and only of a key that is revoked: without its user a live one would reach further. Once.
CREATE POLICY forget_user ON api_keys FOR UPDATE TO muniment_privacy
  USING (tenant_id = current_setting('muniment.tenant', true) AND user_id IS NOT NULL)
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND user_id IS NULL AND label IS NULL AND revoked_at IS NOT NULL);
GRANT SELECT, INSERT, UPDATE (last_used_at, revoked_at, revoked_by) ON api_keys TO muniment_writer;
-- Whoever presents a key is looked up as recall: a tenant that writes much is not slower to be let in.
GRANT SELECT (tenant_id, key_id, digest, principal_id, kind, roles, user_id, clearance, expires_at, last_used_at, revoked_at) ON api_keys TO muniment_recall;
GRANT SELECT (tenant_id, key_id, label, principal_id, kind, roles, user_id, clearance, created_at, created_by, expires_at, last_used_at, revoked_at, revoked_by) ON api_keys TO muniment_auditor;
GRANT SELECT (tenant_id, key_id, user_id, revoked_at, revoked_by), UPDATE (label, user_id, revoked_at, revoked_by) ON api_keys TO muniment_privacy;
