-- One fact can be erased, not only a person (ERA-8): the receipt names its candidates, and the captures that go with it.

ALTER TABLE erasures ADD COLUMN fact_id text COLLATE "C";
ALTER TABLE erasures ADD COLUMN facts text[] COLLATE "C" NOT NULL DEFAULT '{}';
ALTER TABLE erasures ADD COLUMN captures text[] COLLATE "C" NOT NULL DEFAULT '{}';
ALTER TABLE erasures ADD COLUMN requested_by text COLLATE "C";
ALTER TABLE erasures DROP CONSTRAINT erasures_holders_check;
ALTER TABLE erasures DROP CONSTRAINT erasures_check;
ALTER TABLE erasures ADD CONSTRAINT erasures_of_a_person_or_a_fact CHECK (CASE WHEN fact_id IS NULL
  THEN (subject IS NOT NULL OR user_id IS NOT NULL) AND cardinality(holders) > 0 AND facts = '{}' AND captures = '{}'
  ELSE subject IS NULL AND user_id IS NULL AND names = '{}' AND facts <> '{}' END);

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

  UPDATE subjects SET wrapped_key = NULL WHERE tenant_id = here AND holder = ANY (e.holders) AND wrapped_key IS NOT NULL;
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

CREATE OR REPLACE FUNCTION erase_late(wanted text[]) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = muniment, pg_temp AS $$
DECLARE
  here text := current_setting('muniment.tenant');
  touched bigint;
BEGIN
  UPDATE erasures e SET purged_at = NULL
  WHERE e.tenant_id = here AND e.purged_at IS NOT NULL AND EXISTS (
    SELECT FROM captures c WHERE c.tenant_id = here AND c.capture_id = ANY (wanted) AND c.seq < e.seq AND c.content <> ''
      AND ((c.holder = ANY (e.names) OR c.subject = ANY (e.names) OR c.entity = ANY (e.names)
  OR '@' || c.user_id = ANY (e.names)) OR c.capture_id = ANY (e.captures) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names))));
  DELETE FROM extractions x USING captures c
  WHERE x.tenant_id = here AND c.tenant_id = here AND c.capture_id = x.capture_id AND c.capture_id = ANY (wanted) AND EXISTS (
    SELECT FROM erasures e WHERE e.tenant_id = here AND e.seq > c.seq AND ((c.holder = ANY (e.names) OR c.subject = ANY (e.names) OR c.entity = ANY (e.names)
  OR '@' || c.user_id = ANY (e.names)) OR c.capture_id = ANY (e.captures) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names))));
  UPDATE idempotency_keys k SET digest = '' FROM captures c
  WHERE k.tenant_id = here AND c.tenant_id = here AND c.capture_id = k.capture_id AND c.capture_id = ANY (wanted) AND EXISTS (
    SELECT FROM erasures e WHERE e.tenant_id = here AND e.seq > c.seq AND ((c.holder = ANY (e.names) OR c.subject = ANY (e.names) OR c.entity = ANY (e.names)
  OR '@' || c.user_id = ANY (e.names)) OR c.capture_id = ANY (e.captures) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names))));
  UPDATE captures c SET content = ''
  WHERE c.tenant_id = here AND c.capture_id = ANY (wanted) AND c.content <> '' AND EXISTS (
    SELECT FROM erasures e WHERE e.tenant_id = here AND e.seq > c.seq AND ((c.holder = ANY (e.names) OR c.subject = ANY (e.names) OR c.entity = ANY (e.names)
  OR '@' || c.user_id = ANY (e.names)) OR c.capture_id = ANY (e.captures) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names))));
  GET DIAGNOSTICS touched = ROW_COUNT;
  RETURN touched;
END $$;
