-- The review queue: proposals, verdicts, what was rejected and refused, who looks at what.

-- A proposal's status is derived from its verdicts; the row itself never changes (REV-1). `edit_of` is the proposal that it
-- edits; `reopens` the duplicate that comes back, once, as a proposal of its own (REV-8); `run_id` the run that it came out of
-- (REC-12); `audits` a memory that policy promoted alone and that a person is asked to look at again, once (JOB-6); `restores` a
-- memory that was superseded by one that was undone: its candidate is proposed once more (PRO-8).
-- `action` is what it asks for: to promote its candidate, or that a memory is retracted or corrected, of the few in `targets` that
-- may be meant (CAN-12).
CREATE TABLE proposals (
  tenant_id      text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  proposal_id    text COLLATE "C" NOT NULL,
  seq            bigint NOT NULL,
  candidate_id   text COLLATE "C" NOT NULL,
  class          text NOT NULL,
  tier_derived   text NOT NULL CHECK (tier_derived IN ('working', 'episodic', 'semantic', 'durable')),
  priority       float8 NOT NULL CHECK (priority BETWEEN 0 AND 1),
  risk           text NOT NULL CHECK (risk IN ('low', 'high')),
  sensitive      boolean NOT NULL,
  consent_check  text NOT NULL CHECK (consent_check IN ('passed', 'not_required')),
  contradicts    text[] COLLATE "C" NOT NULL,
  auto_eligible  boolean NOT NULL,
  human_reasons  text[] NOT NULL,
  enqueued_at    timestamptz NOT NULL,
  due_at         timestamptz NOT NULL,
  pack           text COLLATE "C" NOT NULL,
  edit_of        text COLLATE "C",
  lock           smallint NOT NULL DEFAULT 0 CHECK (lock = 0),
  reopens        text COLLATE "C",
  run_id         text COLLATE "C",
  audits         text COLLATE "C",
  action         text NOT NULL DEFAULT 'promote',
  targets        text[] COLLATE "C" NOT NULL DEFAULT '{}',
  restores       text COLLATE "C",
  PRIMARY KEY (tenant_id, proposal_id),
  CONSTRAINT proposals_of_candidate UNIQUE NULLS NOT DISTINCT (tenant_id, candidate_id, restores),
  CONSTRAINT proposals_to_promote UNIQUE (tenant_id, proposal_id, candidate_id, tier_derived, class, action),
  FOREIGN KEY (tenant_id, candidate_id) REFERENCES candidates (tenant_id, candidate_id),
  FOREIGN KEY (tenant_id, edit_of) REFERENCES proposals (tenant_id, proposal_id),
  FOREIGN KEY (tenant_id, reopens) REFERENCES proposals (tenant_id, proposal_id),
  CHECK (reopens <> proposal_id),
  CONSTRAINT proposals_action CHECK (action IN ('promote', 'retract', 'correct')),
  CONSTRAINT proposals_targets CHECK (cardinality(targets) <= CASE action WHEN 'promote' THEN 0 ELSE 5 END),
  CONSTRAINT proposals_ask_a_person CHECK (action = 'promote' OR NOT auto_eligible)
);
-- Few proposals edit, reopen or audit anything: the others are not in these.
CREATE UNIQUE INDEX proposals_tenant_id_edit_of_key ON proposals (tenant_id, edit_of) WHERE edit_of IS NOT NULL;
CREATE UNIQUE INDEX proposals_tenant_id_reopens_key ON proposals (tenant_id, reopens) WHERE reopens IS NOT NULL;
CREATE UNIQUE INDEX proposals_tenant_id_audits_key ON proposals (tenant_id, audits) WHERE audits IS NOT NULL;
CREATE UNIQUE INDEX proposals_tenant_id_restores_key ON proposals (tenant_id, restores) WHERE restores IS NOT NULL;
CREATE INDEX proposals_asking ON proposals (tenant_id, proposal_id) WHERE action <> 'promote';
CREATE INDEX proposals_by_due ON proposals (tenant_id, due_at, proposal_id);
CREATE INDEX proposals_by_run ON proposals (tenant_id, run_id, seq) WHERE run_id IS NOT NULL;
-- Proposals that policy may promote alone, in the order of their commits.
CREATE INDEX proposals_by_policy ON proposals (tenant_id, seq, proposal_id) WHERE auto_eligible;

-- Proposals that wait for a verdict, by whom they are about: those of one subject are found without reading what was decided before
-- (REV-12). Work in hand, not a record: the row goes with the final verdict.
CREATE TABLE waiting_proposals (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  proposal_id text COLLATE "C" NOT NULL,
  holder      text COLLATE "C" NOT NULL,
  seq         bigint NOT NULL,
  PRIMARY KEY (tenant_id, proposal_id)
);
CREATE INDEX waiting_proposals_by_holder ON waiting_proposals (tenant_id, holder, seq);

-- Two proposals that contradicted each other when the later of them, `proposal_id`, entered the queue, and in what they differ
-- (REV-12). Written once; which of them still wait is derived from their verdicts.
CREATE TABLE proposal_contradictions (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  proposal_id text COLLATE "C" NOT NULL,
  contradicts text COLLATE "C" NOT NULL,
  seq         bigint NOT NULL,
  found_at    timestamptz NOT NULL,
  txid        xid8 NOT NULL,
  reason      text NOT NULL,
  PRIMARY KEY (tenant_id, proposal_id, contradicts),
  FOREIGN KEY (tenant_id, proposal_id) REFERENCES proposals (tenant_id, proposal_id),
  FOREIGN KEY (tenant_id, contradicts) REFERENCES proposals (tenant_id, proposal_id),
  FOREIGN KEY (tenant_id, seq, found_at, txid) REFERENCES ticks (tenant_id, seq, at, txid),
  CHECK (proposal_id <> contradicts)
);
CREATE INDEX proposal_contradictions_by_earlier ON proposal_contradictions (tenant_id, contradicts);

-- Who decided what, when, and sealed (`remark`) why. One final verdict per proposal: of two operators at once one wins (REV-5).
-- A `comment` decides nothing, but what was read before it is out of date; it may name people (`mentions`). Of what one person
-- decided another says once, after a second look at a sample, whether they would have decided so too (`agree`, `disagree`).
-- A rejection can be lifted, once, by a named person (REV-6). An `undo` of what policy promoted is remembered like a rejection
-- (PRO-8); it is all that an end user can decide. `cause` is why a proposal is held or ended, in one word that a
-- job can look for.
CREATE TABLE verdicts (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  verdict_id  text COLLATE "C" NOT NULL,
  proposal_id text COLLATE "C" NOT NULL,
  seq         bigint NOT NULL,
  action      text NOT NULL CHECK (action IN ('approve', 'edit', 'reject', 'hold', 'block', 'duplicate', 'withdraw', 'override',
    'assign', 'release', 'lift', 'resolve', 'undo', 'comment', 'agree', 'disagree')),
  by          text COLLATE "C" NOT NULL,
  by_kind     text NOT NULL CHECK (by_kind IN ('operator', 'system', 'end_user')),
  at          timestamptz NOT NULL,
  pack        text COLLATE "C" NOT NULL,
  tier        text CHECK (tier IN ('working', 'episodic', 'semantic', 'durable')),
  priority    float8 CHECK (priority BETWEEN 0 AND 1),
  assignee    text COLLATE "C",
  memory_id   text COLLATE "C",
  holder      text COLLATE "C" NOT NULL,
  remark      bytea,
  txid        xid8 NOT NULL,
  cause       text CHECK (cause IN ('contradiction', 'budget', 'pack')),
  mentions    text[] COLLATE "C" NOT NULL DEFAULT '{}',
  PRIMARY KEY (tenant_id, verdict_id),
  CONSTRAINT verdicts_as_decided UNIQUE (tenant_id, verdict_id, proposal_id, by, by_kind, action, pack),
  FOREIGN KEY (tenant_id, proposal_id) REFERENCES proposals (tenant_id, proposal_id),
  FOREIGN KEY (tenant_id, seq, at, txid) REFERENCES ticks (tenant_id, seq, at, txid),
  CHECK ((by = 'auto') = (by_kind = 'system')),
  CONSTRAINT verdicts_lift CHECK (action <> 'lift' OR by_kind IN ('operator', 'end_user')),
  CONSTRAINT verdicts_mentions CHECK (cardinality(mentions) <= CASE action WHEN 'comment' THEN 10 ELSE 0 END),
  -- A comment says something; a second look is a person's.
  CONSTRAINT verdicts_comment CHECK (action NOT IN ('comment', 'agree', 'disagree') OR by_kind = 'operator'),
  CONSTRAINT verdicts_undo CHECK (action <> 'undo' OR (by_kind <> 'system' AND memory_id IS NOT NULL)),
  -- What an end user may decide about a fact of their own (SUB-2, PRO-8); a hold or a block is what the pack makes of it.
  CONSTRAINT verdicts_of_its_subject CHECK (by_kind <> 'end_user' OR action IN ('approve', 'reject', 'lift', 'hold', 'block', 'duplicate', 'undo', 'withdraw'))
);
CREATE UNIQUE INDEX verdicts_one_final ON verdicts (tenant_id, proposal_id)
  WHERE action IN ('approve', 'edit', 'reject', 'block', 'duplicate', 'withdraw');
CREATE UNIQUE INDEX verdicts_one_lift ON verdicts (tenant_id, proposal_id) WHERE action = 'lift';
CREATE INDEX verdicts_by_proposal ON verdicts (tenant_id, proposal_id, seq);
-- What people decided lately: the progress of a day, and the last verdicts on a source.
CREATE INDEX verdicts_of_people ON verdicts (tenant_id, at, seq) WHERE by_kind = 'operator';
CREATE INDEX verdicts_mentioning ON verdicts (tenant_id, proposal_id) WHERE mentions <> '{}';
-- A second look is taken once.
CREATE UNIQUE INDEX verdicts_one_second_look ON verdicts (tenant_id, proposal_id) WHERE action IN ('agree', 'disagree');
CREATE INDEX verdicts_by_memory ON verdicts (tenant_id, memory_id) WHERE action = 'duplicate';

-- What a rejected fact is found by (REV-6): keyed hashes of its fingerprint and of its place among texts, never the text.
-- A backtest asks, as the auditor, whether a candidate was rejected before.
CREATE TABLE rejection_marks (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  mark        bigint NOT NULL,
  proposal_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant_id, mark, proposal_id),
  FOREIGN KEY (tenant_id, proposal_id) REFERENCES proposals (tenant_id, proposal_id)
);

-- What a gate refused, without its content (CAN-5). `rejection` is the rejected proposal that the refusal follows.
CREATE TABLE refusals (
  tenant_id     text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  capture_id    text COLLATE "C" NOT NULL,
  extractor     text COLLATE "C" NOT NULL,
  ordinal       int NOT NULL,
  seq           bigint NOT NULL,
  gate          text NOT NULL,
  reason        text NOT NULL,
  at            timestamptz NOT NULL,
  rejection     text COLLATE "C",
  consolidation int NOT NULL DEFAULT 1,
  language      text COLLATE "C",
  PRIMARY KEY (tenant_id, capture_id, consolidation, extractor, ordinal),
  FOREIGN KEY (tenant_id, rejection) REFERENCES proposals (tenant_id, proposal_id)
);
CREATE INDEX refusals_by_time ON refusals (tenant_id, seq, capture_id, ordinal);

-- The question to a subject whether a fact may be kept that was refused only because the subject had not consented (CON-9): which
-- fact of which capture, and its label; no content. It is answered once, until it ends, by who may record consents. `mark` is a
-- hash of the fact under its subject's key, by which a fact is not asked about twice; an erasure destroys that key.
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
  mark          bytea NOT NULL CHECK (length(mark) = 16),
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
CREATE INDEX consent_requests_by_mark ON consent_requests (tenant_id, subject, mark);

-- Whether policy may promote a class alone: the last row of a class counts. Jobs may only open it, people only close it (JOB-6).
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

-- Who looks at which proposal, since when, and when they were last seen to. No verdict: nothing rests on it, and it is
-- forgotten once they look no more.
CREATE TABLE presence (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  proposal_id text COLLATE "C" NOT NULL,
  principal   text COLLATE "C" NOT NULL,
  since       timestamptz NOT NULL CHECK (isfinite(since)),
  at          timestamptz NOT NULL CHECK (isfinite(at)),
  PRIMARY KEY (tenant_id, proposal_id, principal),
  FOREIGN KEY (tenant_id, proposal_id) REFERENCES proposals (tenant_id, proposal_id)
);
CREATE INDEX presence_by_time ON presence (tenant_id, at);

-- Views of the queue that people save, each their own: filters and order, never whom they look for, so that no erasure has to
-- reach them.
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

-- No samples of content and keys.
SELECT no_samples('verdicts', 'remark');
SELECT no_samples('consent_requests', 'mark');

-- Which rows a transaction sees and writes.
SELECT rows_of_tenant('proposals', 'waiting_proposals', 'rejection_marks', 'refusals', 'presence', 'saved_views');
SELECT rows_of_transaction('proposal_contradictions', 'tenant_find');
SELECT rows_of_transaction('consent_requests', 'tenant_ask', writes => 'answer IS NULL');
SELECT add_policy('consent_requests', 'answer_once', 'UPDATE', sees => 'answer IS NULL',
  writes => 'answer IS NOT NULL AND answered_txid = muniment.transaction_mark()', login => 'privacy');
SELECT rows_of_transaction('verdicts', 'tenant_decide', login => 'writer');
-- An erasure ends what still waits in the queue, and does nothing else there.
SELECT add_writing_policy('verdicts', 'officer_withdraw', $$action = 'withdraw'$$, login => 'privacy');
-- An erasure blanks content as the owner (`erase_content`).
SELECT add_policy('verdicts', 'blank', 'UPDATE', login => 'owner');
SELECT rows_of_transaction('breakers', 'jobs_open', 'open', login => 'jobs');
SELECT add_writing_policy('breakers', 'people_close', 'NOT open', login => 'writer');

-- Who may do what.
GRANT SELECT, INSERT ON verdicts, proposal_contradictions, rejection_marks, refusals, consent_requests, breakers TO muniment_writer;
GRANT SELECT, INSERT, DELETE ON waiting_proposals TO muniment_writer;
GRANT SELECT (tenant_id, proposal_id), DELETE ON waiting_proposals TO muniment_privacy;
GRANT SELECT ON proposals, waiting_proposals, proposal_contradictions, verdicts, rejection_marks, refusals, consent_requests, breakers TO muniment_auditor;
GRANT SELECT, UPDATE (answer, answered_seq, answered_at, answered_txid, answered_by) ON consent_requests TO muniment_privacy;
GRANT SELECT, INSERT ON breakers TO muniment_jobs;
GRANT SELECT, INSERT, UPDATE (lock) ON proposals TO muniment_writer;
GRANT SELECT (tenant_id, proposal_id, candidate_id, pack) ON proposals TO muniment_privacy;
GRANT SELECT (tenant_id, proposal_id, candidate_id, class, enqueued_at, due_at, pack, edit_of, audits) ON proposals TO muniment_jobs;
GRANT SELECT (tenant_id, proposal_id, action), INSERT ON verdicts TO muniment_privacy;
GRANT SELECT (tenant_id, verdict_id, proposal_id, seq, action, by, by_kind, at) ON verdicts TO muniment_jobs;
GRANT SELECT, INSERT, UPDATE (since, at) ON presence TO muniment_writer;
GRANT SELECT (tenant_id, at), DELETE ON presence TO muniment_jobs;
GRANT SELECT, INSERT, UPDATE (filters, saved_at), DELETE ON saved_views TO muniment_writer;
GRANT SELECT ON saved_views TO muniment_auditor;
