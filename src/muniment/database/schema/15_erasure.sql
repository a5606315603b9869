-- Erasures and the functions that carry them out, searches for names that are left, and keys that are destroyed or replaced.
--
-- Each function is the one way to something that no login may do by itself (ADR 24). They run as the owner, whom forced row
-- security holds to the tenant of the transaction like everybody else.

-- Erasures, as receipts (ERA-2): who asked, what went, when the last of it was gone from beneath too. Of a person, `names` is every
-- name that it covers: its holders (the subject under all aliases, '@user'), and the hashes that `capture_names` keeps of them
-- (ERA-5). Of one fact, `fact_id` is the memory or proposal that was named, `facts` are its candidates and `captures` the captures
-- that go with it (ERA-8). `requested_by` is on whose request it was done (SUB-3).
CREATE TABLE erasures (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  erasure_id text COLLATE "C" NOT NULL,
  seq        bigint NOT NULL,
  erased_at  timestamptz NOT NULL,
  txid       xid8 NOT NULL,
  by         text COLLATE "C" NOT NULL,
  subject    text COLLATE "C",
  user_id    text COLLATE "C",
  holders    text[] COLLATE "C" NOT NULL,
  memories   int NOT NULL CHECK (memories >= 0),
  purged_at  timestamptz,
  names      text[] COLLATE "C" NOT NULL,
  fact_id    text COLLATE "C",
  facts      text[] COLLATE "C" NOT NULL DEFAULT '{}',
  captures   text[] COLLATE "C" NOT NULL DEFAULT '{}',
  requested_by text COLLATE "C",
  PRIMARY KEY (tenant_id, erasure_id),
  FOREIGN KEY (tenant_id, seq, erased_at, txid) REFERENCES ticks (tenant_id, visible_seq, at, txid),
  CONSTRAINT erasures_names_hold_holders CHECK (names @> holders AND NOT '*' = ANY (names)),
  CONSTRAINT erasures_of_a_person_or_a_fact CHECK (CASE WHEN fact_id IS NULL
    THEN (subject IS NOT NULL OR user_id IS NOT NULL) AND cardinality(holders) > 0 AND facts = '{}' AND captures = '{}'
    ELSE subject IS NULL AND user_id IS NULL AND names = '{}' AND facts <> '{}' END)
);
CREATE INDEX erasures_by_number ON erasures (tenant_id, seq);

-- How many rows of which table an erasure blanked.
CREATE TABLE erased_rows (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  erasure_id text COLLATE "C" NOT NULL,
  what       text NOT NULL,
  rows       bigint NOT NULL CHECK (rows >= 0),
  PRIMARY KEY (tenant_id, erasure_id, what),
  FOREIGN KEY (tenant_id, erasure_id) REFERENCES erasures (tenant_id, erasure_id)
);

-- Searches of opened texts for a name, page by page: who searched, for what (a keyed hash), for which erasure, how far it came and
-- what was found. Never the name itself. Each page continues the one before it, so that one that is finished went through all.
CREATE TABLE name_searches (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  search_id  text COLLATE "C" NOT NULL,
  page       int NOT NULL CHECK (page > 0),
  prev       int CHECK (prev = page - 1),
  seq        bigint NOT NULL,
  at         timestamptz NOT NULL,
  txid       xid8 NOT NULL,
  by         text COLLATE "C" NOT NULL,
  mark       bytea NOT NULL CHECK (length(mark) = 32),
  erasure_id text COLLATE "C",
  place      text COLLATE "C" NOT NULL,
  row_id     text COLLATE "C" NOT NULL,
  searched   int NOT NULL CHECK (searched >= 0),
  hits       int NOT NULL CHECK (hits >= 0),
  finished   boolean NOT NULL,
  -- No page follows one that is finished.
  goes_on    int GENERATED ALWAYS AS (CASE WHEN NOT finished THEN page END) STORED,
  PRIMARY KEY (tenant_id, search_id, page),
  UNIQUE (tenant_id, search_id, goes_on, mark),
  CHECK ((page = 1) = (prev IS NULL)),
  FOREIGN KEY (tenant_id, search_id, prev, mark) REFERENCES name_searches (tenant_id, search_id, goes_on, mark),
  FOREIGN KEY (tenant_id, erasure_id) REFERENCES erasures (tenant_id, erasure_id),
  FOREIGN KEY (tenant_id, seq, at, txid) REFERENCES ticks (tenant_id, seq, at, txid)
);
CREATE INDEX name_searches_by_erasure ON name_searches (tenant_id, erasure_id) WHERE erasure_id IS NOT NULL AND finished;

-- All that an erasure has to reach beside promoted memory: keys destroyed, content blanked whoever's key sealed it. Only for the
-- erasure of this very transaction; it cannot be called for another, or later. The conditions here and in `erase_late` are those
-- of database/fragments.sql (`covered_capture`, `covered_fact`, `covered_recall`), which a function cannot share; a test
-- compares them.
CREATE FUNCTION erase_content(wanted text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = muniment, pg_temp AS $$
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
REVOKE ALL ON FUNCTION erase_content(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION erase_content(text) TO muniment_privacy;

-- Captures from before an erasure whose facts were read only after it and name whom it erased: blanked. Blanks nothing that no
-- erasure covers. A receipt of such an erasure that said purged does so no more, until the purge has run again.
CREATE FUNCTION erase_late(wanted text[]) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = muniment, pg_temp AS $$
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
REVOKE ALL ON FUNCTION erase_late(text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION erase_late(text[]) TO muniment_writer;

-- The rows that lost their content in this very transaction, which an erasure's event tells of (AUD-4). The transaction that
-- wrote a row last stands in its header.
CREATE FUNCTION blanked_rows(whose text) RETURNS TABLE (form text, id text) LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = muniment, pg_temp AS $$
  SELECT 'captures', capture_id FROM captures
  WHERE tenant_id = whose AND tenant_id = current_setting('muniment.tenant') AND content = '' AND xmin = muniment.transaction_mark()::xid
  UNION ALL
  SELECT 'candidates', candidate_id FROM candidates
  WHERE tenant_id = whose AND tenant_id = current_setting('muniment.tenant') AND content = '' AND xmin = muniment.transaction_mark()::xid
  UNION ALL
  SELECT 'verdicts', verdict_id FROM verdicts
  WHERE tenant_id = whose AND tenant_id = current_setting('muniment.tenant') AND remark IS NULL AND xmin = muniment.transaction_mark()::xid
  UNION ALL
  SELECT 'consents', consent_id FROM consents
  WHERE tenant_id = whose AND tenant_id = current_setting('muniment.tenant') AND evidence = '' AND xmin = muniment.transaction_mark()::xid
  UNION ALL
  SELECT 'recalls', recall_id FROM recalls
  WHERE tenant_id = whose AND tenant_id = current_setting('muniment.tenant') AND query IS NULL AND xmin = muniment.transaction_mark()::xid
$$;
REVOKE ALL ON FUNCTION blanked_rows(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION blanked_rows(text) TO muniment_privacy;

-- A subject that was erased and comes back gets a key again; a key that is there is never touched.
CREATE FUNCTION renew_subject(whose text, wrapped bytea, version int) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = muniment, pg_temp AS $$
  UPDATE subjects SET wrapped_key = wrapped, key_version = version
  WHERE tenant_id = current_setting('muniment.tenant') AND holder = whose AND wrapped_key IS NULL
$$;
REVOKE ALL ON FUNCTION renew_subject(text, bytea, int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION renew_subject(text, bytea, int) TO muniment_writer, muniment_privacy;

-- Data keys wrapped anew under a later key of the tenant (ERA-4); none is replaced by one of an earlier or the same version.
CREATE FUNCTION rewrap_subjects(whose text[], before bytea[], wrapped bytea[], version int) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = muniment, pg_temp AS $$
  -- Only what is as it was read: one that was destroyed, or made anew, meanwhile stays so.
  UPDATE subjects s SET wrapped_key = n.wrapped, key_version = version
  FROM unnest(whose, before, wrapped) AS n (holder, before, wrapped)
  WHERE s.tenant_id = current_setting('muniment.tenant') AND s.holder = n.holder AND s.wrapped_key = n.before AND s.key_version < version;
  -- Those without a key hold on to no version.
  UPDATE subjects SET key_version = version
  WHERE tenant_id = current_setting('muniment.tenant') AND wrapped_key IS NULL AND key_version < version
$$;
REVOKE ALL ON FUNCTION rewrap_subjects(text[], bytea[], bytea[], int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rewrap_subjects(text[], bytea[], bytea[], int) TO muniment_privacy;

-- The audit key wrapped anew under a later key of the tenant, if it is as it was read.
CREATE FUNCTION rewrap_audit_key(whose text, before bytea, anew bytea, version int) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = muniment, pg_temp AS $$
  UPDATE audit_keys SET wrapped = anew, key_version = version
  WHERE tenant_id = whose AND tenant_id = current_setting('muniment.tenant') AND wrapped = before AND key_version < version
$$;
REVOKE ALL ON FUNCTION rewrap_audit_key(text, bytea, bytea, int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION rewrap_audit_key(text, bytea, bytea, int) TO muniment_privacy;

-- Keys of the tenant that nothing is wrapped under any more, before a version; how many earlier ones are still needed.
CREATE FUNCTION drop_tenant_keys(before int) RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = muniment, pg_temp AS $$
  DELETE FROM tenant_keys k WHERE k.tenant_id = current_setting('muniment.tenant') AND k.version < before
    AND NOT EXISTS (SELECT FROM subjects s WHERE s.tenant_id = k.tenant_id AND s.key_version = k.version)
    AND NOT EXISTS (SELECT FROM audit_keys a WHERE a.tenant_id = k.tenant_id AND a.key_version = k.version);
  SELECT count(*) FROM tenant_keys k WHERE k.tenant_id = current_setting('muniment.tenant') AND k.version < before
$$;
REVOKE ALL ON FUNCTION drop_tenant_keys(int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION drop_tenant_keys(int) TO muniment_privacy;

-- No samples of content and keys.
SELECT no_samples('name_searches', 'mark');

-- Which rows a transaction sees and writes.
SELECT rows_of_transaction('erasures', 'tenant_erase', writes => 'purged_at IS NULL');
SELECT add_policy('erasures', 'purge_once', 'UPDATE', sees => 'purged_at IS NULL', writes => 'purged_at IS NOT NULL');
-- A receipt that said purged is taken back where more of the person's content is found and blanked (`erase_late`).
SELECT add_policy('erasures', 'reopen', 'UPDATE', login => 'owner');
SELECT add_policy('erased_rows', 'tenant_read', 'SELECT');
SELECT add_policy('erased_rows', 'count_them', 'INSERT', login => 'owner');
SELECT rows_of_transaction('name_searches', 'tenant_search');

-- Who may do what.
GRANT SELECT ON erasures TO muniment_writer, muniment_recall;
GRANT SELECT ON erasures, erased_rows, name_searches TO muniment_auditor;
GRANT SELECT, INSERT ON erasures, name_searches TO muniment_privacy;
GRANT SELECT ON erased_rows TO muniment_privacy;
GRANT SELECT ON erased_rows, name_searches TO muniment_jobs;
GRANT SELECT, UPDATE (purged_at) ON erasures TO muniment_jobs;
