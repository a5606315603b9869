-- The person themselves (section 4.8 of the specification): one-time codes, requests for erasure, and what the login `subject` sees.

-- One-time codes (SUB-5): by one, the person it was sent to confirms that an act which somebody else carries to us is their own.
-- A code is for one act on one thing of one user, once, and not for long. It is made for somebody who sends it by a channel that
-- the agent cannot read, never for an agent. `digest` is a hash of the secret and of all that the code stands for.
CREATE TABLE one_time_codes (
  tenant_id    text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  code_id      text COLLATE "C" NOT NULL,
  digest       bytea NOT NULL CHECK (length(digest) = 32),
  user_id      text COLLATE "C" NOT NULL CHECK (user_id <> ''),
  act          text NOT NULL CHECK (act IN ('confirm', 'decline', 'forget', 'grant', 'refuse')),
  target       text COLLATE "C" NOT NULL CHECK (target <> ''),
  seq          bigint NOT NULL,
  created_at   timestamptz NOT NULL,
  txid         xid8 NOT NULL,
  created_by   text COLLATE "C" NOT NULL,
  created_kind text NOT NULL,
  expires_at   timestamptz NOT NULL,
  used_seq     bigint,
  used_at      timestamptz,
  used_txid    xid8,
  PRIMARY KEY (tenant_id, code_id),
  FOREIGN KEY (tenant_id, seq, created_at, txid) REFERENCES ticks (tenant_id, seq, at, txid),
  FOREIGN KEY (tenant_id, used_seq, used_at, used_txid) REFERENCES ticks (tenant_id, seq, at, txid),
  CONSTRAINT one_time_codes_not_for_agents CHECK (created_kind IN ('operator', 'system')),
  CONSTRAINT one_time_codes_in_time CHECK (created_at < expires_at AND used_at < expires_at),
  CONSTRAINT one_time_codes_whole_use CHECK (num_nonnulls(used_seq, used_at, used_txid) IN (0, 3))
);
CREATE INDEX one_time_codes_open ON one_time_codes (tenant_id, user_id, target) WHERE used_at IS NULL;

-- That an end user asks to be forgotten (SUB-3): everything, or one memory for good. Answered once, in the transaction of the
-- erasure where it is released.
CREATE TABLE erasure_requests (
  tenant_id     text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  request_id    text COLLATE "C" NOT NULL,
  user_id       text COLLATE "C" NOT NULL CHECK (user_id <> ''),
  memory_id     text COLLATE "C",
  seq           bigint NOT NULL,
  asked_at      timestamptz NOT NULL,
  txid          xid8 NOT NULL,
  answer        text CHECK (answer IN ('released', 'refused')),
  answered_seq  bigint,
  answered_at   timestamptz,
  answered_txid xid8,
  answered_by   text COLLATE "C",
  erasure_id    text COLLATE "C",
  PRIMARY KEY (tenant_id, request_id),
  FOREIGN KEY (tenant_id, memory_id) REFERENCES memories (tenant_id, memory_id),
  FOREIGN KEY (tenant_id, erasure_id) REFERENCES erasures (tenant_id, erasure_id),
  FOREIGN KEY (tenant_id, seq, asked_at, txid) REFERENCES ticks (tenant_id, seq, at, txid),
  FOREIGN KEY (tenant_id, answered_seq, answered_at, answered_txid) REFERENCES ticks (tenant_id, seq, at, txid),
  CONSTRAINT erasure_requests_whole_answer CHECK (num_nonnulls(answer, answered_seq, answered_at, answered_txid, answered_by) IN (0, 5)),
  CONSTRAINT erasure_requests_erased CHECK (erasure_id IS NULL OR answer = 'released')
);
-- One open request for one thing.
CREATE UNIQUE INDEX erasure_requests_open ON erasure_requests (tenant_id, user_id, coalesce(memory_id, '')) WHERE answer IS NULL;

-- No samples of content and keys.
SELECT no_samples('one_time_codes', 'digest');

-- Which rows a transaction sees and writes.
SELECT rows_of_transaction('one_time_codes', 'tenant_code', writes => 'used_at IS NULL');
SELECT add_policy('one_time_codes', 'use_once', 'UPDATE', sees => 'used_at IS NULL',
  writes => 'used_at IS NOT NULL AND used_txid = muniment.transaction_mark()');
SELECT rows_of_transaction('erasure_requests', 'tenant_ask', writes => 'answer IS NULL');
SELECT add_policy('erasure_requests', 'answer_once', 'UPDATE', sees => 'answer IS NULL',
  writes => 'answer IS NOT NULL AND answered_txid = muniment.transaction_mark()', login => 'privacy');

-- Who may do what.
GRANT SELECT, INSERT, UPDATE (used_seq, used_at, used_txid) ON one_time_codes TO muniment_writer;
GRANT SELECT, UPDATE (used_seq, used_at, used_txid) ON one_time_codes TO muniment_privacy;
GRANT SELECT (tenant_id, code_id, user_id, act, target, seq, created_at, created_by, created_kind, expires_at, used_seq, used_at) ON one_time_codes TO muniment_auditor;
GRANT SELECT, INSERT ON erasure_requests TO muniment_writer;
GRANT SELECT ON erasure_requests TO muniment_auditor;
GRANT SELECT, UPDATE (answer, answered_seq, answered_at, answered_txid, answered_by, erasure_id) ON erasure_requests TO muniment_privacy;

-- Whoever answers a consent request has the capture that the fact is in run again (CON-9).
GRANT SELECT (tenant_id, capture_id, seq, holder) ON captures TO muniment_privacy;
GRANT SELECT ON consolidations TO muniment_privacy;
GRANT SELECT (tenant_id, capture_id, number), INSERT ON retries, reruns TO muniment_privacy;

-- The names of the person.
CREATE FUNCTION person_names() RETURNS text[] LANGUAGE sql STABLE PARALLEL SAFE
RETURN string_to_array(current_setting('muniment.person', true), chr(31));
REVOKE ALL ON FUNCTION person_names() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION person_names() TO muniment_subject;
