-- Columns that the coming rules need (ADR 53): when a fact holds in the world (REC-14), what is said about somebody else (CAN-16),
-- a proposal's fingerprint, action and targets (REV-11, CAN-12); and the table of requests for consent (CON-9).

ALTER TABLE captures ADD COLUMN valid_from timestamptz;
ALTER TABLE captures ADD COLUMN valid_until timestamptz;
ALTER TABLE captures ADD CONSTRAINT captures_valid CHECK (valid_from < valid_until);

ALTER TABLE proposals ADD COLUMN action text NOT NULL DEFAULT 'promote';
ALTER TABLE proposals ADD COLUMN targets text[] COLLATE "C" NOT NULL DEFAULT '{}';
ALTER TABLE proposals ADD CONSTRAINT proposals_action CHECK (action IN ('promote', 'retract', 'correct'));
ALTER TABLE proposals ADD CONSTRAINT proposals_targets CHECK (cardinality(targets) <= CASE action WHEN 'promote' THEN 0 ELSE 5 END);

-- What a memory shares with its candidate, and `memory_scope` with its memory, now says these too: the columns that hold it are
-- made again, with the keys on them.
ALTER TABLE memory_scope DROP CONSTRAINT memory_scope_tenant_id_memory_id_filters_fkey;
ALTER TABLE memories DROP CONSTRAINT memories_tenant_id_candidate_id_author_editors_facts_fkey;
ALTER TABLE candidates DROP COLUMN facts;
ALTER TABLE memories DROP COLUMN filters;
ALTER TABLE memories DROP COLUMN facts;
ALTER TABLE memory_scope DROP COLUMN filters;

ALTER TABLE candidates ADD COLUMN valid_from timestamptz;
ALTER TABLE candidates ADD COLUMN valid_until timestamptz;
ALTER TABLE candidates ADD COLUMN third_party boolean NOT NULL DEFAULT false;
ALTER TABLE candidates ADD COLUMN fingerprint bytea;
ALTER TABLE candidates ADD COLUMN facts text COLLATE "C" GENERATED ALWAYS AS (md5(
  capture_id || chr(31) || class || chr(31) || classification || chr(31) || holder || chr(31) || coalesce(subject, '') || chr(31)
  || coalesce(entity, '') || chr(31) || coalesce(predicate, '') || chr(31) || coalesce(user_id, '') || chr(31)
  || coalesce(session_id, '') || chr(31) || coalesce(workflow_id, '') || chr(31) || coalesce(intent_id, '') || chr(31)
  || coalesce(qualifiers::text, '') || chr(31) || coalesce(extract(epoch FROM valid_from AT TIME ZONE 'UTC')::text, '') || chr(31)
  || coalesce(extract(epoch FROM valid_until AT TIME ZONE 'UTC')::text, '') || chr(31) || third_party::text)) STORED;
ALTER TABLE candidates ADD CONSTRAINT candidates_valid CHECK (valid_from < valid_until);
ALTER TABLE candidates ADD CONSTRAINT candidates_fingerprint CHECK (length(fingerprint) = 16);
ALTER TABLE candidates ADD UNIQUE (tenant_id, candidate_id, author, editors, facts);
DO $$
BEGIN
  FOR n IN 0..7 LOOP
    EXECUTE format('ALTER TABLE %I ALTER COLUMN fingerprint SET STATISTICS 0', 'candidates_' || n);
  END LOOP;
END $$;
ALTER TABLE candidates ALTER COLUMN fingerprint SET STATISTICS 0;

ALTER TABLE memories ADD COLUMN valid_from timestamptz;
ALTER TABLE memories ADD COLUMN valid_until timestamptz;
ALTER TABLE memories ADD COLUMN third_party boolean NOT NULL DEFAULT false;
ALTER TABLE memories ADD COLUMN filters text COLLATE "C" GENERATED ALWAYS AS (md5(
  user_id || chr(31) || tier || chr(31) || class || chr(31) || classification || chr(31) || session_id || chr(31)
  || workflow_id || chr(31) || intent_id || chr(31) || coalesce(entity, '') || chr(31) || coalesce(predicate, '') || chr(31)
  || coalesce(consent_root, '') || chr(31) || coalesce(qualifiers::text, '') || chr(31) || born_seq::text || chr(31)
  || extract(epoch FROM promoted_at AT TIME ZONE 'UTC')::text || chr(31) || extract(epoch FROM expires_at AT TIME ZONE 'UTC')::text || chr(31)
  || priority::numeric::text || chr(31) || confidence::numeric::text || chr(31)
  || coalesce(extract(epoch FROM valid_from AT TIME ZONE 'UTC')::text, '') || chr(31)
  || coalesce(extract(epoch FROM valid_until AT TIME ZONE 'UTC')::text, ''))) STORED;
ALTER TABLE memories ADD COLUMN facts text COLLATE "C" GENERATED ALWAYS AS (md5(
  capture_id || chr(31) || class || chr(31) || classification || chr(31) || holder || chr(31) || coalesce(subject, '') || chr(31)
  || coalesce(entity, '') || chr(31) || coalesce(predicate, '') || chr(31) || user_id || chr(31)
  || session_id || chr(31) || workflow_id || chr(31) || intent_id || chr(31)
  || coalesce(qualifiers::text, '') || chr(31) || coalesce(extract(epoch FROM valid_from AT TIME ZONE 'UTC')::text, '') || chr(31)
  || coalesce(extract(epoch FROM valid_until AT TIME ZONE 'UTC')::text, '') || chr(31) || third_party::text)) STORED;
ALTER TABLE memories ADD CONSTRAINT memories_third_party CHECK (NOT third_party OR (approver_kind = 'operator' AND user_id <> ''));
ALTER TABLE memories ADD CONSTRAINT memories_valid CHECK (valid_from < valid_until);
ALTER TABLE memories ADD UNIQUE (tenant_id, memory_id, filters);

ALTER TABLE memory_scope ADD COLUMN valid_from timestamptz;
ALTER TABLE memory_scope ADD COLUMN valid_until timestamptz;
ALTER TABLE memory_scope ADD COLUMN filters text COLLATE "C" GENERATED ALWAYS AS (md5(
  user_id || chr(31) || tier || chr(31) || class || chr(31) || classification || chr(31) || session_id || chr(31)
  || workflow_id || chr(31) || intent_id || chr(31) || coalesce(entity, '') || chr(31) || coalesce(predicate, '') || chr(31)
  || coalesce(consent_root, '') || chr(31) || coalesce(qualifiers::text, '') || chr(31) || born_seq::text || chr(31)
  || extract(epoch FROM promoted_at AT TIME ZONE 'UTC')::text || chr(31) || extract(epoch FROM expires_at AT TIME ZONE 'UTC')::text || chr(31)
  || priority::numeric::text || chr(31) || confidence::numeric::text || chr(31)
  || coalesce(extract(epoch FROM valid_from AT TIME ZONE 'UTC')::text, '') || chr(31)
  || coalesce(extract(epoch FROM valid_until AT TIME ZONE 'UTC')::text, ''))) STORED;

-- The owner sees the rows meanwhile that the keys are checked against.
ALTER TABLE candidates NO FORCE ROW LEVEL SECURITY;
ALTER TABLE memories NO FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_scope NO FORCE ROW LEVEL SECURITY;
ALTER TABLE memories ADD FOREIGN KEY (tenant_id, candidate_id, author, editors, facts)
  REFERENCES candidates (tenant_id, candidate_id, author, editors, facts);
ALTER TABLE memory_scope ADD FOREIGN KEY (tenant_id, memory_id, filters) REFERENCES memories (tenant_id, memory_id, filters);
ALTER TABLE candidates FORCE ROW LEVEL SECURITY;
ALTER TABLE memories FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_scope FORCE ROW LEVEL SECURITY;

-- The question to a subject whether a fact may be kept that was refused only because the subject had not consented (CON-9): which
-- fact of which capture, and its label; no content. It is answered once, until it ends, by who may record consents.
CREATE TABLE consent_requests (
  tenant_id     text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  request_id    text COLLATE "C" NOT NULL,
  capture_id    text COLLATE "C" NOT NULL,
  consolidation int NOT NULL,
  extractor     text COLLATE "C" NOT NULL,
  ordinal       int NOT NULL,
  subject       text COLLATE "C" NOT NULL,
  label         text COLLATE "C" NOT NULL,
  seq           bigint NOT NULL,
  asked_at      timestamptz NOT NULL,
  txid          xid8 NOT NULL,
  ends_at       timestamptz NOT NULL,
  answer        text CHECK (answer IN ('granted', 'refused', 'withdrawn')),
  answered_seq  bigint,
  answered_at   timestamptz,
  answered_txid xid8,
  answered_by   text COLLATE "C",
  PRIMARY KEY (tenant_id, request_id),
  UNIQUE (tenant_id, capture_id, consolidation, extractor, ordinal),
  FOREIGN KEY (tenant_id, capture_id, consolidation, extractor, ordinal)
    REFERENCES refusals (tenant_id, capture_id, consolidation, extractor, ordinal),
  FOREIGN KEY (tenant_id, seq, asked_at, txid) REFERENCES ticks (tenant_id, seq, at, txid),
  FOREIGN KEY (tenant_id, answered_seq, answered_at, answered_txid) REFERENCES ticks (tenant_id, seq, at, txid),
  CONSTRAINT consent_requests_whole_answer CHECK (num_nonnulls(answer, answered_seq, answered_at, answered_txid, answered_by) IN (0, 5)),
  CONSTRAINT consent_requests_in_time CHECK (asked_at < ends_at AND answered_at < ends_at)
);
CREATE INDEX consent_requests_open ON consent_requests (tenant_id, subject, ends_at) WHERE answer IS NULL;
ALTER TABLE consent_requests ENABLE ROW LEVEL SECURITY;
ALTER TABLE consent_requests FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON consent_requests FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_ask ON consent_requests FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = muniment.transaction_mark() AND answer IS NULL);
CREATE POLICY answer_once ON consent_requests FOR UPDATE TO muniment_privacy
  USING (tenant_id = current_setting('muniment.tenant', true) AND answer IS NULL)
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND answer IS NOT NULL AND answered_txid = muniment.transaction_mark());
GRANT SELECT, INSERT ON consent_requests TO muniment_writer;
GRANT SELECT ON consent_requests TO muniment_auditor;
GRANT SELECT, UPDATE (answer, answered_seq, answered_at, answered_txid, answered_by) ON consent_requests TO muniment_privacy;

-- An erasure takes the fingerprint with the content.
CREATE OR REPLACE FUNCTION erase_content(wanted text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = muniment, pg_temp AS $$
DECLARE
  here text := current_setting('muniment.tenant');
  e erasures;
  touched bigint;
BEGIN
  SELECT * INTO e FROM erasures WHERE tenant_id = here AND erasure_id = wanted AND txid = muniment.transaction_mark();
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

  UPDATE candidates c SET content = '', fingerprint = NULL
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
