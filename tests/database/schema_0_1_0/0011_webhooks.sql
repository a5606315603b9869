-- Webhooks: where a tenant's events are posted, and how far each has come.

-- The address and the secrets are sealed under the tenant's own data key. `seq` and `n` are the last event that was
-- answered for; what follows is posted in order. Who posts holds `lease` until `leased_until`: killed, it is in nobody's
-- way for longer. A webhook that is parked stands at its event until a person lets it go on.
CREATE TABLE webhooks (
  tenant_id        text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  webhook_id       text COLLATE "C" NOT NULL,
  url              bytea NOT NULL,
  types            text[] COLLATE "C" NOT NULL,
  created_seq      bigint NOT NULL,
  created_at       timestamptz NOT NULL,
  created_by       text COLLATE "C" NOT NULL,
  secret           bytea,
  old_secret       bytea,
  old_secret_until timestamptz,
  seq              bigint NOT NULL CHECK (seq >= 0),
  n                smallint NOT NULL,
  tries            smallint NOT NULL DEFAULT 0 CHECK (tries >= 0),
  next_try_at      timestamptz,
  last_error       text CHECK (length(last_error) <= 64),
  parked_at        timestamptz,
  lease            text COLLATE "C",
  leased_until     timestamptz,
  removed_at       timestamptz,
  PRIMARY KEY (tenant_id, webhook_id),
  CHECK ((old_secret IS NULL) = (old_secret_until IS NULL)),
  CHECK ((lease IS NULL) = (leased_until IS NULL)),
  CHECK ((secret IS NULL) = (removed_at IS NOT NULL))
);
ALTER TABLE webhooks ALTER COLUMN url SET STATISTICS 0;
ALTER TABLE webhooks ALTER COLUMN secret SET STATISTICS 0;
ALTER TABLE webhooks ALTER COLUMN old_secret SET STATISTICS 0;
ALTER TABLE webhooks ENABLE ROW LEVEL SECURITY;
ALTER TABLE webhooks FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON webhooks FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_add ON webhooks FOR INSERT WITH CHECK (tenant_id = current_setting('muniment.tenant', true));
-- What was removed stays so.
CREATE POLICY until_removed ON webhooks FOR UPDATE
  USING (tenant_id = current_setting('muniment.tenant', true) AND removed_at IS NULL)
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON webhooks TO muniment_writer;
GRANT UPDATE (secret, old_secret, old_secret_until, seq, n, tries, next_try_at, last_error, parked_at, lease, leased_until, removed_at) ON webhooks TO muniment_writer;
GRANT SELECT, UPDATE (seq, n, tries, next_try_at, last_error, parked_at, lease, leased_until) ON webhooks TO muniment_jobs;
GRANT SELECT ON webhooks TO muniment_auditor;
