-- Who makes a request, and requests that were made under a key of their caller's.

-- API keys. The secret is nowhere: `digest` is a hash of it and of all that the key stands for, under a key derived from the
-- tenant's own data key, so that a row that was moved, copied or changed opens nothing. `label` is sealed under the key of the
-- user it is for, else the tenant's own. `tools` and `channels` are those that the key may speak for (ISO-8), `packs` those
-- that its runs may pin, null for no limit of its own (ISO-5). Roles may be declared by a pack; an agent and a key for one end
-- user have none of the built-in ones but agent: with another it would reach further than that. The key of an end user may also
-- have subject, and no other key has that (SUB-1).
CREATE TABLE api_keys (
  tenant_id    text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  key_id       text COLLATE "C" NOT NULL,
  digest       bytea NOT NULL CHECK (length(digest) = 32),
  label        bytea,
  principal_id text COLLATE "C" NOT NULL CHECK (principal_id <> ''),
  kind         text COLLATE "C" NOT NULL CHECK (kind IN ('agent', 'operator', 'system', 'end_user')),
  roles        text[] COLLATE "C" NOT NULL CHECK (cardinality(roles) BETWEEN 1 AND 64),
  user_id      text COLLATE "C" CHECK (user_id <> ''),
  clearance    text[] COLLATE "C" NOT NULL,
  created_at   timestamptz NOT NULL,
  created_by   text COLLATE "C" NOT NULL,
  expires_at   timestamptz,
  last_used_at timestamptz,
  revoked_at   timestamptz,
  revoked_by   text COLLATE "C",
  tools        text[] COLLATE "C" NOT NULL DEFAULT '{}',
  channels     text[] COLLATE "C" NOT NULL DEFAULT '{}',
  packs        text[] COLLATE "C",
  PRIMARY KEY (tenant_id, key_id),
  CHECK (expires_at > created_at),
  CHECK ((revoked_at IS NULL) = (revoked_by IS NULL)),
  CONSTRAINT api_keys_agents_are_no_persons CHECK (
    kind NOT IN ('agent', 'end_user')
    OR (('agent' = ANY (roles) OR (kind = 'end_user' AND 'subject' = ANY (roles)))
      AND NOT roles && ARRAY['reviewer', 'correction_writer', 'privacy_officer', 'auditor', 'admin'])),
  CONSTRAINT api_keys_for_one_user CHECK (
    user_id IS NULL OR revoked_at IS NOT NULL
    OR (roles && ARRAY['agent', 'subject'] AND NOT roles && ARRAY['reviewer', 'correction_writer', 'privacy_officer', 'auditor', 'admin'])),
  CONSTRAINT api_keys_of_subjects CHECK (NOT 'subject' = ANY (roles) OR kind = 'end_user' OR revoked_at IS NOT NULL),
  CONSTRAINT api_keys_of_end_users CHECK (kind <> 'end_user' OR coalesce(user_id = principal_id, false) OR revoked_at IS NOT NULL)
);

-- Where a person's notices ask whether they still have a key.
CREATE INDEX api_keys_by_principal ON api_keys (tenant_id, principal_id) WHERE kind = 'operator';

-- That a request was made under a key of its caller's, in the transaction of what it asked for, and what was answered.
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
CREATE INDEX requests_by_time ON requests (tenant_id, at);

-- No samples of content and keys.
SELECT no_samples('api_keys', 'digest', 'label');
SELECT no_samples('requests', 'answer');

-- Which rows a transaction sees and writes.
SELECT add_policy('api_keys', 'tenant_read', 'SELECT');
SELECT add_policy('api_keys', 'tenant_add', 'INSERT', writes => 'revoked_at IS NULL');
-- What was revoked stays so.
SELECT add_policy('api_keys', 'until_revoked', 'UPDATE', sees => 'revoked_at IS NULL', login => 'writer');
-- An erasure forgets the user, and only of a key that is revoked: without its user a live one would reach further. Once.
SELECT add_policy('api_keys', 'forget_user', 'UPDATE', sees => 'user_id IS NOT NULL',
  writes => 'user_id IS NULL AND label IS NULL AND revoked_at IS NOT NULL', login => 'privacy');
SELECT add_policy('requests', 'tenant_read', 'SELECT');
SELECT add_policy('requests', 'claim', 'INSERT', writes => 'status IS NULL AND NOT closed');
SELECT add_policy('requests', 'answer_once', 'UPDATE', sees => 'status IS NULL AND NOT closed', writes => 'status IS NOT NULL', login => 'writer');
SELECT add_policy('requests', 'close_once', 'UPDATE', sees => 'NOT closed', writes => 'closed AND answer IS NULL', login => 'privacy');
SELECT add_policy('requests', 'outlived', 'DELETE', login => 'jobs');

-- Who may do what. Whoever presents a key is looked up as recall: a tenant that writes much is not slower to be let in.
GRANT SELECT, INSERT, UPDATE (last_used_at, revoked_at, revoked_by) ON api_keys TO muniment_writer;
GRANT SELECT (tenant_id, key_id, digest, principal_id, kind, roles, user_id, clearance, expires_at, last_used_at, revoked_at, tools, channels, packs) ON api_keys TO muniment_recall;
GRANT SELECT (tenant_id, key_id, label, principal_id, kind, roles, user_id, clearance, created_at, created_by, expires_at, last_used_at, revoked_at, revoked_by, tools, channels, packs) ON api_keys TO muniment_auditor;
GRANT SELECT (tenant_id, key_id, user_id, revoked_at, revoked_by), UPDATE (label, user_id, revoked_at, revoked_by) ON api_keys TO muniment_privacy;
GRANT SELECT, INSERT, UPDATE (status, answer) ON requests TO muniment_writer;
GRANT SELECT (tenant_id, key, closed), INSERT, UPDATE (answer, closed) ON requests TO muniment_privacy;
GRANT SELECT (tenant_id, at), DELETE ON requests TO muniment_jobs;
