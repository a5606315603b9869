-- What runs as the owner of the tables, for what no login may do by itself (ADR 24). Each takes the tenant first: a cluster runs it where the
-- tenant's rows are (ADR 82). Row security holds it to the tenant of the transaction all the same: for another one it finds nothing.

-- The collector: the one way a capture leaves the database (CAP-1). Only what an archive of this very transaction holds, and all
-- of it. What models answered about a capture is blanked with it: no erasure would find it any more. Its candidates are unbound
-- from it first; a key with the action SET NULL would do the same, but a cluster refuses it.
CREATE FUNCTION collect_captures(whose text, wanted text) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = muniment, pg_temp AS $$
DECLARE
  here CONSTANT text COLLATE "C" := whose;
  held int;
  gone bigint;
BEGIN
  SELECT a.captures INTO held FROM archives a JOIN archive_files f ON f.tenant_id = here AND f.archive_id = a.archive_id
  WHERE a.tenant_id = here AND a.archive_id = wanted AND a.txid = muniment.transaction_mark();
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no archive of this transaction' USING ERRCODE = 'insufficient_privilege';
  END IF;
  UPDATE extractions x SET answer = '' FROM archived_captures a
  WHERE x.tenant_id = here AND a.tenant_id = here AND a.archive_id = wanted AND a.capture_id = x.capture_id;
  UPDATE candidates k SET live_capture_id = NULL FROM archived_captures a
  WHERE k.tenant_id = here AND a.tenant_id = here AND a.archive_id = wanted
    AND a.capture_id = k.live_capture_id AND a.seq = k.capture_seq;
  DELETE FROM captures c USING archived_captures a
  WHERE c.tenant_id = here AND a.tenant_id = here AND a.archive_id = wanted AND a.capture_id = c.capture_id AND a.seq = c.seq;
  GET DIAGNOSTICS gone = ROW_COUNT;
  IF gone <> held THEN
    RAISE EXCEPTION 'the archive says it holds other captures' USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN gone;
END $$;
REVOKE ALL ON FUNCTION collect_captures(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION collect_captures(text, text) TO muniment_jobs;

-- All that an erasure has to reach beside promoted memory: keys destroyed, content blanked whoever's key sealed it. Only for the
-- erasure of this very transaction; it cannot be called for another, or later. The conditions here and in `erase_late` are those
-- of database/fragments.sql (`covered_capture`, `covered_fact`, `covered_recall`), which a function cannot share; a test
-- compares them.
CREATE FUNCTION erase_content(whose text, wanted text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = muniment, pg_temp AS $$
DECLARE
  here CONSTANT text COLLATE "C" := whose;
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
REVOKE ALL ON FUNCTION erase_content(text, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION erase_content(text, text) TO muniment_privacy;

-- Captures from before an erasure whose facts were read only after it and name whom it erased: blanked. Blanks nothing that no
-- erasure covers. A receipt of such an erasure that said purged does so no more, until the purge has run again.
CREATE FUNCTION erase_late(whose text, wanted text[]) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = muniment, pg_temp AS $$
DECLARE
  here CONSTANT text COLLATE "C" := whose;
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
REVOKE ALL ON FUNCTION erase_late(text, text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION erase_late(text, text[]) TO muniment_writer;

-- The rows that lost their content in this very transaction, which an erasure's event tells of (AUD-4). The transaction that
-- wrote a row last stands in its header.
CREATE FUNCTION blanked_rows(whose text) RETURNS TABLE (form text, id text) LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = muniment, pg_temp AS $$
DECLARE
  here CONSTANT text COLLATE "C" := whose;
  mine CONSTANT xid := muniment.transaction_mark()::xid;
BEGIN
  RETURN QUERY SELECT 'captures', c.capture_id::text FROM captures c WHERE c.tenant_id = here AND c.content = '' AND c.xmin = mine;
  RETURN QUERY SELECT 'candidates', c.candidate_id::text FROM candidates c WHERE c.tenant_id = here AND c.content = '' AND c.xmin = mine;
  RETURN QUERY SELECT 'verdicts', v.verdict_id::text FROM verdicts v WHERE v.tenant_id = here AND v.remark IS NULL AND v.xmin = mine;
  RETURN QUERY SELECT 'consents', c.consent_id::text FROM consents c WHERE c.tenant_id = here AND c.evidence = '' AND c.xmin = mine;
  RETURN QUERY SELECT 'recalls', r.recall_id::text FROM recalls r WHERE r.tenant_id = here AND r.query IS NULL AND r.xmin = mine;
END $$;
REVOKE ALL ON FUNCTION blanked_rows(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION blanked_rows(text) TO muniment_privacy;

-- A subject that was erased and comes back gets a key again; a key that is there is never touched.
CREATE FUNCTION renew_subject(whose text, named text, anew bytea, version int) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = muniment, pg_temp AS $$
DECLARE
  here CONSTANT text COLLATE "C" := whose;
BEGIN
  UPDATE subjects s SET wrapped_key = anew, key_version = version
  WHERE s.tenant_id = here AND s.holder = named AND s.wrapped_key IS NULL;
END $$;
REVOKE ALL ON FUNCTION renew_subject(text, text, bytea, int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION renew_subject(text, text, bytea, int) TO muniment_writer, muniment_privacy;

-- Data keys wrapped anew under a later key of the tenant (ERA-4); none is replaced by one of an earlier or the same version.
CREATE FUNCTION rewrap_subjects(whose text, holders text[], before bytea[], anew bytea[], version int) RETURNS void LANGUAGE plpgsql
SECURITY DEFINER SET search_path = muniment, pg_temp AS $$
DECLARE
  here CONSTANT text COLLATE "C" := whose;
  -- Not as elements of the arrays in the statement, by which a node of a cluster fails.
  named text COLLATE "C";
  old bytea;
  new bytea;
BEGIN
  -- Only what is as it was read: one that was destroyed, or made anew, meanwhile stays so.
  FOR n IN 1 .. cardinality(holders) LOOP
    named := holders[n];
    old := before[n];
    new := anew[n];
    UPDATE subjects s SET wrapped_key = new, key_version = version
    WHERE s.tenant_id = here AND s.holder = named AND s.wrapped_key = old AND s.key_version < version;
  END LOOP;
  -- Those without a key hold on to no version.
  UPDATE subjects s SET key_version = version WHERE s.tenant_id = here AND s.wrapped_key IS NULL AND s.key_version < version;
END $$;
REVOKE ALL ON FUNCTION rewrap_subjects(text, text[], bytea[], bytea[], int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rewrap_subjects(text, text[], bytea[], bytea[], int) TO muniment_privacy;

-- The audit key wrapped anew under a later key of the tenant, if it is as it was read.
CREATE FUNCTION rewrap_audit_key(whose text, before bytea, anew bytea, version int) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = muniment, pg_temp AS $$
DECLARE
  here CONSTANT text COLLATE "C" := whose;
BEGIN
  UPDATE audit_keys a SET wrapped = anew, key_version = version
  WHERE a.tenant_id = here AND a.wrapped = before AND a.key_version < version;
END $$;
REVOKE ALL ON FUNCTION rewrap_audit_key(text, bytea, bytea, int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rewrap_audit_key(text, bytea, bytea, int) TO muniment_privacy;

-- Keys of the tenant that nothing is wrapped under any more, before a version; how many earlier ones are still needed.
CREATE FUNCTION drop_tenant_keys(whose text, before int) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = muniment, pg_temp AS $$
DECLARE
  here CONSTANT text COLLATE "C" := whose;
  wrapping int[];
  needed bigint;
BEGIN
  SELECT array_agg(DISTINCT s.key_version) INTO wrapping FROM subjects s WHERE s.tenant_id = here AND s.key_version < before;
  SELECT wrapping || array_agg(a.key_version) INTO wrapping FROM audit_keys a WHERE a.tenant_id = here AND a.key_version < before;
  -- A key that came to wrap something since is kept by the foreign keys.
  DELETE FROM tenant_keys k WHERE k.tenant_id = here AND k.version < before AND NOT k.version = ANY (coalesce(wrapping, '{}'));
  SELECT count(*) INTO needed FROM tenant_keys k WHERE k.tenant_id = here AND k.version < before;
  RETURN needed;
END $$;
REVOKE ALL ON FUNCTION drop_tenant_keys(text, int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION drop_tenant_keys(text, int) TO muniment_privacy;
