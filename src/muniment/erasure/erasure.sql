-- Erasure: everything about a person, or one fact, is deleted, at once and for good.

-- name: hold_off
-- Locked by transactions that write what they read before: erasures wait for them.
SELECT key FROM promotion_locks WHERE tenant_id = :tenant_id AND key = 'erasure' FOR SHARE

-- name: hold
-- Locked by an erasure: it waits for those transactions, and they for it.
SELECT key FROM promotion_locks WHERE tenant_id = :tenant_id AND key = 'erasure' FOR UPDATE

-- name: lock_holders
-- Locks against promotions, grants and revocations of the subject; in one order for all.
SELECT holder FROM subjects WHERE tenant_id = :tenant_id AND holder = ANY (:holders) ORDER BY holder FOR UPDATE

-- name: after
-- The erasures after a sequence number, to be compared with what was read before.
SELECT seq, names FROM erasures WHERE tenant_id = :tenant_id AND seq > :seq

-- name: reached_candidates
-- The candidates that an erasure after them covers.
SELECT DISTINCT c.candidate_id
FROM candidates c
JOIN erasures e ON e.tenant_id = :tenant_id AND e.seq > c.seq AND {covered_fact c}
WHERE c.tenant_id = :tenant_id AND c.candidate_id = ANY (:candidate_ids)

-- name: blank_late
-- plan: each time
-- Blank captures whose facts were found to name somebody whom a later erasure covers.
SELECT erase_late(:tenant_id::text COLLATE "C", :capture_ids) AS captures

-- name: unread
-- How many captures from before an erasure that waits for its purge were not read yet: whom they name is not known.
SELECT count(*) AS captures FROM captures c
WHERE c.tenant_id = :tenant_id AND c.content <> '' AND NOT {settled_reading c}
  AND c.seq < (SELECT max(e.seq) FROM erasures e WHERE e.tenant_id = :tenant_id AND e.purged_at IS NULL)

-- name: memories
-- Promoted memories that the erasure concerns and that still have content.
SELECT m.memory_id, m.session_id, m.tier
FROM memories m
JOIN memory_scope f ON f.tenant_id = :tenant_id AND f.memory_id = m.memory_id AND f.tomb_seq IS NULL
CROSS JOIN (SELECT :names::text[] AS names, :facts::text[] AS facts, :captures::text[] AS captures) e
WHERE m.tenant_id = :tenant_id AND {covered_fact m}
ORDER BY m.memory_id

-- name: memory
SELECT session_id, tier FROM memories WHERE tenant_id = :tenant_id AND memory_id = :memory_id

-- name: retraction
SELECT memory_id, seq, retracted_at, retracted_by, reason, superseded_by FROM retractions
WHERE tenant_id = :tenant_id AND memory_id = :memory_id

-- name: proposals
-- Proposals that the erasure concerns without a final verdict.
SELECT p.proposal_id, p.pack, c.holder
FROM candidates c
JOIN proposals p ON p.tenant_id = :tenant_id AND p.candidate_id = c.candidate_id
CROSS JOIN (SELECT :names::text[] AS names, :facts::text[] AS facts, :captures::text[] AS captures) e
WHERE c.tenant_id = :tenant_id AND {covered_fact c} AND {undecided p}
ORDER BY p.proposal_id

-- name: consents
-- Consents of the person that nothing superseded.
SELECT c.consent_id FROM consents c
WHERE c.tenant_id = :tenant_id AND c.subject = ANY (:names) AND c.action = 'grant'
  AND NOT EXISTS (SELECT FROM consents n WHERE n.tenant_id = :tenant_id AND n.supersedes = c.consent_id)
ORDER BY c.consent_id

-- name: record
INSERT INTO erasures (tenant_id, erasure_id, seq, erased_at, txid, by, subject, user_id, holders, names, memories, fact_id, facts,
  captures, requested_by)
VALUES (:tenant_id, :erasure_id, :seq, :at, :txid, :by, :subject, :user_id, :holders, :names, :memories, :fact_id, :facts,
  :captures, :requested_by)

-- name: erase_content
-- plan: each time
SELECT erase_content(:tenant_id::text COLLATE "C", :erasure_id)

-- name: list
-- The receipts, the latest first, each with what was erased; from a place on, of a range of time, or one of them.
SELECT e.tenant_id, e.erasure_id, e.seq, e.erased_at, e.by, e.subject, e.user_id, e.holders, e.memories, e.purged_at,
  e.fact_id, e.facts, e.captures, e.requested_by,
  CASE WHEN e.purged_at IS NULL THEN (SELECT j.error FROM job_runs j WHERE j.tenant_id = :tenant_id AND j.job = 'purge') END AS purge_waits,
  (SELECT max(s.at) FROM name_searches s WHERE s.tenant_id = :tenant_id AND s.erasure_id = e.erasure_id AND s.finished) AS name_search,
  (SELECT jsonb_object_agg(r.what, r.rows) FROM erased_rows r WHERE r.tenant_id = :tenant_id AND r.erasure_id = e.erasure_id) AS rows
FROM erasures e
WHERE e.tenant_id = :tenant_id AND (:erasure_id::text IS NULL OR e.erasure_id = :erasure_id)
  AND (e.seq, e.erasure_id) < (:seq::bigint, :after)
  AND (:since::timestamptz IS NULL OR e.erased_at >= :since) AND (:until::timestamptz IS NULL OR e.erased_at < :until)
ORDER BY e.seq DESC, e.erasure_id DESC LIMIT :count

-- name: place
SELECT seq FROM erasures WHERE tenant_id = :tenant_id AND erasure_id = :after

-- name: unpurged
-- The erasures that wait for their purge.
SELECT erasure_id, seq FROM erasures WHERE tenant_id = :tenant_id AND purged_at IS NULL ORDER BY seq

-- name: unconfirmed
-- How many processes may hold vectors and words of what those erasures removed in memory.
SELECT count(*) AS processes FROM index_holders h
WHERE h.tenant_id = :tenant_id AND h.leased_until > statement_timestamp()
  AND h.confirmed_seq < (SELECT max(e.seq) FROM erasures e WHERE e.tenant_id = :tenant_id AND e.erasure_id = ANY (:erasure_ids))

-- name: purged
UPDATE erasures SET purged_at = greatest(:now::timestamptz, erased_at)
WHERE tenant_id = :tenant_id AND erasure_id = ANY (:erasure_ids) AND purged_at IS NULL
RETURNING erasure_id, purged_at

-- name: working
-- The memories of the working tier that those erasures deleted, by session.
SELECT m.session_id, array_agg(m.memory_id) AS memory_ids
FROM erasures e
JOIN tombstones t ON t.tenant_id = :tenant_id AND t.seq = e.seq
JOIN memories m ON m.tenant_id = :tenant_id AND m.memory_id = t.memory_id AND m.tier = 'working'
WHERE e.tenant_id = :tenant_id AND e.erasure_id = ANY (:erasure_ids)
GROUP BY m.session_id

-- name: named_fact
-- The candidate of a memory or of a proposal.
SELECT candidate_id FROM memories WHERE tenant_id = :tenant_id AND memory_id = :fact_id
UNION ALL
SELECT candidate_id FROM proposals WHERE tenant_id = :tenant_id AND proposal_id = :fact_id

-- name: same_facts
-- The candidates of the same fact, one step further: what edits it or is edited by it, the proposals that were found to repeat its
-- memory or to look at it again, and what a pack with other names made of it.
WITH known AS MATERIALIZED (
  SELECT p.proposal_id, p.edit_of, p.reopens, p.audits FROM proposals p
  WHERE p.tenant_id = :tenant_id AND p.candidate_id = ANY (:candidate_ids)
), made AS MATERIALIZED (
  SELECT m.memory_id FROM memories m WHERE m.tenant_id = :tenant_id AND m.proposal_id = ANY (ARRAY(SELECT proposal_id FROM known))
), memory_ids AS MATERIALIZED (
  SELECT memory_id FROM made
  UNION SELECT audits FROM known WHERE audits IS NOT NULL
  UNION SELECT v.memory_id FROM verdicts v
    WHERE v.tenant_id = :tenant_id AND v.action = 'duplicate' AND v.proposal_id = ANY (ARRAY(SELECT proposal_id FROM known))
  UNION SELECT r.superseded_by FROM retractions r
    WHERE r.tenant_id = :tenant_id AND r.reason = 'deprecated' AND r.memory_id = ANY (ARRAY(SELECT memory_id FROM made))
  UNION SELECT r.memory_id FROM retractions r
    WHERE r.tenant_id = :tenant_id AND r.reason = 'deprecated' AND r.superseded_by = ANY (ARRAY(SELECT memory_id FROM made))
)
SELECT p.candidate_id FROM proposals p
WHERE p.tenant_id = :tenant_id AND (
  p.proposal_id = ANY (ARRAY(SELECT edit_of FROM known UNION ALL SELECT reopens FROM known))
  OR p.edit_of = ANY (ARRAY(SELECT proposal_id FROM known)) OR p.reopens = ANY (ARRAY(SELECT proposal_id FROM known))
  OR p.audits = ANY (ARRAY(SELECT memory_id FROM memory_ids)))
UNION
SELECT m.candidate_id FROM memories m WHERE m.tenant_id = :tenant_id AND m.memory_id = ANY (ARRAY(SELECT memory_id FROM memory_ids))
UNION
SELECT p.candidate_id FROM verdicts v
JOIN proposals p ON p.tenant_id = :tenant_id AND p.proposal_id = v.proposal_id
WHERE v.tenant_id = :tenant_id AND v.action = 'duplicate' AND v.memory_id = ANY (ARRAY(SELECT memory_id FROM memory_ids))

-- name: facts_of
-- Those candidates, or all of those captures, with what was made of them and their sealed text. What a person erased before has none.
SELECT c.candidate_id, c.capture_id, c.class, c.holder, c.content, p.proposal_id, m.memory_id, s.wrapped_key, s.key_version
FROM candidates c
LEFT JOIN proposals p ON p.tenant_id = :tenant_id AND p.candidate_id = c.candidate_id
LEFT JOIN memories m ON m.tenant_id = :tenant_id AND m.proposal_id = p.proposal_id
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = c.holder
WHERE c.tenant_id = :tenant_id AND (c.candidate_id = ANY (:candidate_ids) OR c.capture_id = ANY (:capture_ids))
ORDER BY c.candidate_id

-- name: unread_captures
-- Those of the captures that are not read yet, or are to be read again.
SELECT c.capture_id FROM captures c
WHERE c.tenant_id = :tenant_id AND c.capture_id = ANY (:capture_ids) AND (NOT {settled_reading c}
  OR EXISTS (SELECT FROM retries r WHERE r.tenant_id = :tenant_id AND r.capture_id = c.capture_id))

-- name: candidates_of
SELECT candidate_id FROM candidates WHERE tenant_id = :tenant_id AND capture_id = ANY (:capture_ids)
