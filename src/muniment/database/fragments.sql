-- Conditions and columns that several statements share: {name alias} in a statement inserts one for that table alias.

-- The filters of a recall (REC-1), each by its name, on `memory_scope`. They hold at the tenant's sequence number :seq and
-- the time :at; consent, content and labels count as of now, also for the past (REC-7).

-- name: by_user
-- The user's own memories and the tenant's.
alias.user_id = ANY (:users)

-- name: by_session
(alias.tier <> 'working' OR alias.session_id = :session_id)

-- name: session_open
-- A working memory ends with its session (TIR-6).
(alias.tier <> 'working' OR NOT EXISTS (SELECT FROM session_ends x WHERE x.tenant_id = :tenant_id AND x.user_id = alias.user_id
  AND x.session_id = alias.session_id AND x.seq <= :seq))

-- name: session_goes_on
-- The same as of now.
(alias.tier <> 'working' OR NOT EXISTS (SELECT FROM session_ends x WHERE x.tenant_id = :tenant_id AND x.user_id = alias.user_id
  AND x.session_id = alias.session_id))

-- name: by_workflow
(alias.tier <> 'episodic' OR alias.user_id <> '' OR alias.workflow_id = '' OR alias.workflow_id = :workflow_id)

-- name: by_intent
alias.intent_id = ANY (:intents)

-- name: by_label
alias.classification = ANY (:labels)

-- name: by_qualifiers
-- No qualifier that the run contradicts, and all that a resolved contradiction requires a run to have.
((alias.qualifiers IS NULL OR (alias.qualifiers || :qualifiers::jsonb) @> alias.qualifiers)
 AND NOT EXISTS (SELECT FROM qualifications q WHERE q.tenant_id = :tenant_id AND q.memory_id = alias.memory_id
                 AND q.seq <= :seq AND NOT :qualifiers::jsonb @> q.qualifiers))

-- name: is_promoted
alias.born_seq <= :seq

-- name: not_retracted
(alias.dead_seq IS NULL OR alias.dead_seq > :seq)

-- name: not_expired
alias.expires_at > :at

-- name: holds
-- What holds in the world at the time :valid_at (REC-14); null for recalls that were recorded before there was such a time.
(:valid_at::timestamptz IS NULL OR (coalesce(alias.valid_from, '-infinity') <= :valid_at AND coalesce(alias.valid_until, 'infinity') > :valid_at))

-- name: is_fresh
-- Not CASE alias.tier WHEN ...: a cluster replaces those comparisons by null in statements that write.
alias.promoted_at >= CASE WHEN alias.tier = 'working' THEN coalesce(:fresh_working::timestamptz, '-infinity')
                          WHEN alias.tier = 'episodic' THEN coalesce(:fresh_episodic::timestamptz, '-infinity')
                          WHEN alias.tier = 'semantic' THEN coalesce(:fresh_semantic::timestamptz, '-infinity')
                          ELSE coalesce(:fresh_durable::timestamptz, '-infinity') END

-- name: has_content
-- A tombstone hides a memory for the past too.
alias.tomb_seq IS NULL

-- name: visible
-- All filters together. recall/index_search.py has them in Python too, for the index in the process (`_select`, `_passes`,
-- `_ConsentCheck`): whoever changes one changes the other.
alias.tenant_id = :tenant_id AND {by_user alias} AND {is_promoted alias} AND {not_retracted alias} AND {not_expired alias}
  AND {by_label alias} AND {by_intent alias} AND {by_session alias} AND {session_open alias} AND {by_workflow alias} AND {by_qualifiers alias}
  AND {is_fresh alias} AND {has_content alias} AND {holds alias} AND {consent_allows alias}

-- name: consent_allows
-- What is sensitive under the deciding pack needs a consent, except bare evidence links. A consent holds until its
-- renewal begins; a revocation ends the whole chain at once, whatever any clock says.
(CASE WHEN alias.consent_root IS NULL THEN alias.class = 'evidence_link' OR NOT alias.classification = ANY (:sensitive)
 ELSE EXISTS (
  SELECT FROM consents c
  WHERE c.tenant_id = :tenant_id AND c.root_id = alias.consent_root AND c.action = 'grant'
    AND c.valid_from <= :now AND c.valid_until > :now
    AND {consent_covers alias}
    AND alias.classification = ANY (c.labels)
    AND NOT EXISTS (SELECT FROM consents n WHERE n.tenant_id = :tenant_id AND n.supersedes = c.consent_id
                    AND (n.action = 'revoke' OR n.valid_from <= :now))
    AND NOT EXISTS (SELECT FROM consents r WHERE r.tenant_id = :tenant_id AND r.root_id = c.root_id AND r.action = 'revoke'))
 END)

-- name: consent_covers
-- Whether a consent (c) covers the predicate of a fact: by name, by a beginning and a *, or with * all, plain statements too.
('*' = ANY (c.predicates) OR alias.predicate = ANY (c.predicates)
  OR EXISTS (SELECT FROM unnest(c.predicates) AS p (name) WHERE right(p.name, 1) = '*' AND starts_with(alias.predicate, left(p.name, -1))))

-- name: consent_may_return
-- A memory whose consent can still be renewed counts when facts are compared, even while nobody sees it. The last
-- record of a chain can be renewed up to the moment it ends.
(alias.consent_root IS NULL OR (
  EXISTS (SELECT FROM consents c WHERE c.tenant_id = :tenant_id AND c.root_id = alias.consent_root AND c.action = 'grant'
          AND c.valid_until >= :now
          AND NOT EXISTS (SELECT FROM consents n WHERE n.tenant_id = :tenant_id AND n.supersedes = c.consent_id))
  AND NOT EXISTS (SELECT FROM consents r WHERE r.tenant_id = :tenant_id AND r.root_id = alias.consent_root AND r.action = 'revoke')))

-- name: ledger
-- Consent records, each with the record that superseded it.
SELECT alias.tenant_id, alias.consent_id, alias.seq, alias.action, alias.subject, alias.purpose, alias.predicates, alias.labels, alias.basis, alias.captured_at,
  alias.valid_from, nullif(alias.valid_until, 'infinity') AS ends_at, alias.auditor_id, alias.supersedes, alias.root_id, alias.evidence,
  alias.stated_at, alias.stated_auditor, n.consent_id AS superseded_by, n.valid_from AS superseded_from,
  (SELECT min(coalesce(r.stated_at, r.captured_at)) FROM consents r
   WHERE r.tenant_id = :tenant_id AND r.root_id = alias.root_id AND r.action = 'revoke') AS revoked_at,
  w.swept_at
FROM consents alias
LEFT JOIN consents n ON n.tenant_id = :tenant_id AND n.supersedes = alias.consent_id
LEFT JOIN consent_sweeps w ON w.tenant_id = :tenant_id AND w.root_id = alias.root_id

-- name: ends_by
-- A consent that is in force and ends by a time with nothing after it; any record where no time is given.
(:ends_by::timestamptz IS NULL OR (alias.action = 'grant' AND alias.valid_from <= :now AND alias.valid_until > :now AND alias.valid_until <= :ends_by
  AND NOT EXISTS (SELECT FROM consents later WHERE later.tenant_id = :tenant_id AND later.supersedes = alias.consent_id)))

-- name: memory
-- The columns of a memory, with its sealed body (b) and the key it is sealed with (s).
alias.tenant_id, alias.memory_id, alias.candidate_id, alias.proposal_id, alias.verdict_id, alias.capture_id, alias.born_seq, alias.promoted_at,
  nullif(alias.expires_at, 'infinity') AS ends_at, alias.class, alias.entity, alias.predicate, alias.classification, alias.sensitive, alias.tier, alias.priority,
  alias.confidence, alias.trust, alias.holder, alias.subject, alias.user_id, alias.session_id, alias.workflow_id, alias.intent_id, alias.qualifiers, alias.decision_key,
  alias.consent_id, alias.pack, alias.ontology_version, alias.kind, alias.origin, alias.vouched, alias.source, alias.author, alias.editors, alias.approver, alias.captured_at,
  alias.observed_at, alias.valid_from, alias.valid_until, alias.third_party, b.content, s.wrapped_key, s.key_version, {required alias}

-- name: required
-- The qualifiers that a run must have to see the memory, one object for each contradiction resolved that way.
(SELECT jsonb_agg(q.qualifiers) FROM qualifications q WHERE q.tenant_id = :tenant_id AND q.memory_id = alias.memory_id) AS required

-- name: candidate
-- The columns of a candidate.
alias.tenant_id, alias.candidate_id, alias.capture_id, alias.capture_seq, alias.author, alias.source, alias.class, alias.entity, alias.predicate, alias.classification,
  alias.holder, alias.subject, alias.user_id, alias.session_id, alias.workflow_id, alias.intent_id, alias.qualifiers, alias.raw_confidence, alias.confidence,
  alias.trust, alias.consent_id, alias.extractor, alias.claimed_by, alias.calibration, alias.flags, alias.ordinal, alias.corrects, alias.gates, alias.redactions, alias.exceptions, alias.edits, alias.editor, alias.prior_editors, alias.editors, alias.valid_from, alias.valid_until, alias.third_party,
  alias.language, alias.prior_confined_to, alias.content

-- name: lies_under
-- Its entity lies under one of those that were asked for with all under them. Each of :under ends with a whole part, so that
-- `item:a.` is not the beginning of `item:ab.c`.
(cardinality(:under::text[]) > 0 AND EXISTS (SELECT FROM unnest(:under::text[]) AS above (part) WHERE starts_with(alias.entity, above.part)))

-- name: wanted
-- What a recall is narrowed to. It is applied after the filters, so that it never removes one side of a conflict.
(alias.tier = ANY (:tiers) AND alias.class = ANY (:classes)
  AND (:entities::text[] IS NULL OR coalesce(alias.entity = ANY (:entities), false) OR {lies_under alias})
  AND (:only::text[] IS NULL OR alias.memory_id = ANY (:only)))

-- name: still_open
-- A contradiction that had not ended by then.
NOT EXISTS (SELECT FROM resolutions r WHERE r.tenant_id = :tenant_id AND r.contradiction_id = alias.contradiction_id AND r.seq <= :seq)

-- name: packed
-- Memories as columns: ids, and the numbers for ranking, each in its place.
array_agg(alias.memory_id) AS memory_ids, string_agg(float8send(alias.priority), '') AS priority,
  string_agg(float8send(alias.confidence), '') AS confidence, string_agg(int8send(alias.born_seq), '') AS born_seq,
  string_agg(float8send(extract(epoch FROM alias.promoted_at)), '') AS promoted_at,
  string_agg(int2send(coalesce(array_position(:intents, alias.intent_id), 0)::int2), '') AS intent,
  string_agg(int2send(coalesce(array_position(:about::text[], alias.entity), CASE WHEN {lies_under alias} THEN cardinality(:about::text[]) END, 0)::int2), '') AS about,
  string_agg(boolsend(alias.wanted), '') AS wanted, array_agg(alias.memory_id) FILTER (WHERE alias.tier = 'working') AS working

-- name: index_columns
-- Memories as columns for the index in the process: texts joined by separators, numbers and vectors packed
-- (recall/scope_block.py). A profile has the fields that filters compare, apart from times; the predicate only with a consent.
SELECT (SELECT size FROM size) AS size, columns.*, vectors.*, words.*
FROM (
  SELECT string_agg(alias.memory_id, chr(31)) AS memory_ids,
    string_agg(coalesce(alias.entity, ''), chr(31)) AS entities, string_agg(coalesce(alias.predicate, ''), chr(31)) AS predicates,
    string_agg(concat_ws(chr(31), alias.tier, alias.class, alias.classification, alias.session_id, alias.workflow_id, alias.intent_id,
      CASE WHEN alias.consent_root IS NULL THEN '' ELSE coalesce(alias.predicate, '') END, coalesce(alias.consent_root, ''),
      coalesce(alias.qualifiers::text, '')), chr(30)) AS profiles,
    string_agg(float8send(alias.priority), '') AS priority, string_agg(float8send(alias.confidence), '') AS confidence,
    string_agg(int8send(alias.born_seq), '') AS born_seq,
    string_agg(int8send((extract(epoch FROM alias.promoted_at) * 1000000)::int8), '') AS promoted_at,
    string_agg(int8send(CASE WHEN isfinite(alias.expires_at) THEN (extract(epoch FROM alias.expires_at) * 1000000)::int8
      ELSE 9223372036854775807 END), '') AS expires_at,
    string_agg(int8send(CASE WHEN isfinite(alias.valid_from) THEN (extract(epoch FROM alias.valid_from) * 1000000)::int8
      ELSE -9223372036854775808 END), '') AS valid_from,
    string_agg(int8send(CASE WHEN isfinite(alias.valid_until) THEN (extract(epoch FROM alias.valid_until) * 1000000)::int8
      ELSE 9223372036854775807 END), '') AS valid_until
  FROM alias) columns, (
  SELECT string_agg(v.memory_id, chr(31)) AS with_vector, string_agg(halfvec_send(v.vector), '') AS vectors
  FROM memory_vectors v
  WHERE v.tenant_id = :tenant_id AND v.embedder = :embedder AND v.memory_id = ANY (ARRAY(SELECT memory_id FROM alias))) vectors, (
  SELECT string_agg(w.memory_id, chr(31)) AS with_words, string_agg(int2send(w.words), '') AS words,
    string_agg(int4send(octet_length(w.terms) / 10), '') AS sizes, string_agg(w.terms, '') AS terms
  FROM memory_words w
  WHERE w.tenant_id = :tenant_id AND w.memory_id = ANY (ARRAY(SELECT memory_id FROM alias))) words

-- name: keyed
-- The memories on the key of a correction.
array_agg(alias.memory_id) AS keyed, array_agg(alias.entity) AS entities, array_agg(alias.predicate) AS predicates,
  array_agg(alias.class = 'correction') AS corrections
FROM alias
WHERE alias.entity || ' ' || alias.predicate = ANY (
  ARRAY(SELECT c.entity || ' ' || c.predicate FROM alias c WHERE c.class = 'correction'))

-- name: words_of
-- The packed words of memories (database/packed_words.py); `sizes` has the number of distinct words of each.
array_agg(w.memory_id) AS with_words, string_agg(int2send(w.words), '') AS words,
  string_agg(int4send(octet_length(w.terms) / 10), '') AS sizes, string_agg(w.terms, '') AS terms
FROM memory_words w
WHERE w.tenant_id = :tenant_id AND w.memory_id = ANY (ARRAY(SELECT memory_id FROM alias))

-- name: has_term
-- Whether a memory has the word that is asked for: its hash is at the start of an entry of ten bytes.
position(int8send(asked.term) IN alias.terms) % 10 = 1

-- name: after_postings
-- A memory that has no postings yet (promotion/postings.py).
alias.born_seq > (SELECT coalesce(max(u.seq), 0) FROM cursors u WHERE u.tenant_id = :tenant_id AND u.name = 'terms')

-- name: vectors_of
-- The vectors of memories of one embedder.
array_agg(v.memory_id) AS with_vector, string_agg(halfvec_send(v.vector), '') AS vectors
FROM memory_vectors v
WHERE v.tenant_id = :tenant_id AND v.embedder = :embedder AND v.memory_id = ANY (ARRAY(SELECT memory_id FROM alias))

-- name: required_then
-- The same, as of the sequence number.
(SELECT jsonb_agg(q.qualifiers) FROM qualifications q
 WHERE q.tenant_id = :tenant_id AND q.memory_id = alias.memory_id AND q.seq <= :seq) AS required

-- name: microseconds
-- The time as microseconds since 1970; a time that no clock gives is a value of its own.
CASE WHEN alias.at BETWEEN '0001-01-01' AND '9999-12-31' THEN (extract(epoch FROM alias.at) * 1000000)::bigint
     ELSE -9223372036854775808 END

-- name: settled
-- A capture that nothing waits for any more: consolidated, not to be tried again, and without an open proposal.
(EXISTS (SELECT FROM consolidations done WHERE done.tenant_id = :tenant_id AND done.capture_id = alias.capture_id)
 AND NOT EXISTS (SELECT FROM retries again WHERE again.tenant_id = :tenant_id AND again.capture_id = alias.capture_id)
 AND NOT EXISTS (
   SELECT FROM candidates told
   JOIN proposals p ON p.tenant_id = :tenant_id AND p.candidate_id = told.candidate_id
   WHERE told.tenant_id = :tenant_id AND told.capture_id = alias.capture_id AND {undecided p}))

-- name: last_file
-- The current file of an archive.
(SELECT * FROM archive_files l WHERE l.tenant_id = :tenant_id AND l.archive_id = alias.archive_id ORDER BY l.revision DESC LIMIT 1)

-- What an erasure `e` concerns (ERA-5, ERA-8). Everything that erases, blanks, rewrites or checks uses these conditions;
-- `e.names` is what `Concerned.names` in erasure/rules.py returns, `e.facts` and `e.captures` are those of one fact. The functions erase_content and erase_late have copies,
-- which a test compares.

-- name: concerned
-- A row that is sealed under one of the names, is about one, or belongs to that user.
(alias.holder = ANY (e.names) OR alias.subject = ANY (e.names) OR alias.entity = ANY (e.names)
  OR '@' || alias.user_id = ANY (e.names))

-- name: users_named
-- The users among the names of a person, as rows have them.
ARRAY(SELECT substr(alias.name, 2) FROM unnest(:names::text[]) AS alias (name) WHERE starts_with(alias.name, '@'))

-- name: memories_of_person
-- The ids of memories that `concerned` holds for, :names being the names, each by an index: whatever seals a row is its subject,
-- else its user (`holder_of`).
SELECT alias.memory_id FROM memories alias WHERE alias.tenant_id = :tenant_id AND alias.user_id = ANY ({users_named n}) AND alias.user_id <> ''
  UNION SELECT alias.memory_id FROM memories alias WHERE alias.tenant_id = :tenant_id AND alias.subject = ANY (:names)
  UNION SELECT alias.memory_id FROM memories alias WHERE alias.tenant_id = :tenant_id AND alias.entity = ANY (:names)

-- name: candidates_of_person
-- The same for candidates.
SELECT alias.candidate_id FROM candidates alias WHERE alias.tenant_id = :tenant_id AND alias.user_id = ANY ({users_named n})
  UNION SELECT alias.candidate_id FROM candidates alias WHERE alias.tenant_id = :tenant_id AND alias.subject = ANY (:names)
  UNION SELECT alias.candidate_id FROM candidates alias WHERE alias.tenant_id = :tenant_id AND alias.entity = ANY (:names)

-- name: captures_of_person
-- The same for captures.
SELECT alias.capture_id FROM captures alias WHERE alias.tenant_id = :tenant_id AND alias.user_id = ANY ({users_named n})
  UNION SELECT alias.capture_id FROM captures alias WHERE alias.tenant_id = :tenant_id AND alias.subject = ANY (:names)
  UNION SELECT alias.capture_id FROM captures alias WHERE alias.tenant_id = :tenant_id AND alias.entity = ANY (:names)

-- name: my_capture
-- The columns of a capture that a person is shown.
alias.capture_id, alias.seq, alias.author, alias.source, alias.kind, alias.classification, alias.origin, alias.vouched, alias.user_id, alias.holder,
alias.captured_at, alias.observed_at, alias.content

-- name: lives
-- A memory that is neither retracted nor over now.
(alias.expires_at > :now AND NOT EXISTS (SELECT FROM retractions g WHERE g.tenant_id = :tenant_id AND g.memory_id = alias.memory_id))

-- name: covered_capture
-- A capture, archived or not; also if a fact in it, refused or not, names one.
({concerned alias} OR alias.capture_id = ANY (e.captures) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = :tenant_id AND n.capture_id = alias.capture_id AND n.name = ANY (e.names)))

-- name: covered_fact
-- A candidate or a memory; also if its value names one. A plain text has no entity of its own: it goes with its
-- capture.
({concerned alias} OR alias.candidate_id = ANY (e.facts) OR EXISTS (SELECT FROM capture_names n
  WHERE n.tenant_id = :tenant_id AND n.capture_id = alias.capture_id AND n.name = ANY (e.names)
    AND (n.candidate_id = alias.candidate_id OR alias.entity IS NULL)))

-- name: covered_recall
-- A recall for the user, or about one of the entities.
(alias.holder = ANY (e.names) OR '@' || alias.user_id = ANY (e.names) OR alias.request -> 'entities' ?| e.names)

-- name: reached
-- Whether an erasure after the capture covers it.
EXISTS (SELECT FROM erasures e WHERE e.tenant_id = :tenant_id AND e.seq > alias.seq AND {covered_capture alias})

-- name: settled_reading
-- A capture whose facts were found, a model's late answer too, or that is parked: until somebody tries it again nothing more is
-- found.
(EXISTS (SELECT FROM consolidations d WHERE d.tenant_id = :tenant_id AND d.capture_id = alias.capture_id)
   AND NOT EXISTS (SELECT FROM retries l WHERE l.tenant_id = :tenant_id AND l.capture_id = alias.capture_id AND l.late IS NOT NULL
     AND l.parked_at IS NULL)
 OR EXISTS (SELECT FROM retries r WHERE r.tenant_id = :tenant_id AND r.capture_id = alias.capture_id AND r.parked_at IS NOT NULL))

-- name: its_time
-- No pause is longer than a day: a longer one comes from a clock that was ahead, and is over.
(alias.next_at <= :now OR alias.next_at > :now::timestamptz + interval '25 hours')

-- name: unread
-- A capture after the cursor. A default outside of the subquery would keep row security from using the index.
(alias.seq, alias.capture_id) > (
  (SELECT coalesce(max(u.seq), 0) FROM cursors u WHERE u.tenant_id = :tenant_id AND u.name = 'consolidate'),
  (SELECT coalesce(max(u.capture_id), '') FROM cursors u WHERE u.tenant_id = :tenant_id AND u.name = 'consolidate'))

-- name: comes_first
-- The first of a holder's captures that wait to be tried again; the others wait behind it.
(alias.holder = '*' OR NOT EXISTS (SELECT FROM retries e WHERE e.tenant_id = :tenant_id AND e.parked_at IS NULL
  AND (e.number = 1 OR (e.late IS NOT NULL AND alias.late IS NOT NULL))
  AND e.holder = alias.holder AND (e.seq, e.capture_id) < (alias.seq, alias.capture_id)))

-- The search for what is near to a text, in two parts.

-- name: near_columns
-- A memory about somebody else is not compared (`comes` is false) and not opened; :about is one subject under all its names.
{memory alias}, 1 - near.distance AS similarity, NOT {consent_allows f} AS hidden, coalesce({about alias} = ANY (:about::text[]), true) AS comes

-- name: about
-- Whom a memory is about; null for one about its own user, which may be about anybody (:own is the namespace of users and its
-- aliases).
coalesce(alias.entity, CASE WHEN split_part(alias.subject, ':', 1) = ANY (:own::text[]) AND split_part(alias.subject, ':', 2) = alias.user_id
  THEN NULL ELSE alias.subject END)

-- name: near_scope
-- What runs see, or saw at a sequence number and time; a fact on a key meets plain texts only.
alias.tenant_id = :tenant_id
  AND (NOT :on_key OR alias.entity IS NULL)
  AND alias.born_seq < :seq AND (alias.dead_seq IS NULL OR alias.dead_seq >= :seq)
  AND alias.expires_at > coalesce(:at::timestamptz, :now) AND {session_open alias}
  AND {consent_may_return alias}

-- name: undecided
-- A proposal without its final verdict.
NOT EXISTS (SELECT FROM verdicts d WHERE d.tenant_id = :tenant_id AND d.proposal_id = alias.proposal_id
  AND d.action IN ('approve', 'edit', 'reject', 'block', 'duplicate', 'withdraw'))

-- name: not_to_be_kept
-- A proposal that was rejected, or whose memory was undone, since then; or whose memory the person had forgotten, whenever.
(EXISTS (SELECT FROM verdicts v WHERE v.tenant_id = :tenant_id AND v.proposal_id = alias.proposal_id AND v.action = 'reject' AND v.at > :since)
 OR EXISTS (SELECT FROM memories g JOIN retractions x ON x.tenant_id = :tenant_id AND x.memory_id = g.memory_id
   WHERE g.tenant_id = :tenant_id AND g.proposal_id = alias.proposal_id
     AND (x.reason = 'forgotten' OR (x.reason = 'undone' AND x.retracted_at > :since))))

-- name: policys_own
-- A proposal that policy may promote alone, now or later, after the last place before which there is none: no person
-- has touched it, and only lack of room has kept it waiting.
(alias.auto_eligible AND {past_settled alias}
  AND NOT EXISTS (SELECT FROM verdicts v WHERE v.tenant_id = :tenant_id AND v.proposal_id = alias.proposal_id
    AND NOT (v.by_kind = 'system' AND (v.action = 'release' OR coalesce(v.cause, '') = 'budget'))))

-- name: past_settled
-- A default outside of the subquery would keep row security from using the index.
(alias.seq, alias.proposal_id) > (
  (SELECT coalesce(max(u.seq), 0) FROM cursors u WHERE u.tenant_id = :tenant_id AND u.name = 'promote'),
  (SELECT coalesce(max(u.capture_id), '') FROM cursors u WHERE u.tenant_id = :tenant_id AND u.name = 'promote'))

-- name: same_item
-- Whether `alias`, the proposal of a candidate with the fingerprint that is looked for, belongs to its item (REV-11).
(alias.action = 'promote' AND {undecided alias})

-- name: of_items
-- Whether `alias` is one of :proposal_ids, or an open proposal that says the same as one, up to :count for all together (REV-11).
(alias.proposal_id = ANY (:proposal_ids || ARRAY(
  SELECT q.proposal_id
  FROM proposals q
  WHERE q.tenant_id = :tenant_id AND {same_item q} AND q.candidate_id = ANY (ARRAY(
    SELECT same.candidate_id FROM candidates same
    WHERE same.tenant_id = :tenant_id AND same.fingerprint = ANY (ARRAY(
      SELECT DISTINCT own.fingerprint FROM proposals a
      JOIN candidates own ON own.tenant_id = :tenant_id AND own.candidate_id = a.candidate_id
      WHERE a.tenant_id = :tenant_id AND a.proposal_id = ANY (:proposal_ids) AND a.action = 'promote'))))
  ORDER BY q.seq, q.proposal_id LIMIT :count)))

-- name: waiting_about
unnest(:holders::text[]) AS alias (holder)
CROSS JOIN LATERAL (
  SELECT w.proposal_id FROM waiting_proposals w WHERE w.tenant_id = :tenant_id AND w.holder = alias.holder COLLATE "C"
  ORDER BY w.seq DESC, w.proposal_id DESC LIMIT :each) w

-- name: open_proposals
-- The open proposals as a table: those that wait have a row of their own; samples and what asks for something else are few.
(SELECT o.* FROM waiting_proposals w
   JOIN proposals o ON o.tenant_id = :tenant_id AND o.proposal_id = w.proposal_id WHERE w.tenant_id = :tenant_id
 UNION ALL
 SELECT o.* FROM proposals o WHERE o.tenant_id = :tenant_id AND o.audits IS NOT NULL AND {undecided o}
 UNION ALL
 SELECT o.* FROM proposals o WHERE o.tenant_id = :tenant_id AND o.action <> 'promote' AND o.audits IS NULL AND {undecided o}) alias

-- name: clock_and_runs
-- The clock of every tenant with the runs of its jobs. It must contain no apostrophe: `known_elsewhere` puts it into a text.
SELECT alias.tenant_id, alias.seq, alias.at AS wrote_at, r.job, r.ran_at, r.seq AS ran_seq, r.next_at, r.failures
FROM tenant_clock alias LEFT JOIN job_runs r ON r.tenant_id = alias.tenant_id

-- name: waited
-- The proposals that were open at the sequence number :last_seq: those that are open now, and those that were decided since.
(SELECT o.proposal_id, o.class, o.due_at, o.enqueued_at FROM {open_proposals o} WHERE o.seq <= :last_seq
 UNION ALL
 SELECT o.proposal_id, o.class, o.due_at, o.enqueued_at FROM verdicts d
   JOIN proposals o ON o.tenant_id = :tenant_id AND o.proposal_id = d.proposal_id AND o.seq <= :last_seq
   WHERE (SELECT k.seq FROM tenant_clock k WHERE k.tenant_id = :tenant_id) > :last_seq
     AND d.tenant_id = :tenant_id AND d.seq > :last_seq AND d.action IN ('approve', 'edit', 'reject', 'block', 'duplicate', 'withdraw')) alias

-- A page of the queue, from a place on.

-- name: leads
-- No open proposal that is due earlier, or came earlier, says the same and passes the same filters: the first stands for the
-- item (REV-11). OFFSET 0 keeps the order of the joins: before a table was analysed, all of it looks as cheap to read as one row.
NOT EXISTS (
  SELECT FROM (SELECT o.fingerprint FROM candidates o WHERE o.tenant_id = :tenant_id AND o.candidate_id = alias.candidate_id OFFSET 0) own
  CROSS JOIN LATERAL (
    SELECT o.candidate_id FROM candidates o WHERE o.tenant_id = :tenant_id AND o.fingerprint = own.fingerprint OFFSET 0) same
  CROSS JOIN LATERAL (SELECT * FROM proposals o WHERE o.tenant_id = :tenant_id AND o.candidate_id = same.candidate_id OFFSET 0) q
  WHERE alias.action = 'promote'
    AND (q.due_at, q.seq, q.proposal_id) < (alias.due_at, alias.seq, alias.proposal_id) AND {same_item q} AND {filtered q} AND {narrowed q} AND {with_danger q})

-- name: filtered
-- By the columns of the proposal.
((:write_class::text IS NULL OR alias.class = :write_class) AND (:risk::text IS NULL OR alias.risk = :risk)
 AND (:overdue::boolean IS NULL OR (alias.due_at <= :now) = :overdue))

-- name: danger_bits
-- What a reviewer should notice in a proposal, a power of two for each danger, the gravest the highest (review/dangers.py), so that
-- the sum orders them too. What was found when it entered the queue and what the pack in force says both count. `n` is its candidate.
((SELECT CASE WHEN t.told NOT LIKE '%, %' THEN 0
      ELSE CASE WHEN regexp_replace(t.told, ', (unvouched_tool|unvouched_message|guard \d\.\d\d of \d\.\d\d)(?=,|$)', '', 'g') LIKE '%, %' THEN 1024 ELSE 0 END
        + CASE WHEN substring(t.told FROM ', guard (\d\.\d\d) of ')::float8 >= substring(t.told FROM ', guard \d\.\d\d of (\d\.\d\d)')::float8 THEN 512 ELSE 0 END
      END
    FROM (SELECT {told_by_trust_gate n} AS told) t)
    + CASE WHEN n.trust < :trust_floor::float8 OR 'low_trust' = ANY (alias.human_reasons) THEN 256 ELSE 0 END
    + CASE WHEN alias.risk = 'high' OR alias.class = ANY (:risky_classes::text[]) THEN 128 ELSE 0 END
    + CASE WHEN alias.contradicts <> '{}' OR 'contradiction' = ANY (alias.human_reasons) THEN 64 ELSE 0 END
    + CASE WHEN alias.proposal_id IN ({opposed k}) THEN 32 ELSE 0 END
    + CASE WHEN alias.sensitive OR NOT n.classification = ANY (:ordinary_labels::text[]) THEN 16 ELSE 0 END
    + CASE WHEN n.third_party THEN 8 ELSE 0 END
    + CASE WHEN alias.action <> 'promote' THEN 4 ELSE 0 END
    + CASE WHEN n.claimed_by <> '' AND {kind n} IN ({usual_kinds s}) AND NOT {kind n} || chr(31) || {speaker n} IN ({usual_speakers s}) THEN 2 ELSE 0 END
    + CASE WHEN n.confidence < 0.5 THEN 1 ELSE 0 END)

-- name: dangers
-- The same for one proposal, whose candidate is looked up.
(SELECT {danger_bits alias} FROM candidates n WHERE n.tenant_id = :tenant_id AND n.candidate_id = alias.candidate_id)

-- name: dangers_in
-- The same for all proposals of `alias`, whose candidates are read in one go.
SELECT alias.proposal_id, {danger_bits alias} AS dangers FROM alias JOIN candidates n ON n.candidate_id = alias.candidate_id
WHERE n.tenant_id = :tenant_id AND n.candidate_id = ANY (ARRAY(SELECT candidate_id FROM alias))

-- name: with_danger
-- A proposal with one of the dangers that are asked for.
(:dangers::int IS NULL OR {dangers alias} & :dangers <> 0)

-- name: told_by_trust_gate
-- What the trust gate found in a candidate: the trust, where it came from, and what addresses the model. A gate is a pair; rows from
-- before migration 33 have its fields. It is nearly always the sixth, which takes a third of the time of a search.
CASE WHEN alias.gates #>> '{5,0}' = 'trust' THEN alias.gates #>> '{5,1}'
  ELSE coalesce(jsonb_path_query_first(alias.gates, 'strict $[*] ? (@[0] == "trust")[1]'),
    jsonb_path_query_first(alias.gates, 'strict $[*] ? (@.gate == "trust").detail')) #>> '{}' END

-- name: opposed
-- The open proposals that another open one contradicts (REV-12): both wait.
SELECT unnest(ARRAY[alias.proposal_id, alias.contradicts]) FROM proposal_contradictions alias
JOIN waiting_proposals o ON o.tenant_id = :tenant_id AND o.proposal_id = alias.proposal_id
JOIN waiting_proposals w ON w.tenant_id = :tenant_id AND w.proposal_id = alias.contradicts
WHERE alias.tenant_id = :tenant_id

-- name: kind
-- Facts of one kind have the same class and predicate.
alias.class || chr(31) || coalesce(alias.predicate, '')

-- name: speaker
-- Who spoke, as `speaker_of_source` has it: the agent and the class of source, without the extractor; end users count as one.
CASE WHEN alias.claimed_by LIKE '% end_user %' AND regexp_replace(alias.claimed_by, ' [^ ]*$', '') LIKE '% end_user' THEN 'end_user'
  ELSE left(alias.claimed_by, length(alias.claimed_by) - strpos(reverse(alias.claimed_by), ' ')) END

-- name: latest_sources
-- From whom the latest 400 memories came, found by their number. OFFSET 0 keeps the order of the joins.
(SELECT o.candidate_id, o.class, o.predicate FROM memories o WHERE o.tenant_id = :tenant_id ORDER BY o.born_seq DESC, o.memory_id DESC LIMIT 400) m
CROSS JOIN LATERAL (SELECT o.claimed_by FROM candidates o WHERE o.tenant_id = :tenant_id AND o.candidate_id = m.candidate_id OFFSET 0) alias
WHERE alias.claimed_by <> ''

-- name: usual_kinds
-- Kinds of which enough facts were promoted lately to say where they usually come from: five.
SELECT {kind m} FROM {latest_sources alias} GROUP BY 1 HAVING count(*) >= 5

-- name: usual_speakers
-- Who spoke of which kind of facts lately.
SELECT {kind m} || chr(31) || {speaker alias} FROM {latest_sources alias}

-- name: noticed
-- The dangers of the open proposals, where the order or the filter asks for them.
{dangers_in alias} AND (:order = 'unusual' OR :dangers::int IS NOT NULL)

-- name: placed
-- The open proposals of `alias` with the dangers that are asked for, each with its place in the order that is asked for; equal places
-- follow the due time.
SELECT alias.*, CASE :order WHEN 'unusual' THEN -n.dangers WHEN 'newest' THEN -alias.seq ELSE 0 END AS place
FROM alias LEFT JOIN noticed n ON n.proposal_id = alias.proposal_id
WHERE :dangers::int IS NULL OR n.dangers & :dangers <> 0

-- name: open_row
-- The columns of an open proposal that the statements of the queue need.
alias.proposal_id, alias.candidate_id, alias.seq, alias.due_at, alias.human_reasons, alias.tier_derived, alias.action, alias.class, alias.risk,
alias.sensitive, alias.contradicts

-- name: place_of_last
-- The place of the proposal that a page ended with. If it was decided since, no proposal is opposed to it any more: then its place
-- is the one that it had, or an earlier one.
CASE :order WHEN 'unusual' THEN -({dangers alias} | CASE WHEN EXISTS (SELECT FROM proposal_contradictions k
    WHERE k.tenant_id = :tenant_id AND alias.proposal_id IN (k.proposal_id, k.contradicts)) THEN 32 ELSE 0 END)
  WHEN 'newest' THEN -alias.seq ELSE 0 END

-- name: heading
-- The group that a candidate belongs to: whom it is about, whose capture it came from, or its class.
CASE :group WHEN 'class' THEN alias.class WHEN 'source' THEN alias.author ELSE coalesce(alias.entity, alias.subject, '') END COLLATE "C"

-- name: headings_of
-- The groups of the candidates of `alias`, read in one go: looked up one by one they would take longer than all else.
SELECT h.candidate_id, {heading h} AS heading FROM candidates h
WHERE h.tenant_id = :tenant_id AND h.candidate_id = ANY (ARRAY(SELECT candidate_id FROM alias))

-- name: listed
({filtered alias} AND (alias.due_at, alias.proposal_id) > (
   (SELECT coalesce(max(a.due_at), '-infinity') FROM proposals a WHERE a.tenant_id = :tenant_id AND a.proposal_id = :after), :after))

-- name: narrowed
-- By its candidate and its verdicts; an entity comes under all its names.
((:entity::text[] IS NULL OR alias.candidate_id = ANY (ARRAY(SELECT c.candidate_id FROM candidates c
   WHERE c.tenant_id = :tenant_id AND (c.entity = ANY (:entity) OR c.subject = ANY (:entity)))))
 AND (:reason::text IS NULL OR :reason = ANY (alias.human_reasons) OR {held_for alias} = :reason)
 AND (:tier::text IS NULL OR {tier_of alias} = :tier)
 AND (:assignee::text IS NULL OR {assignee_of alias} = :assignee)
 AND (:author::text IS NULL OR EXISTS (SELECT FROM candidates c
   WHERE c.tenant_id = :tenant_id AND c.candidate_id = alias.candidate_id AND c.author = :author))
 AND (:mentioned::text IS NULL OR EXISTS (SELECT FROM verdicts h
   WHERE h.tenant_id = :tenant_id AND h.proposal_id = alias.proposal_id AND :mentioned = ANY (h.mentions)))
 AND (:status::text IS NULL OR ({held_for alias} IS NOT NULL) = (:status = 'held')))

-- The state of an open proposal by its verdicts so far; the last one that sets a value counts.

-- name: held_for
-- Why it is held, '' without a cause; null if it is not held.
(SELECT CASE WHEN h.action = 'hold' THEN coalesce(h.cause, '') END FROM verdicts h
 WHERE h.tenant_id = :tenant_id AND h.proposal_id = alias.proposal_id AND h.action IN ('hold', 'release')
 ORDER BY h.seq DESC, h.verdict_id DESC LIMIT 1)

-- name: assignee_of
(SELECT h.assignee FROM verdicts h
 WHERE h.tenant_id = :tenant_id AND h.proposal_id = alias.proposal_id AND h.action IN ('assign', 'release')
 ORDER BY h.seq DESC, h.verdict_id DESC LIMIT 1)

-- name: tier_of
-- The derived tier, or the last one that a reviewer set.
coalesce((SELECT h.tier FROM verdicts h
  WHERE h.tenant_id = :tenant_id AND h.proposal_id = alias.proposal_id AND h.action IN ('override', 'approve') AND h.tier IS NOT NULL
  ORDER BY h.seq DESC, h.verdict_id DESC LIMIT 1), alias.tier_derived)

-- The filters of a person who browses the tenant's memories.

-- name: chosen
-- `alias` is a row of `memories`; an entity, under all its names, is what the memory is about, as its key or as its subject.
((:user_id::text IS NULL OR alias.user_id = :user_id)
 AND (:entity::text[] IS NULL OR alias.entity = ANY (:entity) OR alias.subject = ANY (:entity))
 AND (:tier::text IS NULL OR alias.tier = :tier) AND (:write_class::text IS NULL OR alias.class = :write_class))

-- name: chosen_scope
-- The same for a row of `memory_scope`, which has no subject.
((:user_id::text IS NULL OR alias.user_id = :user_id)
 AND (:entity::text[] IS NULL OR alias.memory_id = ANY (ARRAY(SELECT g.memory_id FROM memories g
   WHERE g.tenant_id = :tenant_id AND (g.entity = ANY (:entity) OR g.subject = ANY (:entity)))))
 AND (:tier::text IS NULL OR alias.tier = :tier) AND (:write_class::text IS NULL OR alias.class = :write_class))

-- name: stood
-- What was live at the earlier of two points in time, :since_seq and :since.
(alias.born_seq <= :since_seq AND (alias.dead_seq IS NULL OR alias.dead_seq > :since_seq) AND alias.expires_at > :since)

-- name: in_state
-- Of what was promoted by then: what was live, what had ended, or all.
({is_promoted alias} AND CASE :state WHEN 'live' THEN {not_retracted alias} AND {not_expired alias}
  WHEN 'ended' THEN NOT ({not_retracted alias} AND {not_expired alias}) ELSE true END)

-- name: ends_at
-- When it was retracted, or else expires.
CASE WHEN alias.dead_seq IS NULL THEN alias.expires_at ELSE least(alias.expires_at, (
  SELECT r.retracted_at FROM retractions r WHERE r.tenant_id = :tenant_id AND r.memory_id = alias.memory_id)) END

-- name: told_of
-- An event of those types whose body names the id, as JSON writes it.
((:types::text[] IS NULL OR alias.type = ANY (:types)) AND (:about::bytea IS NULL OR position(:about::bytea IN alias.body) > 0))

-- Captures as people browse them.

-- name: state_of_capture
-- The state of a capture in one word.
CASE
  WHEN alias.content = '' THEN 'erased'
  WHEN EXISTS (SELECT FROM retries w WHERE w.tenant_id = :tenant_id AND w.capture_id = alias.capture_id AND w.parked_at IS NOT NULL) THEN 'parked'
  WHEN EXISTS (SELECT FROM retries w WHERE w.tenant_id = :tenant_id AND w.capture_id = alias.capture_id AND w.late IS NULL) THEN 'waiting'
  WHEN NOT EXISTS (SELECT FROM consolidations w WHERE w.tenant_id = :tenant_id AND w.capture_id = alias.capture_id) THEN 'waiting'
  WHEN EXISTS (SELECT FROM refusals w WHERE w.tenant_id = :tenant_id AND w.capture_id = alias.capture_id AND w.consolidation = (
    SELECT max(l.number) FROM consolidations l WHERE l.tenant_id = :tenant_id AND l.capture_id = alias.capture_id)) THEN 'refused'
  ELSE 'processed' END

-- name: reviewed
-- A capture with a proposal or a refusal, which reviewers may read.
(EXISTS (SELECT FROM candidates v WHERE v.tenant_id = :tenant_id AND v.capture_id = alias.capture_id)
 OR EXISTS (SELECT FROM refusals v WHERE v.tenant_id = :tenant_id AND v.capture_id = alias.capture_id))

-- name: contradicted
-- Whether a contradiction of a memory was open at the sequence number :seq and the time :at. `alias` is a row of
-- `memories`.
(EXISTS (SELECT FROM contradictions x WHERE x.tenant_id = :tenant_id AND x.existing = alias.memory_id AND {open_then x})
 OR EXISTS (SELECT FROM contradictions y WHERE y.tenant_id = :tenant_id AND y.proposal_id = alias.proposal_id AND {open_then y}))

-- name: open_then
-- A contradiction that had begun by then, was not resolved, and none of whose sides was retracted or had expired.
(alias.seq <= :seq AND {still_open alias}
 AND EXISTS (SELECT FROM memory_scope o WHERE o.tenant_id = :tenant_id AND o.memory_id = alias.existing
   AND (o.dead_seq IS NULL OR o.dead_seq > :seq) AND o.expires_at > :at)
 AND NOT EXISTS (SELECT FROM memories n
   JOIN memory_scope o ON o.tenant_id = :tenant_id AND o.memory_id = n.memory_id
   WHERE n.tenant_id = :tenant_id AND n.proposal_id = alias.proposal_id
     AND ((o.dead_seq IS NOT NULL AND o.dead_seq <= :seq) OR o.expires_at <= :at)))

-- name: notice_ready
-- A channel of a person to which a message may go now: it is not removed, leased or waiting for a retry, and had none in the last
-- minute. Times far ahead are those of a clock that was wrong.
(alias.removed_at IS NULL AND alias.channel <> 'browser'
  AND (alias.next_try_at IS NULL OR alias.next_try_at <= :now OR alias.next_try_at > :now::timestamptz + interval '25 hours')
  AND (alias.leased_until IS NULL OR alias.leased_until <= :now OR alias.leased_until > :now::timestamptz + interval '1 hour')
  AND (alias.sent_at IS NULL OR alias.sent_at <= :now::timestamptz - interval '1 minute' OR alias.sent_at > :now))

-- name: digest_misplaced
-- A digest of notices that is due later than the next one can be (Schedule.may_be_next): a clock that was wrong put it there.
(alias.digest_at > :now::timestamptz + CASE WHEN alias.digest = 'hourly' THEN interval '3 hours' ELSE interval '3 days' END)

-- name: answer_holds
-- An answer that was ranked from the index in a process is still right: the visibility number is that of the index, every chosen
-- memory passes all filters, and the chosen ones are in exactly the open contradictions that the index has. OFFSET 0 keeps the order
-- of the joins: before a table was analysed, all of it looks as cheap to read as one row.
alias.visible_seq = :visible_seq AND alias.mark = :mark::uuid
  AND (SELECT count(*) FROM memory_scope s WHERE s.memory_id = ANY (:result_ids) AND {visible s}) = cardinality(:result_ids::text[])
  AND ARRAY(
    SELECT o.contradiction_id
    FROM (
      (SELECT c.contradiction_id, c.existing, c.proposal_id
       FROM contradictions c WHERE c.tenant_id = :tenant_id AND c.existing = ANY (:result_ids) OFFSET 0)
      UNION ALL
      SELECT c.contradiction_id, c.existing, c.proposal_id
      FROM (SELECT m.proposal_id FROM memories m WHERE m.tenant_id = :tenant_id AND m.memory_id = ANY (:result_ids) OFFSET 0) m
      CROSS JOIN LATERAL (
        SELECT * FROM contradictions x WHERE x.tenant_id = :tenant_id AND x.proposal_id = m.proposal_id
          AND NOT x.existing = ANY (:result_ids) OFFSET 0) c) o
    WHERE {still_open o}
      AND (SELECT i.user_id FROM memories i WHERE i.tenant_id = :tenant_id AND i.proposal_id = o.proposal_id) = ANY (:users)
      AND (SELECT e.user_id FROM memory_scope e WHERE e.tenant_id = :tenant_id AND e.memory_id = o.existing) = ANY (:users)
    ORDER BY 1) = :contradictions::text[]
