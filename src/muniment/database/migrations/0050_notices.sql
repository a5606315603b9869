-- People are told outside the console: alerts and summaries by mail, in a chat and in the browser.

-- include migrations/helpers_until_0050.sql

-- One row for each channel of a person; another setting of the channel is another row, and the earlier one is removed. The
-- address is sealed under the tenant's own data key and goes with the removal. `roles` are those that the person had: nothing is
-- told that they could not read. `seq` and `n` are the last event that was looked at and, if it concerned the person, told. Who
-- sends holds `lease` until `leased_until`.
CREATE TABLE notices (
  tenant_id    text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  notice_id    text COLLATE "C" NOT NULL,
  person       text COLLATE "C" NOT NULL,
  channel      text COLLATE "C" NOT NULL CHECK (channel IN ('mail', 'chat', 'browser')),
  roles        text[] COLLATE "C" NOT NULL,
  classes      text[] COLLATE "C" NOT NULL,
  kinds        text[] COLLATE "C" NOT NULL,
  digest       text COLLATE "C" CHECK (digest IN ('hourly', 'daily')),
  created_seq  bigint NOT NULL,
  created_at   timestamptz NOT NULL,
  address      bytea,
  seq          bigint NOT NULL CHECK (seq >= 0),
  n            smallint NOT NULL,
  digest_at    timestamptz,
  sent_at      timestamptz,
  tries        smallint NOT NULL DEFAULT 0 CHECK (tries >= 0),
  next_try_at  timestamptz,
  last_error   text CHECK (length(last_error) <= 64),
  lease        text COLLATE "C",
  leased_until timestamptz,
  removed_at   timestamptz,
  PRIMARY KEY (tenant_id, notice_id),
  CHECK ((digest IS NULL) = (digest_at IS NULL)),
  CHECK ((lease IS NULL) = (leased_until IS NULL)),
  CHECK ((address IS NULL) = (removed_at IS NOT NULL OR channel = 'browser'))
);
CREATE UNIQUE INDEX notices_one_a_channel ON notices (tenant_id, person, channel) WHERE removed_at IS NULL;

-- No samples of content and keys.
SELECT no_samples('notices', 'address');

-- Which rows a transaction sees and writes.
SELECT add_policy('notices', 'tenant_read', 'SELECT');
SELECT add_policy('notices', 'tenant_add', 'INSERT', writes => 'removed_at IS NULL');
-- What was removed stays so.
SELECT add_policy('notices', 'until_removed', 'UPDATE', sees => 'removed_at IS NULL');
SELECT add_policy('notices', 'restore', 'INSERT', writes => '(SELECT muniment.is_restoring())', login => 'owner');

-- Who may do what.
GRANT SELECT ON notices TO muniment_auditor;
GRANT SELECT, INSERT, UPDATE (address, sent_at, tries, next_try_at, last_error, lease, leased_until, removed_at) ON notices TO muniment_writer;
GRANT SELECT, UPDATE (seq, n, digest_at, sent_at, tries, next_try_at, last_error, lease, leased_until) ON notices TO muniment_jobs;

ALTER TABLE notices ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
DROP FUNCTION rows_of_tenant, rows_of_transaction, add_policy, divide_by_tenant, key_between_partitions, no_samples;
