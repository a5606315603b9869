-- What reviewers say to each other and how they look at the queue: comments and second looks, saved views, display names of
-- subjects.
-- oldest program: 0048

-- include migrations/helpers_until_0050.sql

ALTER TABLE verdicts DROP CONSTRAINT verdicts_action_check;
ALTER TABLE verdicts ADD CONSTRAINT verdicts_action_check CHECK (action IN ('approve', 'edit', 'reject', 'hold', 'block', 'duplicate', 'withdraw', 'override',
    'assign', 'release', 'lift', 'resolve', 'undo', 'comment', 'agree', 'disagree'));
ALTER TABLE verdicts ADD COLUMN mentions text[] COLLATE "C" NOT NULL DEFAULT '{}';
ALTER TABLE verdicts ADD CONSTRAINT verdicts_mentions CHECK (cardinality(mentions) <= CASE action WHEN 'comment' THEN 10 ELSE 0 END);
ALTER TABLE verdicts ADD CONSTRAINT verdicts_comment CHECK (action NOT IN ('comment', 'agree', 'disagree') OR by_kind = 'operator');
CREATE INDEX proposals_asking ON proposals (tenant_id, proposal_id) WHERE action <> 'promote';
CREATE INDEX verdicts_of_people ON verdicts (tenant_id, at, seq) WHERE by_kind = 'operator';
CREATE INDEX verdicts_mentioning ON verdicts (tenant_id, proposal_id) WHERE mentions <> '{}';
CREATE UNIQUE INDEX verdicts_one_second_look ON verdicts (tenant_id, proposal_id) WHERE action IN ('agree', 'disagree');

CREATE TABLE saved_views (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  principal text COLLATE "C" NOT NULL,
  name      text COLLATE "C" NOT NULL CHECK (name <> '' AND length(name) <= 60),
  filters   jsonb NOT NULL,
  saved_at  timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, principal, name),
  CONSTRAINT saved_views_of_nobody CHECK (jsonb_typeof(filters) = 'object' AND length(filters::text) <= 1000
    AND filters - ARRAY['write_class', 'risk', 'tier', 'reason', 'danger', 'order', 'group', 'mine', 'overdue', 'held', 'mentioned'] = '{}')
);
SELECT rows_of_tenant('saved_views');
SELECT add_policy('saved_views', 'restore', 'INSERT', writes => '(SELECT muniment.is_restoring())', login => 'owner');
ALTER TABLE saved_views ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE (filters, saved_at), DELETE ON saved_views TO muniment_writer;
GRANT SELECT ON saved_views TO muniment_auditor;

ALTER TABLE subjects ADD COLUMN display_name bytea;
ALTER TABLE subjects ADD CONSTRAINT subjects_named_while_known CHECK (display_name IS NULL OR wrapped_key IS NOT NULL);
SELECT no_samples('subjects', 'display_name');
GRANT UPDATE (display_name) ON subjects TO muniment_writer;

CREATE OR REPLACE FUNCTION erase_content(wanted text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = muniment, pg_temp AS $$
DECLARE
  here text := current_setting('muniment.tenant');
  e erasures;
  touched bigint;
  more bigint;
BEGIN
  SELECT * INTO e FROM erasures WHERE tenant_id = here AND erasure_id = wanted AND txid = muniment.transaction_mark();
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no erasure of this transaction' USING ERRCODE = 'insufficient_privilege';
  END IF;

  UPDATE subjects SET wrapped_key = NULL, display_name = NULL WHERE tenant_id = here AND holder = ANY (e.holders) AND wrapped_key IS NOT NULL;
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'keys', touched);

  -- A model's answer holds all that it read in the capture, also where that stays.
  DELETE FROM extractions x USING candidates f
  WHERE x.tenant_id = here AND f.tenant_id = here AND f.candidate_id = ANY (e.facts) AND x.capture_id = f.capture_id;
  GET DIAGNOSTICS more = ROW_COUNT;
  DELETE FROM extractions x USING captures c
  WHERE x.tenant_id = here AND c.tenant_id = here AND c.capture_id = x.capture_id
    AND ((c.holder = ANY (e.names) OR c.subject = ANY (e.names) OR c.entity = ANY (e.names)
  OR '@' || c.user_id = ANY (e.names)) OR c.capture_id = ANY (e.captures) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names)));
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'extractions', touched + more);

  -- A hash of content under a key that may not be destroyed; the key of the request stays taken.
  UPDATE idempotency_keys k SET digest = '' FROM captures c
  WHERE k.tenant_id = here AND k.digest <> '' AND c.tenant_id = here AND c.capture_id = k.capture_id
    AND ((c.holder = ANY (e.names) OR c.subject = ANY (e.names) OR c.entity = ANY (e.names)
  OR '@' || c.user_id = ANY (e.names)) OR c.capture_id = ANY (e.captures) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names)));
  UPDATE idempotency_keys k SET digest = '' FROM archived_captures c
  WHERE k.tenant_id = here AND k.digest <> '' AND c.tenant_id = here AND c.capture_id = k.capture_id
    AND ((c.holder = ANY (e.names) OR c.subject = ANY (e.names) OR c.entity = ANY (e.names)
  OR '@' || c.user_id = ANY (e.names)) OR c.capture_id = ANY (e.captures) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names)));

  UPDATE captures c SET content = ''
  WHERE c.tenant_id = here AND c.content <> ''
    AND ((c.holder = ANY (e.names) OR c.subject = ANY (e.names) OR c.entity = ANY (e.names)
  OR '@' || c.user_id = ANY (e.names)) OR c.capture_id = ANY (e.captures) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names)));
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'captures', touched);

  UPDATE verdicts v SET remark = NULL FROM proposals p, candidates c
  WHERE v.tenant_id = here AND v.remark IS NOT NULL
    AND p.tenant_id = here AND p.proposal_id = v.proposal_id AND c.tenant_id = here AND c.candidate_id = p.candidate_id
    AND ((c.holder = ANY (e.names) OR c.subject = ANY (e.names) OR c.entity = ANY (e.names)
  OR '@' || c.user_id = ANY (e.names)) OR c.candidate_id = ANY (e.facts) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names)
    AND (n.candidate_id = c.candidate_id OR c.entity IS NULL)));
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'notes', touched);

  DELETE FROM rejection_marks k USING proposals p, candidates c
  WHERE k.tenant_id = here AND p.tenant_id = here AND p.proposal_id = k.proposal_id
    AND c.tenant_id = here AND c.candidate_id = p.candidate_id
    AND ((c.holder = ANY (e.names) OR c.subject = ANY (e.names) OR c.entity = ANY (e.names)
  OR '@' || c.user_id = ANY (e.names)) OR c.candidate_id = ANY (e.facts) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names)
    AND (n.candidate_id = c.candidate_id OR c.entity IS NULL)));
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'rejection_marks', touched);

  UPDATE candidates c SET content = '', fingerprint = NULL
  WHERE c.tenant_id = here AND c.content <> ''
    AND ((c.holder = ANY (e.names) OR c.subject = ANY (e.names) OR c.entity = ANY (e.names)
  OR '@' || c.user_id = ANY (e.names)) OR c.candidate_id = ANY (e.facts) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names)
    AND (n.candidate_id = c.candidate_id OR c.entity IS NULL)));
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'candidates', touched);

  -- Nothing that stays rests on a capture that goes with one fact.
  IF EXISTS (SELECT FROM candidates c WHERE c.tenant_id = here AND c.capture_id = ANY (e.captures) AND c.content <> '') THEN
    RAISE EXCEPTION 'a fact that stays rests on a capture that goes' USING ERRCODE = 'restrict_violation';
  END IF;

  UPDATE recalls r SET query = NULL
  WHERE r.tenant_id = here AND r.query IS NOT NULL
    AND (r.holder = ANY (e.names) OR '@' || r.user_id = ANY (e.names) OR r.request -> 'entities' ?| e.names);
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'recall_queries', touched);

  UPDATE consents SET evidence = '' WHERE tenant_id = here AND evidence <> '' AND subject = ANY (e.names);
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'consent_evidence', touched);
END $$;

DROP FUNCTION rows_of_tenant, rows_of_transaction, add_policy, divide_by_tenant, key_between_partitions, no_samples;
