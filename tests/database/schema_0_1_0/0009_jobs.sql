-- What keeps the fabric healthy for years: captures tried again, answers of models kept, confidence calibrated, samples
-- audited, alerts told once, captures archived, subjects erased.
--
-- Five functions, each the one way to something that no login may do by itself (ADR 24). They run as the owner, whom forced row
-- security holds to the tenant of the transaction like everybody else.

-- Captures that could not be consolidated: tried again later, parked in the end. Work in hand, not a record: the row
-- goes when the capture is done. Those behind it that concern the same holder wait with it, so that order holds.
CREATE TABLE retries (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  capture_id text COLLATE "C" NOT NULL,
  seq        bigint NOT NULL,
  holder     text COLLATE "C" NOT NULL,
  tries      smallint NOT NULL CHECK (tries >= 0),
  next_at    timestamptz NOT NULL,
  error      text COLLATE "C",
  parked_at  timestamptz,
  PRIMARY KEY (tenant_id, capture_id)
);
CREATE INDEX retries_due ON retries (tenant_id, seq, capture_id) WHERE parked_at IS NULL;
ALTER TABLE retries ENABLE ROW LEVEL SECURITY;
ALTER TABLE retries FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON retries USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT, UPDATE (tries, next_at, error, parked_at), DELETE ON retries TO muniment_writer;
GRANT SELECT ON retries TO muniment_auditor, muniment_jobs;

-- What a language model answered about a capture, sealed: asked once, the same ever after.
CREATE TABLE extractions (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  capture_id text COLLATE "C" NOT NULL,
  extractor  text COLLATE "C" NOT NULL,
  holder     text COLLATE "C" NOT NULL,
  at         timestamptz NOT NULL,
  answer     bytea NOT NULL,
  PRIMARY KEY (tenant_id, capture_id, extractor)
) PARTITION BY HASH (tenant_id);
CREATE INDEX extractions_by_time ON extractions (tenant_id, extractor, at);
ALTER TABLE extractions ENABLE ROW LEVEL SECURITY;
ALTER TABLE extractions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON extractions USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON extractions TO muniment_writer;
GRANT SELECT ON extractions TO muniment_auditor;
DO $$
BEGIN
  FOR n IN 0..7 LOOP
    EXECUTE format('CREATE TABLE extractions_%s PARTITION OF extractions FOR VALUES WITH (MODULUS 8, REMAINDER %s)', n, n);
    EXECUTE format('ALTER TABLE extractions_%s ENABLE ROW LEVEL SECURITY', n);
    EXECUTE format('ALTER TABLE extractions_%s FORCE ROW LEVEL SECURITY', n);
    EXECUTE format('ALTER TABLE extractions_%s ALTER COLUMN answer SET STATISTICS 0', n);
  END LOOP;
END $$;
ALTER TABLE extractions ALTER COLUMN answer SET STATISTICS 0;

-- How often a model was asked on a day; asking counts, whatever is answered.
CREATE TABLE model_calls (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  extractor text COLLATE "C" NOT NULL,
  day       date NOT NULL,
  calls     int NOT NULL CHECK (calls > 0),
  PRIMARY KEY (tenant_id, extractor, day)
);
ALTER TABLE model_calls ENABLE ROW LEVEL SECURITY;
ALTER TABLE model_calls FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON model_calls USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT, UPDATE (calls) ON model_calls TO muniment_writer;
GRANT SELECT ON model_calls TO muniment_auditor;

-- How much a source's confidence was worth, from people's verdicts: [[raw, estimate, verdicts, approved], ...] rising.
CREATE TABLE calibrations (
  tenant_id      text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  calibration_id text COLLATE "C" NOT NULL,
  seq            bigint NOT NULL,
  calibrated_at  timestamptz NOT NULL,
  txid           xid8 NOT NULL,
  source         text COLLATE "C" NOT NULL,
  verdicts       int NOT NULL CHECK (verdicts >= 0),
  approved       int NOT NULL CHECK (approved BETWEEN 0 AND verdicts),
  points         jsonb NOT NULL CHECK (jsonb_typeof(points) = 'array'),
  PRIMARY KEY (tenant_id, calibration_id),
  UNIQUE (tenant_id, source, seq),
  FOREIGN KEY (tenant_id, seq, calibrated_at, txid) REFERENCES ticks (tenant_id, seq, at, txid)
);
ALTER TABLE calibrations ENABLE ROW LEVEL SECURITY;
ALTER TABLE calibrations FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON calibrations FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_calibrate ON calibrations FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = pg_current_xact_id());
GRANT SELECT, INSERT ON calibrations TO muniment_jobs;
GRANT SELECT ON calibrations TO muniment_writer, muniment_auditor;

-- Whose word a candidate's confidence is, the calibration that was used, and what an extractor wants a person to know.
ALTER TABLE candidates
  ADD COLUMN claimed_by  text COLLATE "C",
  ADD COLUMN calibration text COLLATE "C",
  ADD COLUMN flags       text[] COLLATE "C" NOT NULL DEFAULT '{}',
  ADD FOREIGN KEY (tenant_id, calibration) REFERENCES calibrations (tenant_id, calibration_id);

-- A memory that policy promoted alone and that a person is asked to look at again, once.
ALTER TABLE proposals
  ADD COLUMN audits text COLLATE "C",
  ADD UNIQUE (tenant_id, audits),
  ADD FOREIGN KEY (tenant_id, audits) REFERENCES memories (tenant_id, memory_id);
GRANT SELECT (tenant_id, candidate_id, claimed_by, raw_confidence, entity) ON candidates TO muniment_jobs;
GRANT SELECT (tenant_id, proposal_id, candidate_id, class, due_at, enqueued_at, pack, audits, edit_of) ON proposals TO muniment_jobs;
GRANT SELECT (tenant_id, verdict_id, proposal_id, seq, action, by, by_kind, at) ON verdicts TO muniment_jobs;

-- Whether policy may promote a class alone: the last row of a class counts. Jobs may only open it, people only close it.
CREATE TABLE breakers (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  write_class text NOT NULL,
  seq         bigint NOT NULL,
  at          timestamptz NOT NULL,
  txid        xid8 NOT NULL,
  open        boolean NOT NULL,
  by          text COLLATE "C" NOT NULL,
  samples     int NOT NULL CHECK (samples >= 0),
  correct     int NOT NULL CHECK (correct BETWEEN 0 AND samples),
  low         float8 NOT NULL CHECK (low BETWEEN 0 AND 1),
  PRIMARY KEY (tenant_id, write_class, seq),
  FOREIGN KEY (tenant_id, seq, at, txid) REFERENCES ticks (tenant_id, seq, at, txid),
  CHECK (open = (by = 'auto'))
);
ALTER TABLE breakers ENABLE ROW LEVEL SECURITY;
ALTER TABLE breakers FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON breakers FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_switch ON breakers FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = pg_current_xact_id());
CREATE POLICY jobs_open ON breakers AS RESTRICTIVE FOR INSERT TO muniment_jobs
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND open);
CREATE POLICY people_close ON breakers AS RESTRICTIVE FOR INSERT TO muniment_writer
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND NOT open);
GRANT SELECT, INSERT ON breakers TO muniment_jobs, muniment_writer;
GRANT SELECT ON breakers TO muniment_auditor;

-- What was told and need not be told again while it lasts.
CREATE TABLE alerts (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  key       text COLLATE "C" NOT NULL,
  raised_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, key)
);
ALTER TABLE alerts ENABLE ROW LEVEL SECURITY;
ALTER TABLE alerts FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON alerts USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT, DELETE ON alerts TO muniment_jobs;
GRANT SELECT ON alerts TO muniment_auditor;

-- When each job of a tenant ran last, by the fabric's own clock, how far the tenant was then, and when it wants to run
-- again whatever happens. The jobs see those of all tenants, and all their clocks: from there they know where work waits.
CREATE TABLE job_runs (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  job       text COLLATE "C" NOT NULL,
  ran_at    timestamptz NOT NULL,
  seq       bigint NOT NULL,
  next_at   timestamptz,
  took      float8 NOT NULL CHECK (took >= 0),
  failures  int NOT NULL DEFAULT 0,
  error     text COLLATE "C",
  PRIMARY KEY (tenant_id, job)
);
ALTER TABLE job_runs ENABLE ROW LEVEL SECURITY;
ALTER TABLE job_runs FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON job_runs USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY every_tenant ON job_runs FOR SELECT TO muniment_jobs USING (true);
CREATE POLICY every_tenant ON tenant_clock FOR SELECT TO muniment_jobs USING (true);
GRANT SELECT, INSERT, UPDATE (ran_at, seq, next_at, took, failures, error) ON job_runs TO muniment_jobs;
GRANT SELECT ON job_runs TO muniment_auditor;

-- Up to when the tenant's expiries were told.
ALTER TABLE cursors ADD COLUMN at timestamptz;
GRANT SELECT, INSERT, UPDATE (at) ON cursors TO muniment_jobs;
CREATE INDEX memory_scope_by_expiry ON memory_scope (tenant_id, expires_at) WHERE expires_at < 'infinity' AND tomb_seq IS NULL;

-- A memory goes from live to tombstoned when its time is over, too (PRO-3): without a retraction, but never before its end,
-- by the tombstone's own time. The owner sees the rows meanwhile that the foreign keys are checked against.
ALTER TABLE memory_scope NO FORCE ROW LEVEL SECURITY;
ALTER TABLE tombstones NO FORCE ROW LEVEL SECURITY;
ALTER TABLE memories NO FORCE ROW LEVEL SECURITY;
ALTER TABLE tombstones
  DROP CONSTRAINT tombstones_tenant_id_memory_id_fkey,
  ADD FOREIGN KEY (tenant_id, memory_id) REFERENCES memories (tenant_id, memory_id),
  ADD UNIQUE (tenant_id, memory_id, seq, tombstoned_at);
ALTER TABLE memory_scope ADD COLUMN tomb_at timestamptz;
UPDATE memory_scope f SET tomb_at = t.tombstoned_at FROM tombstones t WHERE t.tenant_id = f.tenant_id AND t.memory_id = f.memory_id;
ALTER TABLE memory_scope
  DROP CONSTRAINT memory_scope_dead_first,
  ADD CONSTRAINT memory_scope_ended_first CHECK (tomb_seq IS NULL OR dead_seq IS NOT NULL OR expires_at <= tomb_at),
  ADD CONSTRAINT memory_scope_whole_tomb CHECK ((tomb_seq IS NULL) = (tomb_at IS NULL)),
  ADD FOREIGN KEY (tenant_id, memory_id, tomb_seq, tomb_at) REFERENCES tombstones (tenant_id, memory_id, seq, tombstoned_at);
ALTER TABLE memories FORCE ROW LEVEL SECURITY;
ALTER TABLE tombstones FORCE ROW LEVEL SECURITY;
ALTER TABLE memory_scope FORCE ROW LEVEL SECURITY;
DROP POLICY entomb_once ON memory_scope;
CREATE POLICY entomb_once ON memory_scope FOR UPDATE TO muniment_jobs, muniment_privacy
  USING (tenant_id = current_setting('muniment.tenant', true) AND tomb_seq IS NULL)
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND tomb_seq IS NOT NULL);
GRANT UPDATE (tomb_at) ON memory_scope TO muniment_jobs;

-- Whom a fact that was proposed is about, whoever's capture it is: an erasure must find it, refused or archived too.
ALTER TABLE captures ADD COLUMN entity text COLLATE "C";

-- Erasures, as receipts: who asked, what went, when the last of it was gone from beneath too.
CREATE TABLE erasures (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  erasure_id text COLLATE "C" NOT NULL,
  seq        bigint NOT NULL,
  erased_at  timestamptz NOT NULL,
  txid       xid8 NOT NULL,
  by         text COLLATE "C" NOT NULL,
  subject    text COLLATE "C",
  user_id    text COLLATE "C",
  holders    text[] COLLATE "C" NOT NULL CHECK (cardinality(holders) > 0 AND NOT '*' = ANY (holders)),
  memories   int NOT NULL CHECK (memories >= 0),
  purged_at  timestamptz,
  PRIMARY KEY (tenant_id, erasure_id),
  FOREIGN KEY (tenant_id, seq, erased_at, txid) REFERENCES ticks (tenant_id, seq, at, txid),
  CHECK (subject IS NOT NULL OR user_id IS NOT NULL)
);
CREATE INDEX erasures_by_number ON erasures (tenant_id, seq);
ALTER TABLE erasures ENABLE ROW LEVEL SECURITY;
ALTER TABLE erasures FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON erasures FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_erase ON erasures FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = pg_current_xact_id() AND purged_at IS NULL);
CREATE POLICY purge_once ON erasures FOR UPDATE
  USING (tenant_id = current_setting('muniment.tenant', true) AND purged_at IS NULL)
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND purged_at IS NOT NULL);
GRANT SELECT, INSERT ON erasures TO muniment_privacy;
GRANT SELECT, UPDATE (purged_at) ON erasures TO muniment_jobs;
GRANT SELECT ON erasures TO muniment_writer, muniment_auditor, muniment_recall;

-- How many rows of which table an erasure blanked.
CREATE TABLE erased_rows (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  erasure_id text COLLATE "C" NOT NULL,
  what       text NOT NULL,
  rows       bigint NOT NULL CHECK (rows >= 0),
  PRIMARY KEY (tenant_id, erasure_id, what),
  FOREIGN KEY (tenant_id, erasure_id) REFERENCES erasures (tenant_id, erasure_id)
);
ALTER TABLE erased_rows ENABLE ROW LEVEL SECURITY;
ALTER TABLE erased_rows FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON erased_rows FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY count_them ON erased_rows FOR INSERT TO CURRENT_USER WITH CHECK (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT ON erased_rows TO muniment_privacy, muniment_auditor, muniment_jobs;

-- The officer takes promoted memories away as the jobs do, for this reason alone.
GRANT SELECT ON memories, memory_scope, memory_bodies, contradictions, tombstones TO muniment_privacy;
GRANT SELECT (tenant_id, compile_id, memory_ids) ON compiles TO muniment_privacy;
GRANT SELECT (tenant_id, recall_id, result_ids) ON recalls TO muniment_privacy;
GRANT UPDATE (dead_seq, tomb_seq, tomb_at) ON memory_scope TO muniment_privacy;
GRANT DELETE ON memory_bodies TO muniment_privacy;
GRANT SELECT, INSERT ON retractions, tombstones, resolutions TO muniment_privacy;
CREATE POLICY officer_retract ON retractions AS RESTRICTIVE FOR INSERT TO muniment_privacy
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND reason = 'erased');
CREATE POLICY officer_resolve ON resolutions AS RESTRICTIVE FOR INSERT TO muniment_privacy
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND outcome IN ('retracted', 'withdrawn'));
GRANT SELECT, INSERT, UPDATE (lock) ON promotion_locks TO muniment_privacy;

-- And ends what still waits in the queue.
GRANT SELECT (tenant_id, candidate_id, holder, subject, entity, user_id) ON candidates TO muniment_privacy;
GRANT SELECT (tenant_id, proposal_id, candidate_id, pack) ON proposals TO muniment_privacy;
GRANT SELECT (tenant_id, proposal_id, action), INSERT ON verdicts TO muniment_privacy;
CREATE POLICY officer_withdraw ON verdicts AS RESTRICTIVE FOR INSERT TO muniment_privacy
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND action = 'withdraw');

-- The jobs hold off erasures too while they take content away.
GRANT SELECT, INSERT, UPDATE (lock) ON promotion_locks TO muniment_jobs;
-- What policy promoted alone, in the order of commits.
CREATE INDEX memories_by_policy ON memories (tenant_id, born_seq, memory_id) WHERE approver_kind = 'system';
-- Why a proposal is held, in one word that a job can look for; what a person says of it is sealed.
ALTER TABLE verdicts ADD COLUMN cause text CHECK (cause IN ('contradiction', 'budget'));

CREATE POLICY blank ON candidates FOR UPDATE TO CURRENT_USER
  USING (tenant_id = current_setting('muniment.tenant', true)) WITH CHECK (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY blank ON verdicts FOR UPDATE TO CURRENT_USER
  USING (tenant_id = current_setting('muniment.tenant', true)) WITH CHECK (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY blank ON consents FOR UPDATE TO CURRENT_USER
  USING (tenant_id = current_setting('muniment.tenant', true)) WITH CHECK (tenant_id = current_setting('muniment.tenant', true));

-- All that an erasure has to reach beside promoted memory: keys destroyed, content blanked whoever's key sealed it.
-- Only for the erasure of this very transaction; it cannot be called for another, or later.
CREATE FUNCTION erase_content(wanted text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER SET search_path = muniment, pg_temp AS $$
DECLARE
  here text := current_setting('muniment.tenant');
  e erasures;
  told text[];
  touched bigint;
BEGIN
  SELECT * INTO e FROM erasures WHERE tenant_id = here AND erasure_id = wanted AND txid = pg_current_xact_id();
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no erasure of this transaction' USING ERRCODE = 'insufficient_privilege';
  END IF;
  -- Captures that told of the subject though they were somebody else's.
  told := ARRAY(SELECT capture_id FROM candidates WHERE tenant_id = here AND entity = e.subject);

  UPDATE subjects SET wrapped_key = NULL WHERE tenant_id = here AND holder = ANY (e.holders) AND wrapped_key IS NOT NULL;
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'keys', touched);

  DELETE FROM extractions x USING captures c
  WHERE x.tenant_id = here AND c.tenant_id = here AND c.capture_id = x.capture_id
    AND (c.holder = ANY (e.holders) OR c.subject = e.subject OR c.user_id = e.user_id OR c.entity = e.subject OR c.capture_id = ANY (told));
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'extractions', touched);

  UPDATE captures SET content = ''
  WHERE tenant_id = here AND content <> ''
    AND (holder = ANY (e.holders) OR subject = e.subject OR user_id = e.user_id OR entity = e.subject OR capture_id = ANY (told));
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'captures', touched);

  UPDATE verdicts v SET remark = NULL FROM proposals p, candidates c
  WHERE v.tenant_id = here AND v.remark IS NOT NULL
    AND p.tenant_id = here AND p.proposal_id = v.proposal_id AND c.tenant_id = here AND c.candidate_id = p.candidate_id
    AND (c.holder = ANY (e.holders) OR c.subject = e.subject OR c.entity = e.subject OR c.user_id = e.user_id);
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'notes', touched);

  DELETE FROM rejection_marks k USING proposals p, candidates c
  WHERE k.tenant_id = here AND p.tenant_id = here AND p.proposal_id = k.proposal_id
    AND c.tenant_id = here AND c.candidate_id = p.candidate_id
    AND (c.holder = ANY (e.holders) OR c.subject = e.subject OR c.entity = e.subject OR c.user_id = e.user_id);
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'rejection_marks', touched);

  UPDATE candidates SET content = ''
  WHERE tenant_id = here AND content <> ''
    AND (holder = ANY (e.holders) OR subject = e.subject OR entity = e.subject OR user_id = e.user_id);
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'candidates', touched);

  UPDATE recalls SET query = NULL WHERE tenant_id = here AND query IS NOT NULL AND (holder = ANY (e.holders) OR user_id = e.user_id);
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'recall_queries', touched);

  UPDATE consents SET evidence = '' WHERE tenant_id = here AND evidence <> '' AND subject = e.subject;
  GET DIAGNOSTICS touched = ROW_COUNT;
  INSERT INTO erased_rows VALUES (here, wanted, 'consent_evidence', touched);
END $$;
REVOKE ALL ON FUNCTION erase_content(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION erase_content(text) TO muniment_privacy;

-- A subject that was erased and comes back gets a key again; a key that is there is never touched.
CREATE FUNCTION renew_subject(whose text, wrapped bytea, version int) RETURNS void LANGUAGE sql SECURITY DEFINER
SET search_path = muniment, pg_temp AS $$
  UPDATE subjects SET wrapped_key = wrapped, key_version = version
  WHERE tenant_id = current_setting('muniment.tenant') AND holder = whose AND wrapped_key IS NULL
$$;
REVOKE ALL ON FUNCTION renew_subject(text, bytea, int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION renew_subject(text, bytea, int) TO muniment_writer, muniment_privacy;

-- Data keys wrapped anew under a later key of the tenant; none is replaced by one of an earlier or the same version.
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
GRANT INSERT ON tenant_keys TO muniment_privacy;
-- Who opens a tenant gives it its first key; later ones come by rotation.
CREATE POLICY first_key ON tenant_keys AS RESTRICTIVE FOR INSERT TO muniment_writer
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND version = 1);

-- Keys of the tenant that nothing is wrapped under any more, before a version; how many earlier ones are still needed.
CREATE FUNCTION drop_tenant_keys(before int) RETURNS bigint LANGUAGE sql SECURITY DEFINER SET search_path = muniment, pg_temp AS $$
  DELETE FROM tenant_keys k WHERE k.tenant_id = current_setting('muniment.tenant') AND k.version < before
    AND NOT EXISTS (SELECT FROM subjects s WHERE s.tenant_id = k.tenant_id AND s.key_version = k.version);
  SELECT count(*) FROM tenant_keys k WHERE k.tenant_id = current_setting('muniment.tenant') AND k.version < before
$$;
REVOKE ALL ON FUNCTION drop_tenant_keys(int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION drop_tenant_keys(int) TO muniment_privacy;

-- Captures that left the database for an archive file, by which they are still found.
CREATE TABLE archives (
  tenant_id        text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  archive_id       text COLLATE "C" NOT NULL,
  seq              bigint NOT NULL,
  archived_at      timestamptz NOT NULL,
  txid             xid8 NOT NULL,
  kind             text NOT NULL,
  ontology_version text COLLATE "C" NOT NULL,
  captures         int NOT NULL CHECK (captures > 0),
  last_at          timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, archive_id),
  FOREIGN KEY (tenant_id, seq, archived_at, txid) REFERENCES ticks (tenant_id, seq, at, txid)
);
ALTER TABLE archives ENABLE ROW LEVEL SECURITY;
ALTER TABLE archives FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON archives FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_archive ON archives FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = pg_current_xact_id());
GRANT SELECT, INSERT ON archives TO muniment_jobs;
GRANT SELECT ON archives TO muniment_writer, muniment_auditor, muniment_privacy;

-- The file of an archive as it is now: written anew where an erasure reached into it, gone after its retention.
CREATE TABLE archive_files (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  archive_id text COLLATE "C" NOT NULL,
  revision   int NOT NULL CHECK (revision > 0),
  digest     bytea NOT NULL CHECK (length(digest) = 32),
  bytes      bigint NOT NULL CHECK (bytes >= 0),
  dropped    boolean NOT NULL,
  written_at timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, archive_id, revision),
  FOREIGN KEY (tenant_id, archive_id) REFERENCES archives (tenant_id, archive_id)
);
ALTER TABLE archive_files ENABLE ROW LEVEL SECURITY;
ALTER TABLE archive_files FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON archive_files USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON archive_files TO muniment_jobs;
GRANT SELECT ON archive_files TO muniment_writer, muniment_auditor;

CREATE TABLE archived_captures (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  capture_id  text COLLATE "C" NOT NULL,
  archive_id  text COLLATE "C" NOT NULL,
  seq         bigint NOT NULL,
  captured_at timestamptz NOT NULL,
  holder      text COLLATE "C" NOT NULL,
  subject     text COLLATE "C",
  user_id     text COLLATE "C",
  entity      text COLLATE "C",
  PRIMARY KEY (tenant_id, capture_id),
  FOREIGN KEY (tenant_id, archive_id) REFERENCES archives (tenant_id, archive_id)
);
CREATE INDEX archived_captures_by_archive ON archived_captures (tenant_id, archive_id);
ALTER TABLE archived_captures ENABLE ROW LEVEL SECURITY;
ALTER TABLE archived_captures FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON archived_captures USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON archived_captures TO muniment_jobs;
GRANT SELECT ON archived_captures TO muniment_writer, muniment_auditor, muniment_privacy;
GRANT SELECT ON consolidations TO muniment_jobs;

-- The collector: the one way a capture leaves the database, and only one that an archive holds (CAP-1).
CREATE FUNCTION collect_captures(wanted text) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER SET search_path = muniment, pg_temp AS $$
DECLARE
  here text := current_setting('muniment.tenant');
  gone bigint;
BEGIN
  DELETE FROM captures c USING archived_captures a
  WHERE c.tenant_id = here AND a.tenant_id = here AND a.archive_id = wanted AND a.capture_id = c.capture_id
    AND EXISTS (SELECT FROM archive_files f WHERE f.tenant_id = here AND f.archive_id = wanted);
  GET DIAGNOSTICS gone = ROW_COUNT;
  RETURN gone;
END $$;
REVOKE ALL ON FUNCTION collect_captures(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION collect_captures(text) TO muniment_jobs;
