-- Whom an erasure covers, in one condition; whom a capture's facts named, refused ones too; searches for a name.

-- The entities that facts of a capture named, where neither the capture's row nor a candidate's says so: the entity of a fact
-- that is not the capture's subject, and entities that stand in a value. A value is content: such a name is kept as a hash under
-- the tenant's key ('#' and 32 hex digits). `candidate_id` is the fact that named it, '' where that fact was refused.
-- Rows outlive the archiving of their capture.
CREATE TABLE capture_names (
  tenant_id    text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  capture_id   text COLLATE "C" NOT NULL,
  candidate_id text COLLATE "C" NOT NULL,
  name         text COLLATE "C" NOT NULL
    CHECK (name ~ '^[a-z][a-z0-9_]*:[A-Za-z0-9._-]{1,128}$' OR name ~ '^#[0-9a-f]{32}$'),
  PRIMARY KEY (tenant_id, capture_id, candidate_id, name)
);
CREATE INDEX capture_names_by_name ON capture_names (tenant_id, name);
-- Captures from before: what their candidates say. The owner sees the rows meanwhile.
ALTER TABLE candidates NO FORCE ROW LEVEL SECURITY;
INSERT INTO capture_names (tenant_id, capture_id, candidate_id, name)
SELECT tenant_id, capture_id, candidate_id, entity FROM candidates
WHERE entity IS NOT NULL AND entity IS DISTINCT FROM subject;
ALTER TABLE candidates FORCE ROW LEVEL SECURITY;
ALTER TABLE capture_names ENABLE ROW LEVEL SECURITY;
ALTER TABLE capture_names FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON capture_names USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON capture_names TO muniment_writer;
GRANT SELECT ON capture_names TO muniment_auditor, muniment_privacy, muniment_jobs;

-- Every name that an erasure covers: its holders (the subject under all aliases, '@user'), and the hashes that
-- `capture_names` keeps of them.
ALTER TABLE erasures NO FORCE ROW LEVEL SECURITY;
ALTER TABLE erasures ADD COLUMN names text[] COLLATE "C";
UPDATE erasures SET names = holders;
ALTER TABLE erasures ALTER COLUMN names SET NOT NULL;
ALTER TABLE erasures ADD CONSTRAINT erasures_names_hold_holders CHECK (names @> holders AND NOT '*' = ANY (names));
ALTER TABLE erasures FORCE ROW LEVEL SECURITY;
-- A receipt that said purged is taken back where more of the person's content is found and blanked (`erase_late`).
CREATE POLICY reopen ON erasures FOR UPDATE TO CURRENT_USER
  USING (tenant_id = current_setting('muniment.tenant', true)) WITH CHECK (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT (capture_id) ON candidates TO muniment_privacy;
-- Why a purge waits stands on the receipt.
GRANT SELECT (tenant_id, job, error) ON job_runs TO muniment_privacy;

-- The conditions below are those of storage/sql/fragments.sql (`covered_capture`, `covered_fact`, `covered_recall`), which a
-- function cannot share; a test compares them.
CREATE OR REPLACE FUNCTION erase_content(wanted text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = muniment, pg_temp AS $$
DECLARE
  here text := current_setting('muniment.tenant');
  e erasures;
  touched bigint;
BEGIN
  SELECT * INTO e FROM erasures WHERE tenant_id = here AND erasure_id = wanted AND txid = pg_current_xact_id();
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no erasure of this transaction' USING ERRCODE = 'insufficient_privilege';
  END IF;

  UPDATE subjects SET wrapped_key = NULL WHERE tenant_id = here AND holder = ANY (e.holders) AND wrapped_key IS NOT NULL;
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'keys', touched);

  DELETE FROM extractions x USING captures c
  WHERE x.tenant_id = here AND c.tenant_id = here AND c.capture_id = x.capture_id
    AND ((c.holder = ANY (e.names) OR c.subject = ANY (e.names) OR c.entity = ANY (e.names)
  OR '@' || c.user_id = ANY (e.names)) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names)));
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'extractions', touched);

  -- A hash of content under a key that may not be destroyed; the key of the request stays taken.
  UPDATE idempotency_keys k SET digest = '' FROM captures c
  WHERE k.tenant_id = here AND k.digest <> '' AND c.tenant_id = here AND c.capture_id = k.capture_id
    AND ((c.holder = ANY (e.names) OR c.subject = ANY (e.names) OR c.entity = ANY (e.names)
  OR '@' || c.user_id = ANY (e.names)) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names)));
  UPDATE idempotency_keys k SET digest = '' FROM archived_captures c
  WHERE k.tenant_id = here AND k.digest <> '' AND c.tenant_id = here AND c.capture_id = k.capture_id
    AND ((c.holder = ANY (e.names) OR c.subject = ANY (e.names) OR c.entity = ANY (e.names)
  OR '@' || c.user_id = ANY (e.names)) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names)));

  UPDATE captures c SET content = ''
  WHERE c.tenant_id = here AND c.content <> ''
    AND ((c.holder = ANY (e.names) OR c.subject = ANY (e.names) OR c.entity = ANY (e.names)
  OR '@' || c.user_id = ANY (e.names)) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names)));
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'captures', touched);

  UPDATE verdicts v SET remark = NULL FROM proposals p, candidates c
  WHERE v.tenant_id = here AND v.remark IS NOT NULL
    AND p.tenant_id = here AND p.proposal_id = v.proposal_id AND c.tenant_id = here AND c.candidate_id = p.candidate_id
    AND ((c.holder = ANY (e.names) OR c.subject = ANY (e.names) OR c.entity = ANY (e.names)
  OR '@' || c.user_id = ANY (e.names)) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names)
    AND (n.candidate_id = c.candidate_id OR c.entity IS NULL)));
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'notes', touched);

  DELETE FROM rejection_marks k USING proposals p, candidates c
  WHERE k.tenant_id = here AND p.tenant_id = here AND p.proposal_id = k.proposal_id
    AND c.tenant_id = here AND c.candidate_id = p.candidate_id
    AND ((c.holder = ANY (e.names) OR c.subject = ANY (e.names) OR c.entity = ANY (e.names)
  OR '@' || c.user_id = ANY (e.names)) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names)
    AND (n.candidate_id = c.candidate_id OR c.entity IS NULL)));
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'rejection_marks', touched);

  UPDATE candidates c SET content = ''
  WHERE c.tenant_id = here AND c.content <> ''
    AND ((c.holder = ANY (e.names) OR c.subject = ANY (e.names) OR c.entity = ANY (e.names)
  OR '@' || c.user_id = ANY (e.names)) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names)
    AND (n.candidate_id = c.candidate_id OR c.entity IS NULL)));
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'candidates', touched);

  UPDATE recalls r SET query = NULL
  WHERE r.tenant_id = here AND r.query IS NOT NULL
    AND (r.holder = ANY (e.names) OR '@' || r.user_id = ANY (e.names) OR r.request -> 'entities' ?| e.names);
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'recall_queries', touched);

  UPDATE consents SET evidence = '' WHERE tenant_id = here AND evidence <> '' AND subject = ANY (e.names);
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'consent_evidence', touched);
END $$;

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
  OR '@' || c.user_id = ANY (e.names)) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names))));
  DELETE FROM extractions x USING captures c
  WHERE x.tenant_id = here AND c.tenant_id = here AND c.capture_id = x.capture_id AND c.capture_id = ANY (wanted) AND EXISTS (
    SELECT FROM erasures e WHERE e.tenant_id = here AND e.seq > c.seq AND ((c.holder = ANY (e.names) OR c.subject = ANY (e.names) OR c.entity = ANY (e.names)
  OR '@' || c.user_id = ANY (e.names)) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names))));
  UPDATE idempotency_keys k SET digest = '' FROM captures c
  WHERE k.tenant_id = here AND c.tenant_id = here AND c.capture_id = k.capture_id AND c.capture_id = ANY (wanted) AND EXISTS (
    SELECT FROM erasures e WHERE e.tenant_id = here AND e.seq > c.seq AND ((c.holder = ANY (e.names) OR c.subject = ANY (e.names) OR c.entity = ANY (e.names)
  OR '@' || c.user_id = ANY (e.names)) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names))));
  UPDATE captures c SET content = ''
  WHERE c.tenant_id = here AND c.capture_id = ANY (wanted) AND c.content <> '' AND EXISTS (
    SELECT FROM erasures e WHERE e.tenant_id = here AND e.seq > c.seq AND ((c.holder = ANY (e.names) OR c.subject = ANY (e.names) OR c.entity = ANY (e.names)
  OR '@' || c.user_id = ANY (e.names)) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = here AND n.capture_id = c.capture_id AND n.name = ANY (e.names))));
  GET DIAGNOSTICS touched = ROW_COUNT;
  RETURN touched;
END $$;
REVOKE ALL ON FUNCTION erase_late(text[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION erase_late(text[]) TO muniment_writer;

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
ALTER TABLE name_searches ALTER COLUMN mark SET STATISTICS 0;
ALTER TABLE name_searches ENABLE ROW LEVEL SECURITY;
ALTER TABLE name_searches FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON name_searches FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_search ON name_searches FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = pg_current_xact_id());
GRANT SELECT, INSERT ON name_searches TO muniment_privacy;
GRANT SELECT ON name_searches TO muniment_auditor, muniment_jobs;
