-- Captures for people to read: listed, opened, and run again; and the refusals of their facts.

-- name: list
-- plan: each time
-- The latest first, after a capture. Proposals and refusals are counted over all consolidations.
SELECT * FROM (
  SELECT c.capture_id, c.seq, c.author, c.source, c.kind, c.classification, c.origin, c.subject, c.user_id, c.session_id,
    c.run_id, c.intent_id, c.workflow_id, c.observed_at, c.captured_at, c.pack, {state_of_capture c} AS state,
    (SELECT max(d.number) FROM consolidations d WHERE d.tenant_id = :tenant_id AND d.capture_id = c.capture_id) AS consolidations,
    (SELECT count(*) FROM candidates n WHERE n.tenant_id = :tenant_id AND n.capture_id = c.capture_id AND n.edits IS NULL) AS proposed,
    (SELECT count(*) FROM refusals f WHERE f.tenant_id = :tenant_id AND f.capture_id = c.capture_id) AS refused
  FROM captures c
  WHERE c.tenant_id = :tenant_id AND (c.seq, c.capture_id) < (:seq::bigint, :after)
    AND (:kind::text IS NULL OR c.kind = :kind) AND (:source::text IS NULL OR c.source = :source)
    AND (:subject::text[] IS NULL OR c.subject = ANY (:subject) OR (c.subject IS NULL AND c.user_id = :subject_user))
    AND (:user_id::text IS NULL OR c.user_id = :user_id) AND (:session_id::text IS NULL OR c.session_id = :session_id)
    AND (:run_id::text IS NULL OR c.run_id = :run_id)
    AND (:since::timestamptz IS NULL OR c.captured_at >= :since) AND (:until::timestamptz IS NULL OR c.captured_at < :until)
    AND (:all OR {reviewed c})) listed
WHERE :state::text IS NULL OR listed.state = :state
ORDER BY listed.seq DESC, listed.capture_id DESC
LIMIT :count

-- name: archived
-- The same for archived captures; of these only what the index keeps is known.
SELECT a.capture_id, a.seq, v.kind, a.subject, a.user_id, a.captured_at, a.archive_id AS archive, 'archived' AS state,
  (SELECT max(d.number) FROM consolidations d WHERE d.tenant_id = :tenant_id AND d.capture_id = a.capture_id) AS consolidations,
  (SELECT count(*) FROM candidates n WHERE n.tenant_id = :tenant_id AND n.capture_id = a.capture_id AND n.edits IS NULL) AS proposed,
  (SELECT count(*) FROM refusals f WHERE f.tenant_id = :tenant_id AND f.capture_id = a.capture_id) AS refused
FROM archived_captures a
JOIN archives v ON v.tenant_id = :tenant_id AND v.archive_id = a.archive_id
WHERE a.tenant_id = :tenant_id AND (a.seq, a.capture_id) < (:seq::bigint, :after)
  AND (:kind::text IS NULL OR v.kind = :kind)
  AND (:subject::text[] IS NULL OR a.subject = ANY (:subject) OR (a.subject IS NULL AND a.user_id = :subject_user))
  AND (:user_id::text IS NULL OR a.user_id = :user_id)
  AND (:since::timestamptz IS NULL OR a.captured_at >= :since) AND (:until::timestamptz IS NULL OR a.captured_at < :until)
  AND (:all OR {reviewed a})
ORDER BY a.seq DESC, a.capture_id DESC
LIMIT :count

-- name: place
-- The position of a capture in that order, archived or not.
SELECT c.seq FROM captures c WHERE c.tenant_id = :tenant_id AND c.capture_id = :after
UNION ALL
SELECT a.seq FROM archived_captures a WHERE a.tenant_id = :tenant_id AND a.capture_id = :after
LIMIT 1

-- name: state
-- The state of a capture in the database, and whether a proposal or a refusal came from it.
SELECT {state_of_capture c} AS state, {reviewed c} AS reviewed FROM captures c
WHERE c.tenant_id = :tenant_id AND c.capture_id = :capture_id

-- name: archived_state
SELECT 'archived' AS state, {reviewed a} AS reviewed FROM archived_captures a
WHERE a.tenant_id = :tenant_id AND a.capture_id = :capture_id

-- name: consolidations
-- Each consolidation of a capture, with who asked for it from the second on.
SELECT d.number, d.at, r.by, r.ordered_at, r.reason
FROM consolidations d
LEFT JOIN reruns r ON r.tenant_id = :tenant_id AND r.capture_id = d.capture_id AND r.number = d.number
WHERE d.tenant_id = :tenant_id AND d.capture_id = :capture_id
ORDER BY d.number

-- name: proposals
SELECT p.proposal_id FROM candidates c
JOIN proposals p ON p.tenant_id = :tenant_id AND p.candidate_id = c.candidate_id
WHERE c.tenant_id = :tenant_id AND c.capture_id = :capture_id
ORDER BY p.seq, p.proposal_id

-- name: to_rerun
-- The state of a capture to be run again: whether it has content, how often it was consolidated, whether it waits.
SELECT c.seq, c.holder, c.content = '' AS erased, r.capture_id IS NOT NULL AS waits, r.parked_at, r.late,
  (SELECT max(d.number) FROM consolidations d WHERE d.tenant_id = :tenant_id AND d.capture_id = c.capture_id) AS done
FROM captures c
LEFT JOIN retries r ON r.tenant_id = :tenant_id AND r.capture_id = c.capture_id
WHERE c.tenant_id = :tenant_id AND c.capture_id = :capture_id

-- name: order
INSERT INTO reruns (tenant_id, capture_id, number, seq, ordered_at, txid, by, reason)
VALUES (:tenant_id, :capture_id, :number, :seq, :at, :txid, :by, :reason)

-- name: wait_again
INSERT INTO retries (tenant_id, capture_id, seq, holder, tries, next_at, number)
VALUES (:tenant_id, :capture_id, :captured_seq, :holder, 0, :now, :number)

-- name: take_over
-- What waits for a model's answer alone is consolidated as a whole instead.
UPDATE retries SET tries = 0, next_at = :now, parked_at = NULL, error = NULL, number = :number, late = NULL
WHERE tenant_id = :tenant_id AND capture_id = :capture_id AND late IS NOT NULL
RETURNING number

-- name: unpark
-- Tries are counted anew; returns no row where it is not parked any more.
UPDATE retries SET tries = 0, next_at = :now, parked_at = NULL
WHERE tenant_id = :tenant_id AND capture_id = :capture_id AND parked_at IS NOT NULL
RETURNING number

-- name: refusals
-- plan: each time
-- The latest first, after a refusal. `latest` where its capture was not consolidated again since.
SELECT f.capture_id, f.consolidation, f.extractor, f.ordinal, f.gate, f.reason, f.at, f.rejection,
  NOT EXISTS (SELECT FROM consolidations d
    WHERE d.tenant_id = :tenant_id AND d.capture_id = f.capture_id AND d.number > f.consolidation) AS latest
FROM refusals f
WHERE f.tenant_id = :tenant_id AND (f.seq, f.capture_id, f.ordinal) < (:seq::bigint, :after_capture, :after_ordinal::int)
  AND (:gate::text IS NULL OR f.gate = :gate) AND (:reason::text IS NULL OR f.reason = :reason)
  AND (:since::timestamptz IS NULL OR f.at >= :since) AND (:until::timestamptz IS NULL OR f.at < :until)
  AND (:capture_id::text IS NULL OR f.capture_id = :capture_id)
  AND (NOT :only_latest OR NOT EXISTS (SELECT FROM consolidations d
    WHERE d.tenant_id = :tenant_id AND d.capture_id = f.capture_id AND d.number > f.consolidation))
ORDER BY f.seq DESC, f.capture_id DESC, f.ordinal DESC
LIMIT :count

-- name: refusal_counts
-- Refusals since then by gate and reason, and how many of them were not consolidated again.
SELECT f.gate, f.reason, count(*) AS count, count(*) FILTER (WHERE NOT EXISTS (SELECT FROM consolidations d
    WHERE d.tenant_id = :tenant_id AND d.capture_id = f.capture_id AND d.number > f.consolidation)) AS latest
FROM refusals f WHERE f.tenant_id = :tenant_id AND f.at >= :since
GROUP BY f.gate, f.reason ORDER BY count(*) DESC, f.gate, f.reason

-- name: refusal_place
SELECT seq FROM refusals
WHERE tenant_id = :tenant_id AND capture_id = :capture_id AND consolidation = :consolidation AND ordinal = :ordinal
LIMIT 1
