-- Policies that a cluster keeps as they are (ADR 82): permissive ones, each for the logins that it names, without a query. What some of
-- them asked another table is held by foreign keys. Functions of the owner take the tenant first.

-- include schema/00_helpers.sql

-- What a memory carries of its proposal and candidate.
ALTER TABLE memories DROP CONSTRAINT memories_of_its_proposal;
ALTER TABLE memories DROP CONSTRAINT memories_tenant_id_candidate_id_author_editors_facts_fkey;
ALTER TABLE memories DROP CONSTRAINT memories_confirmed;
ALTER TABLE memories ADD COLUMN corrects text COLLATE "C";
ALTER TABLE memories ADD COLUMN proposal_action text;
-- The owner sees the rows meanwhile, to fill the columns and to check the keys.
ALTER TABLE memories NO FORCE ROW LEVEL SECURITY;
ALTER TABLE candidates NO FORCE ROW LEVEL SECURITY;
ALTER TABLE proposals NO FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_scope NO FORCE ROW LEVEL SECURITY;
ALTER TABLE retractions NO FORCE ROW LEVEL SECURITY;
UPDATE memories m SET corrects = c.corrects, proposal_action = p.action
FROM candidates c, proposals p
WHERE c.tenant_id = m.tenant_id AND c.candidate_id = m.candidate_id AND p.tenant_id = m.tenant_id AND p.proposal_id = m.proposal_id;
-- No row may wait to be checked when a table is altered.
SET CONSTRAINTS ALL IMMEDIATE;
ALTER TABLE memories ALTER COLUMN proposal_action SET NOT NULL;
ALTER TABLE memories DROP COLUMN facts;
ALTER TABLE memories ADD COLUMN facts            text COLLATE "C" GENERATED ALWAYS AS (md5(
    capture_id || chr(31) || class || chr(31) || classification || chr(31) || holder || chr(31) || coalesce(subject, '') || chr(31)
    || coalesce(entity, '') || chr(31) || coalesce(predicate, '') || chr(31) || user_id || chr(31)
    || session_id || chr(31) || workflow_id || chr(31) || intent_id || chr(31)
    || coalesce(qualifiers::text, '') || chr(31) || coalesce(extract(epoch FROM valid_from AT TIME ZONE 'UTC')::text, '') || chr(31)
    || coalesce(extract(epoch FROM valid_until AT TIME ZONE 'UTC')::text, '') || chr(31) || third_party::text || chr(31)
    || coalesce(corrects, ''))) STORED;
ALTER TABLE candidates DROP COLUMN facts;
ALTER TABLE candidates ADD COLUMN facts           text COLLATE "C" GENERATED ALWAYS AS (md5(
    capture_id || chr(31) || class || chr(31) || classification || chr(31) || holder || chr(31) || coalesce(subject, '') || chr(31)
    || coalesce(entity, '') || chr(31) || coalesce(predicate, '') || chr(31) || coalesce(user_id, '') || chr(31)
    || coalesce(session_id, '') || chr(31) || coalesce(workflow_id, '') || chr(31) || coalesce(intent_id, '') || chr(31)
    || coalesce(qualifiers::text, '') || chr(31) || coalesce(extract(epoch FROM valid_from AT TIME ZONE 'UTC')::text, '') || chr(31)
    || coalesce(extract(epoch FROM valid_until AT TIME ZONE 'UTC')::text, '') || chr(31) || third_party::text || chr(31)
    || coalesce(corrects, ''))) STORED;
ALTER TABLE candidates ADD UNIQUE (tenant_id, candidate_id, author, editors, facts);
ALTER TABLE proposals DROP CONSTRAINT proposals_tenant_id_proposal_id_candidate_id_tier_derived__key1;
ALTER TABLE proposals ADD CONSTRAINT proposals_to_promote UNIQUE (tenant_id, proposal_id, candidate_id, tier_derived, class, action);
ALTER TABLE memories ADD FOREIGN KEY (tenant_id, candidate_id, author, editors, facts)
  REFERENCES candidates (tenant_id, candidate_id, author, editors, facts);
ALTER TABLE memories ADD CONSTRAINT memories_of_its_proposal FOREIGN KEY (tenant_id, proposal_id, candidate_id, tier_derived, class, proposal_action)
  REFERENCES proposals (tenant_id, proposal_id, candidate_id, tier_derived, class, action);
ALTER TABLE memories ADD CONSTRAINT memories_confirmed CHECK (
    (approver_kind = 'end_user') = (confirm_floor IS NOT NULL)
    AND (approver_kind <> 'end_user' OR (
      -- It is a fact to keep: a request to forget or to correct something is not theirs to confirm (CAN-12).
      proposal_action = 'promote' AND corrects IS NULL
      AND class IN ('preference', 'statement') AND tier <> 'durable' AND tier_derived <> 'durable' AND NOT third_party
      AND user_id = approver AND trust >= confirm_floor
      AND (subject IS NULL OR split_part(subject, ':', 2) = user_id) AND (entity IS NULL OR split_part(entity, ':', 2) = user_id))));

-- Whose fact a person had forgotten.
ALTER TABLE retractions ADD COLUMN forgotten_by text COLLATE "C" GENERATED ALWAYS AS (CASE WHEN reason = 'forgotten' THEN retracted_by END) STORED;
DROP INDEX memory_scope_by_user;
ALTER TABLE memory_scope ADD CONSTRAINT memory_scope_by_user UNIQUE (tenant_id, user_id, memory_id);
ALTER TABLE retractions ADD CONSTRAINT retractions_own FOREIGN KEY (tenant_id, forgotten_by, memory_id)
  REFERENCES memory_scope (tenant_id, user_id, memory_id) DEFERRABLE;
ALTER TABLE memories FORCE ROW LEVEL SECURITY;
ALTER TABLE candidates FORCE ROW LEVEL SECURITY;
ALTER TABLE proposals FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_scope FORCE ROW LEVEL SECURITY;
ALTER TABLE retractions FORCE ROW LEVEL SECURITY;

-- Policies by login.
DROP POLICY tenant ON tenant_keys;
DROP POLICY tenant_switch ON breakers;
DROP POLICY tenant_promote ON memories;
DROP POLICY tenant_retract ON retractions;
DROP POLICY tenant_decide ON verdicts;
DROP POLICY tenant_resolve ON resolutions;
DROP POLICY begin ON tenant_restores;
DO $$
DECLARE one record;
BEGIN
  FOR one IN SELECT policyname, tablename, permissive, roles FROM pg_policies WHERE schemaname = 'muniment' LOOP
    IF one.permissive = 'RESTRICTIVE' OR one.policyname = 'restore' THEN
      EXECUTE format('DROP POLICY %I ON %I', one.policyname, one.tablename);
    ELSIF one.roles = '{public}' THEN
      EXECUTE format('ALTER POLICY %I ON %I TO muniment_writer, muniment_recall, muniment_auditor, muniment_privacy, muniment_jobs, CURRENT_USER',
        one.policyname, one.tablename);
    END IF;
  END LOOP;
END $$;
SELECT add_policy('tenant_keys', 'tenant', 'ALL', login => 'recall, auditor, privacy, jobs, owner');
SELECT add_policy('tenant_keys', 'writer_read', 'SELECT', login => 'writer');
SELECT add_policy('tenant_keys', 'first_key', 'INSERT', writes => 'version = 1', login => 'writer');
SELECT add_writing_policy('verdicts', 'tenant_decide', login => 'writer');
SELECT add_writing_policy('verdicts', 'officer_withdraw', $$action = 'withdraw'$$, login => 'privacy');
SELECT add_writing_policy('breakers', 'jobs_open', 'open', login => 'jobs');
SELECT add_writing_policy('breakers', 'people_close', 'NOT open', login => 'writer');
SELECT add_writing_policy('memories', 'tenant_promote', mark => 'born_txid');
SELECT add_writing_policy('retractions', 'tenant_retract', login => 'writer');
SELECT add_writing_policy('retractions', 'jobs_retract', $$reason = 'consent_revoked'$$, login => 'jobs');
SELECT add_writing_policy('retractions', 'officer_retract', $$reason = 'erased'$$, login => 'privacy');
SELECT add_writing_policy('resolutions', 'tenant_resolve', login => 'writer');
SELECT add_writing_policy('resolutions', 'jobs_resolve', $$outcome = 'consent_revoked'$$, login => 'jobs');
SELECT add_writing_policy('resolutions', 'officer_resolve', $$outcome IN ('retracted', 'withdrawn')$$, login => 'privacy');
SELECT add_policy('tenant_restores', 'begin', 'INSERT', login => 'owner',
  writes => $$txid = muniment.transaction_mark() AND tenant_id = current_setting('muniment.restoring', true)$$);

DROP FUNCTION is_restoring;
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

-- The login of end users.
REVOKE SELECT ON memory_scope, retractions, tombstones, proposals, consent_sweeps FROM muniment_subject;
-- include schema/18_subject_rows.sql

-- Functions.
DROP FUNCTION collect_captures, erase_content, erase_late, blanked_rows, renew_subject, rewrap_subjects, rewrap_audit_key, drop_tenant_keys;
-- include schema/15_functions.sql

DROP FUNCTION rows_of_tenant, rows_of_transaction, add_writing_policy, add_policy, divide_by_tenant, key_between_partitions, no_samples;
