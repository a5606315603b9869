-- What an end user sees of themselves. Row security holds the login to the person's rows; the conditions here only find them faster.

-- name: memories
-- plan: each time
-- The latest first, after a memory: of their own runs, and about them in others. Few are found by their ids; of many the latest are
-- not far from the end.
WITH few AS MATERIALIZED (SELECT f.memory_id FROM ({memories_of_person o}) f WHERE :memory_id::text IS NULL LIMIT :few),
latest AS MATERIALIZED (
  (SELECT m.* FROM memories m
   WHERE (SELECT count(*) FROM few) < :few AND m.tenant_id = :tenant_id
     AND m.memory_id = ANY (CASE WHEN :memory_id::text IS NULL THEN ARRAY(SELECT memory_id FROM few) ELSE ARRAY[:memory_id] END)
     AND (NOT :live OR {lives m}) AND (m.born_seq, m.memory_id) < (:seq::bigint, :after)
   ORDER BY m.born_seq DESC, m.memory_id DESC LIMIT :count)
  UNION ALL
  (SELECT m.* FROM memories m
   WHERE (SELECT count(*) FROM few) = :few AND m.tenant_id = :tenant_id
     AND (NOT :live OR {lives m}) AND (m.born_seq, m.memory_id) < (:seq::bigint, :after)
   ORDER BY m.born_seq DESC, m.memory_id DESC LIMIT :count))
SELECT m.memory_id, m.proposal_id, m.capture_id, m.born_seq, m.promoted_at, nullif(m.expires_at, 'infinity') AS expires_at, m.class AS write_class,
  m.entity, m.predicate, m.classification, m.tier, m.confidence, m.holder, m.user_id, m.consent_id, m.source, m.author, m.approver, m.vouched,
  m.valid_from, m.valid_until, b.content, r.retracted_at, r.reason, t.tombstoned_at, {consent_allows m} AS allowed
FROM latest m
LEFT JOIN memory_bodies b ON b.tenant_id = :tenant_id AND b.memory_id = m.memory_id
LEFT JOIN retractions r ON r.tenant_id = :tenant_id AND r.memory_id = m.memory_id
LEFT JOIN tombstones t ON t.tenant_id = :tenant_id AND t.memory_id = m.memory_id
ORDER BY m.born_seq DESC, m.memory_id DESC

-- name: memory_place
SELECT born_seq AS seq FROM memories WHERE tenant_id = :tenant_id AND memory_id = :after

-- name: captures
-- plan: each time
-- The latest first, after a capture; found like memories.
WITH few AS MATERIALIZED (SELECT f.capture_id FROM ({captures_of_person o}) f WHERE :capture_ids::text[] IS NULL LIMIT :few)
(SELECT {my_capture c} FROM captures c
 WHERE (SELECT count(*) FROM few) < :few AND c.tenant_id = :tenant_id
   AND c.capture_id = ANY (coalesce(:capture_ids::text[], ARRAY(SELECT capture_id FROM few))) AND (c.seq, c.capture_id) < (:seq::bigint, :after)
 ORDER BY c.seq DESC, c.capture_id DESC LIMIT :count)
UNION ALL
(SELECT {my_capture c} FROM captures c
 WHERE (SELECT count(*) FROM few) = :few AND c.tenant_id = :tenant_id AND (c.seq, c.capture_id) < (:seq::bigint, :after)
 ORDER BY c.seq DESC, c.capture_id DESC LIMIT :count)
ORDER BY seq DESC, capture_id DESC

-- name: capture_place
SELECT seq FROM captures WHERE tenant_id = :tenant_id AND capture_id = :after

-- name: proposals
-- plan: each time
-- Their proposals that wait, by due time; or one of them, decided or not. Found like memories; OFFSET 0 keeps the order of the joins.
WITH few AS MATERIALIZED (SELECT f.candidate_id FROM ({candidates_of_person o}) f WHERE :proposal_id::text IS NULL LIMIT :few),
theirs AS MATERIALIZED (
  SELECT p.proposal_id FROM proposals p
  WHERE :proposal_id::text IS NOT NULL AND p.tenant_id = :tenant_id AND p.proposal_id = :proposal_id
  UNION ALL
  SELECT p.proposal_id FROM proposals p
  WHERE :proposal_id::text IS NULL AND (SELECT count(*) FROM few) < :few AND p.tenant_id = :tenant_id
    AND p.candidate_id = ANY (ARRAY(SELECT candidate_id FROM few))
  UNION ALL
  (SELECT p.proposal_id FROM proposals p
   JOIN candidates c ON c.tenant_id = :tenant_id AND c.candidate_id = p.candidate_id
   WHERE :proposal_id::text IS NULL AND (SELECT count(*) FROM few) = :few AND p.tenant_id = :tenant_id AND (:closed OR {undecided p})
   ORDER BY p.due_at, p.proposal_id LIMIT :count))
SELECT p.proposal_id, p.seq AS proposal_seq, p.tier_derived, p.priority, p.risk, p.sensitive, p.consent_check, p.contradicts, p.auto_eligible,
  p.human_reasons, p.enqueued_at, p.due_at, p.pack, p.edit_of, p.reopens, p.audits, p.action, p.targets, {tier_of p} AS tier, {candidate c}
FROM proposals p
CROSS JOIN LATERAL (SELECT * FROM candidates o WHERE o.tenant_id = :tenant_id AND o.candidate_id = p.candidate_id OFFSET 0) c
WHERE p.tenant_id = :tenant_id AND p.proposal_id = ANY (ARRAY(SELECT proposal_id FROM theirs)) AND (:closed OR {undecided p})
ORDER BY p.due_at, p.proposal_id
LIMIT :count

-- name: facts_of_captures
-- The proposals of their captures, with the last verdict that sets a status, and the memory that came of it or says the same.
-- OFFSET 0 keeps the order of the joins, also before the tables were analysed.
SELECT p.proposal_id, p.seq AS proposal_seq, p.tier_derived, p.priority, p.risk, p.sensitive, p.consent_check, p.contradicts, p.auto_eligible,
  p.human_reasons, p.enqueued_at, p.due_at, p.pack, p.edit_of, p.reopens, p.audits, p.action, p.targets, {tier_of p} AS tier, s.action AS decided,
  coalesce((SELECT m.memory_id FROM memories m WHERE m.tenant_id = :tenant_id AND m.proposal_id = p.proposal_id), s.memory_id) AS became, {candidate c}
FROM candidates c
CROSS JOIN LATERAL (SELECT * FROM proposals o WHERE o.tenant_id = :tenant_id AND o.candidate_id = c.candidate_id OFFSET 0) p
LEFT JOIN LATERAL (
  SELECT v.action, v.memory_id FROM verdicts v
  WHERE v.tenant_id = :tenant_id AND v.proposal_id = p.proposal_id
    AND v.action IN ('approve', 'edit', 'reject', 'hold', 'block', 'duplicate', 'withdraw', 'release')
  ORDER BY v.seq DESC, v.verdict_id DESC LIMIT 1) s ON true
WHERE c.tenant_id = :tenant_id AND c.live_capture_id = ANY (:capture_ids)
ORDER BY p.seq, c.ordinal, p.proposal_id

-- name: consolidated
-- Which of these captures were consolidated, and how often.
SELECT capture_id, max(number) AS number FROM consolidations WHERE tenant_id = :tenant_id AND capture_id = ANY (:capture_ids) GROUP BY capture_id

-- name: refused_in_captures
-- What gates refused when these captures were consolidated last.
SELECT f.capture_id, f.gate, f.reason FROM refusals f
WHERE f.tenant_id = :tenant_id AND f.capture_id = ANY (:capture_ids)
  AND f.consolidation = (SELECT max(d.number) FROM consolidations d WHERE d.tenant_id = :tenant_id AND d.capture_id = f.capture_id)
ORDER BY f.capture_id, f.ordinal, f.extractor

-- name: decisions
-- The verdicts on proposals of the person. The login reads verdicts of the whole tenant; the join with candidates, of which it reads
-- only the person's, leaves out all others.
SELECT v.proposal_id, v.action, v.by, v.by_kind, v.at
FROM candidates c
JOIN proposals p ON p.tenant_id = :tenant_id AND p.candidate_id = c.candidate_id
JOIN verdicts v ON v.tenant_id = :tenant_id AND v.proposal_id = p.proposal_id
WHERE c.tenant_id = :tenant_id AND p.proposal_id = ANY (:proposal_ids)
ORDER BY v.seq, v.verdict_id

-- name: recalls
-- plan: each time
-- The recalls of their own runs, the latest first.
SELECT r.recall_id, r.at, r.agent_id, r.holder, r.query, r.result_ids AS memory_ids
FROM recalls r
WHERE r.tenant_id = :tenant_id AND r.user_id = :user_id AND (:after::text IS NULL OR r.recall_id < :after)
ORDER BY r.recall_id DESC
LIMIT :count

-- name: consent_requests
-- Those to be answered first, the latest first.
SELECT q.request_id, q.capture_id, q.label, q.asked_at, q.ends_at, q.answer, q.answered_at
FROM consent_requests q
WHERE q.tenant_id = :tenant_id AND (:closed OR (q.answer IS NULL AND q.ends_at > :now))
ORDER BY q.answer IS NOT NULL, q.seq DESC, q.request_id DESC
LIMIT :count

-- name: erasure_requests
SELECT q.request_id, q.user_id, q.asked_at, q.answer, q.answered_by, q.answered_at, q.erasure_id
FROM erasure_requests q
WHERE q.tenant_id = :tenant_id AND (NOT :open OR q.answer IS NULL) AND (q.seq, q.request_id) < (:seq::bigint, :after)
ORDER BY q.seq DESC, q.request_id DESC
LIMIT :count

-- name: erasure_requests_of
-- Those of a user that wait, the latest first.
SELECT q.request_id, q.user_id, q.asked_at, q.answer, q.answered_by, q.answered_at, q.erasure_id
FROM erasure_requests q
WHERE q.tenant_id = :tenant_id AND q.user_id = :user_id AND q.answer IS NULL
ORDER BY q.seq DESC, q.request_id DESC

-- name: erasure_request_place
SELECT seq FROM erasure_requests WHERE tenant_id = :tenant_id AND request_id = :after

-- name: erasure_request
SELECT q.request_id, q.user_id, q.asked_at, q.answer, q.answered_by, q.answered_at, q.erasure_id
FROM erasure_requests q WHERE q.tenant_id = :tenant_id AND q.request_id = :request_id

-- name: ask_for_erasure
INSERT INTO erasure_requests (tenant_id, request_id, user_id, memory_id, seq, asked_at, txid)
VALUES (:tenant_id, :request_id, :user_id, :memory_id, :seq, :at, :txid)

-- name: answer_erasure
-- Once: what was answered is not found again.
UPDATE erasure_requests SET answer = :answer, answered_seq = :seq, answered_at = :at, answered_txid = :txid::xid8, answered_by = :by, erasure_id = :erasure_id
WHERE tenant_id = :tenant_id AND request_id = :request_id AND answer IS NULL

-- name: open_erasure_requests
-- Those of a user that wait, to be answered by an erasure.
SELECT request_id FROM erasure_requests WHERE tenant_id = :tenant_id AND user_id = :user_id AND answer IS NULL ORDER BY request_id

-- name: open_consent_requests
-- Those of a person that wait.
SELECT request_id, capture_id, label FROM consent_requests WHERE tenant_id = :tenant_id AND subject = ANY (:names) AND answer IS NULL AND ends_at > :now ORDER BY request_id

-- name: consent_request
SELECT request_id, capture_id, subject, label, ends_at, answer FROM consent_requests WHERE tenant_id = :tenant_id AND request_id = :request_id

-- name: asked_before
-- Requests about the same fact that wait, or were refused since.
SELECT subject, mark FROM consent_requests
WHERE tenant_id = :tenant_id AND subject = ANY (:subjects) AND mark = ANY (:marks)
  AND ((answer IS NULL AND ends_at > :now) OR (answer = 'refused' AND answered_at > :since))

-- name: ask
-- each: request_id, capture_id, consolidation, extractor, ordinal, subject, label, mark
INSERT INTO consent_requests (tenant_id, request_id, capture_id, consolidation, extractor, ordinal, subject, label, seq, asked_at, txid, ends_at, mark)
VALUES (:tenant_id, :request_id, :capture_id, :consolidation, :extractor, :ordinal, :subject, :label, :seq, :at, :txid, :ends_at, :mark)

-- name: answer
-- Once, before it ends.
UPDATE consent_requests SET answer = :answer, answered_seq = :seq, answered_at = :at, answered_txid = :txid::xid8, answered_by = :by
WHERE tenant_id = :tenant_id AND request_id = :request_id AND answer IS NULL AND ends_at > :at

-- name: to_rerun
-- How often a capture was consolidated, if it is in the database and does not wait.
SELECT c.seq, c.holder, (
  SELECT max(d.number) FROM consolidations d WHERE d.tenant_id = :tenant_id AND d.capture_id = c.capture_id) AS done
FROM captures c
WHERE c.tenant_id = :tenant_id AND c.capture_id = :capture_id
  AND NOT EXISTS (SELECT FROM retries r WHERE r.tenant_id = :tenant_id AND r.capture_id = c.capture_id)

-- name: add_code
INSERT INTO one_time_codes (tenant_id, code_id, digest, user_id, act, target, seq, created_at, txid, created_by, created_kind, expires_at)
VALUES (:tenant_id, :code_id, :digest, :user_id, :act, :target, :seq, :at, :txid, :by, :by_kind, :expires_at)

-- name: codes
-- The codes of a user for an act on a thing that are not used or over, locked: of two who use one at once, one finds it.
SELECT code_id, digest, expires_at FROM one_time_codes
WHERE tenant_id = :tenant_id AND user_id = :user_id AND act = :act AND target = :target AND used_at IS NULL AND expires_at > :now
ORDER BY code_id FOR UPDATE

-- name: use_code
UPDATE one_time_codes SET used_seq = :seq, used_at = :at, used_txid = :txid::xid8
WHERE tenant_id = :tenant_id AND code_id = :code_id AND used_at IS NULL AND expires_at > :at
