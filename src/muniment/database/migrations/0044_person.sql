-- The person themselves: what an end user may confirm (SUB-2), have forgotten (SUB-3) and answer (CON-9), one-time codes (SUB-5),
-- requests for erasure, and a login that sees the rows of one person alone (SUB-1).

-- include migrations/helpers_until_0050.sql

DO $$
BEGIN
  -- Logins belong to the whole server: another database may have made it already.
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'muniment_subject') THEN
    CREATE ROLE muniment_subject LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOBYPASSRLS NOINHERIT;
  END IF;
END $$;
GRANT USAGE ON SCHEMA muniment TO muniment_subject;
GRANT SELECT ON schema_migrations TO muniment_subject;
GRANT EXECUTE ON FUNCTION name_characters(), name_keys(text), is_among(text, text[]), server_mark(), transaction_mark(), clock_bound() TO muniment_subject;

CREATE TABLE pack_confirmations (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  pack        text COLLATE "C" NOT NULL,
  trust_floor float8 NOT NULL CHECK (trust_floor BETWEEN 0 AND 1),
  PRIMARY KEY (tenant_id, pack),
  UNIQUE (tenant_id, pack, trust_floor),
  FOREIGN KEY (tenant_id, pack) REFERENCES packs (tenant_id, pack)
);
SELECT rows_of_tenant('pack_confirmations');
GRANT SELECT, INSERT ON pack_confirmations TO muniment_writer;
GRANT SELECT ON pack_confirmations TO muniment_auditor;

ALTER TABLE api_keys DROP CONSTRAINT api_keys_agents_are_no_persons;
ALTER TABLE api_keys ADD CONSTRAINT api_keys_agents_are_no_persons CHECK (
  kind NOT IN ('agent', 'end_user')
  OR (('agent' = ANY (roles) OR (kind = 'end_user' AND 'subject' = ANY (roles)))
    AND NOT roles && ARRAY['reviewer', 'correction_writer', 'privacy_officer', 'auditor', 'admin']));
ALTER TABLE api_keys DROP CONSTRAINT api_keys_for_one_user;
ALTER TABLE api_keys ADD CONSTRAINT api_keys_for_one_user CHECK (
  user_id IS NULL OR revoked_at IS NOT NULL
  OR (roles && ARRAY['agent', 'subject'] AND NOT roles && ARRAY['reviewer', 'correction_writer', 'privacy_officer', 'auditor', 'admin']));
ALTER TABLE api_keys DROP CONSTRAINT api_keys_of_end_users;
ALTER TABLE api_keys ADD CONSTRAINT api_keys_of_end_users CHECK (kind <> 'end_user' OR coalesce(user_id = principal_id, false) OR revoked_at IS NOT NULL);
ALTER TABLE api_keys ADD CONSTRAINT api_keys_of_subjects CHECK (NOT 'subject' = ANY (roles) OR kind = 'end_user' OR revoked_at IS NOT NULL);

ALTER TABLE verdicts DROP CONSTRAINT verdicts_by_kind_check;
ALTER TABLE verdicts ADD CONSTRAINT verdicts_by_kind_check CHECK (by_kind IN ('operator', 'system', 'end_user'));
ALTER TABLE verdicts DROP CONSTRAINT verdicts_lift;
ALTER TABLE verdicts ADD CONSTRAINT verdicts_lift CHECK (action <> 'lift' OR by_kind IN ('operator', 'end_user'));
ALTER TABLE verdicts DROP CONSTRAINT verdicts_of_end_user;
ALTER TABLE verdicts ADD CONSTRAINT verdicts_of_its_subject CHECK (
  by_kind <> 'end_user' OR action IN ('approve', 'reject', 'lift', 'hold', 'block', 'duplicate', 'undo'));

-- No request was written before.
ALTER TABLE consent_requests ADD COLUMN mark bytea NOT NULL CHECK (length(mark) = 16);
CREATE INDEX consent_requests_by_mark ON consent_requests (tenant_id, subject, mark);
SELECT no_samples('consent_requests', 'mark');

ALTER TABLE memories ADD COLUMN confirm_floor float8;
ALTER TABLE memories DROP CONSTRAINT memories_four_eyes;
ALTER TABLE memories ADD CONSTRAINT memories_four_eyes CHECK (
    NOT (sensitive OR tier = 'durable' OR tier_derived = 'durable') OR approver_kind = 'end_user'
    OR (approver_kind = 'operator' AND approver <> author AND NOT approver = ANY (editors)));
ALTER TABLE memories DROP CONSTRAINT memories_two_people;
ALTER TABLE memories ADD CONSTRAINT memories_two_people CHECK (
    NOT (sensitive OR tier = 'durable' OR tier_derived = 'durable') OR approver_kind = 'end_user'
    OR NOT muniment.is_among(approver, array_prepend(author, editors)));
ALTER TABLE memories DROP CONSTRAINT memories_not_by_who_said_it;
ALTER TABLE memories ADD CONSTRAINT memories_not_by_who_said_it CHECK (
    NOT (sensitive OR tier = 'durable' OR tier_derived = 'durable') OR approver_kind = 'end_user'
    OR vouched IS DISTINCT FROM 'user' OR NOT muniment.is_among(approver, ARRAY[user_id]));
ALTER TABLE memories ADD CONSTRAINT memories_confirmed CHECK (
    (approver_kind = 'end_user') = (confirm_floor IS NOT NULL)
    AND (approver_kind <> 'end_user' OR (
      class IN ('preference', 'statement') AND tier <> 'durable' AND tier_derived <> 'durable' AND NOT third_party
      AND user_id = approver AND trust >= confirm_floor
      AND (subject IS NULL OR split_part(subject, ':', 2) = user_id) AND (entity IS NULL OR split_part(entity, ':', 2) = user_id))));
ALTER TABLE memories ADD CONSTRAINT memories_confirm_floor FOREIGN KEY (tenant_id, pack, confirm_floor)
  REFERENCES pack_confirmations (tenant_id, pack, trust_floor);

ALTER TABLE retractions DROP CONSTRAINT retractions_reason_check;
ALTER TABLE retractions ADD CONSTRAINT retractions_reason_check CHECK (
  reason IN ('superseded', 'corrected', 'wrong', 'consent_revoked', 'erased', 'deprecated', 'undone', 'forgotten'));
GRANT SELECT (corrects) ON candidates TO muniment_privacy, muniment_jobs;
DROP POLICY tenant_read ON retractions;
DROP POLICY tenant_retract ON retractions;
SELECT rows_of_transaction('retractions', 'tenant_retract', writes => $$CASE WHEN reason = 'forgotten' THEN EXISTS (
    SELECT FROM memories m WHERE m.tenant_id = retractions.tenant_id AND m.memory_id = retractions.memory_id AND m.user_id = retracted_by)
    ELSE true END
  AND NOT EXISTS (
    SELECT FROM memories n JOIN candidates c ON c.tenant_id = n.tenant_id AND c.candidate_id = n.candidate_id
    WHERE n.tenant_id = retractions.tenant_id AND n.memory_id = superseded_by AND n.approver_kind = 'end_user' AND c.corrects IS NOT NULL)$$);

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
GRANT SELECT (tenant_id, code_id, user_id, act, target, seq, created_at, created_by, created_kind, expires_at, used_seq, used_at)
  ON one_time_codes TO muniment_auditor;
GRANT SELECT, INSERT ON erasure_requests TO muniment_writer;
GRANT SELECT ON erasure_requests TO muniment_auditor;
GRANT SELECT, UPDATE (answer, answered_seq, answered_at, answered_txid, answered_by, erasure_id) ON erasure_requests TO muniment_privacy;

-- Whoever answers a consent request has the capture that the fact is in run again (CON-9).
GRANT SELECT (tenant_id, capture_id, seq, holder) ON captures TO muniment_privacy;
GRANT SELECT ON consolidations TO muniment_privacy;
GRANT SELECT (tenant_id, capture_id, number), INSERT ON retries, reruns TO muniment_privacy;

-- The login of an end user who looks at what is held about them (SUB-1). Beside the tenant's rule it sees only rows of the person
-- that the transaction names: `muniment.person` holds the names that an erasure of them would go by (ERA-5), with chr(31) between.
-- Without it nothing is seen. It writes nothing.

-- The names of the person.
CREATE FUNCTION person_names() RETURNS text[] LANGUAGE sql STABLE PARALLEL SAFE
RETURN string_to_array(current_setting('muniment.person', true), chr(31));
REVOKE ALL ON FUNCTION person_names() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION person_names() TO muniment_subject;

DO $$
DECLARE
  place text;
  own CONSTANT text := $own$ARRAY[holder, subject, entity, '@' || user_id] && muniment.person_names()$own$;
BEGIN
  -- Sealed under their key, about them, or of their own runs.
  FOREACH place IN ARRAY ARRAY['captures', 'candidates', 'memories'] LOOP
    PERFORM add_policy(place, 'person', 'SELECT', sees => own, login => 'subject', kind => 'RESTRICTIVE');
  END LOOP;
  -- What belongs to one of those rows.
  FOREACH place IN ARRAY ARRAY['memory_bodies', 'memory_scope', 'retractions', 'tombstones'] LOOP
    PERFORM add_policy(place, 'person', 'SELECT', login => 'subject', kind => 'RESTRICTIVE', sees => format(
      'EXISTS (SELECT FROM memories m WHERE m.tenant_id = %1$I.tenant_id AND m.memory_id = %1$I.memory_id)', place));
  END LOOP;
  -- No key but theirs: nothing that is sealed under anybody else's can be opened (IMP-4).
  PERFORM add_policy('subjects', 'person', 'SELECT', sees => 'holder = ANY (muniment.person_names())', login => 'subject', kind => 'RESTRICTIVE');
  FOREACH place IN ARRAY ARRAY['consents', 'consent_requests'] LOOP
    PERFORM add_policy(place, 'person', 'SELECT', sees => 'subject = ANY (muniment.person_names())', login => 'subject', kind => 'RESTRICTIVE');
  END LOOP;
  FOREACH place IN ARRAY ARRAY['recalls', 'erasure_requests'] LOOP
    PERFORM add_policy(place, 'person', 'SELECT', sees => $own$'@' || user_id = ANY (muniment.person_names())$own$, login => 'subject',
      kind => 'RESTRICTIVE');
  END LOOP;
  PERFORM add_policy('proposals', 'person', 'SELECT', login => 'subject', kind => 'RESTRICTIVE', sees =>
    'EXISTS (SELECT FROM candidates c WHERE c.tenant_id = proposals.tenant_id AND c.candidate_id = proposals.candidate_id)');
  PERFORM add_policy('verdicts', 'person', 'SELECT', login => 'subject', kind => 'RESTRICTIVE', sees =>
    'EXISTS (SELECT FROM proposals p WHERE p.tenant_id = verdicts.tenant_id AND p.proposal_id = verdicts.proposal_id)');
  PERFORM add_policy('consent_sweeps', 'person', 'SELECT', login => 'subject', kind => 'RESTRICTIVE', sees =>
    'EXISTS (SELECT FROM consents c WHERE c.tenant_id = consent_sweeps.tenant_id AND c.consent_id = consent_sweeps.root_id)');
END $$;

GRANT SELECT ON tenant_keys, tenant_clock, captures, candidates, proposals, memories, memory_bodies, memory_scope, retractions, tombstones, subjects,
  consents, consent_sweeps, consent_requests, erasure_requests TO muniment_subject;
-- Not the remarks of those who decided.
GRANT SELECT (tenant_id, verdict_id, proposal_id, seq, action, by, by_kind, at, tier, memory_id) ON verdicts TO muniment_subject;
GRANT SELECT (tenant_id, recall_id, at, agent_id, user_id, result_ids, holder, query) ON recalls TO muniment_subject;

ALTER TABLE pack_confirmations ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE one_time_codes ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE erasure_requests ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
DROP FUNCTION rows_of_tenant, rows_of_transaction, add_policy, divide_by_tenant, key_between_partitions, no_samples;
