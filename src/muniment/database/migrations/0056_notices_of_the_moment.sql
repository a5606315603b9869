-- What is sent to a person follows their API keys, or when they were last seen without one; and each chooses the time and the time
-- zone of a digest. Nobody knows how those came who made settings before: they count as seen now, unless they ever had a key.
-- oldest program: 0053

ALTER TABLE notices ADD COLUMN at text COLLATE "C" NOT NULL DEFAULT '07:00';
ALTER TABLE notices ADD COLUMN time_zone text COLLATE "C" NOT NULL DEFAULT 'UTC';
ALTER TABLE notices ADD COLUMN seen_at timestamptz DEFAULT now();
ALTER TABLE notices ADD COLUMN seen_roles text[] COLLATE "C";
ALTER TABLE notices ADD CONSTRAINT notices_time CHECK (at ~ '^([01][0-9]|2[0-3]):[0-5][0-9]$' AND length(time_zone) <= 64);
GRANT UPDATE (seen_at, seen_roles) ON notices TO muniment_writer;
CREATE INDEX api_keys_by_principal ON api_keys (tenant_id, principal_id) WHERE kind = 'operator';
