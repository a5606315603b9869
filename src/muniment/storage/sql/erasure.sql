-- Erasure: what is said of a subject goes, at once and for good.

-- name: hold_off
-- Whoever writes anew what was read before holds off erasures until the commit.
SELECT key FROM promotion_locks WHERE tenant_id = :tenant_id AND key = 'erasure' FOR SHARE

-- name: hold
-- An erasure waits for them, and they for it.
SELECT key FROM promotion_locks WHERE tenant_id = :tenant_id AND key = 'erasure' FOR UPDATE

-- name: since
-- Whether anything was erased after a number.
SELECT erasure_id FROM erasures WHERE tenant_id = :tenant_id AND seq > :seq LIMIT 1

-- name: lock_holders
-- Against promotions, grants and revocations of the subject; in one order for all.
SELECT holder FROM subjects WHERE tenant_id = :tenant_id AND holder = ANY (:holders) ORDER BY holder FOR UPDATE

-- name: after
-- What was erased after a number, to be held against what was read before.
SELECT seq, subject, user_id, holders FROM erasures WHERE tenant_id = :tenant_id AND seq > :seq

-- name: memories
-- Promoted memories that concern the subject and still have content.
SELECT m.memory_id, m.session_id, m.tier
FROM memories m
JOIN memory_scope f ON f.tenant_id = :tenant_id AND f.memory_id = m.memory_id AND f.tomb_seq IS NULL
WHERE m.tenant_id = :tenant_id
  AND (m.holder = ANY (:holders) OR m.subject = :subject OR m.entity = :subject OR (m.user_id = :user_id AND m.user_id <> ''))
ORDER BY m.memory_id

-- name: proposals
-- Proposals about the subject that have no final verdict yet.
SELECT p.proposal_id, p.pack, c.holder
FROM candidates c
JOIN proposals p ON p.tenant_id = :tenant_id AND p.candidate_id = c.candidate_id
WHERE c.tenant_id = :tenant_id
  AND (c.holder = ANY (:holders) OR c.subject = :subject OR c.entity = :subject OR c.user_id = :user_id)
  AND {undecided p}
ORDER BY p.proposal_id

-- name: consents
-- Consents of the subject that nothing superseded.
SELECT c.consent_id FROM consents c
WHERE c.tenant_id = :tenant_id AND c.subject = :subject AND c.action = 'grant'
  AND NOT EXISTS (SELECT FROM consents n WHERE n.tenant_id = :tenant_id AND n.supersedes = c.consent_id)
ORDER BY c.consent_id

-- name: record
INSERT INTO erasures (tenant_id, erasure_id, seq, erased_at, txid, by, subject, user_id, holders, memories)
VALUES (:tenant_id, :erasure_id, :seq, :at, :txid, :by, :subject, :user_id, :holders, :memories)

-- name: erase_content
SELECT erase_content(:erasure_id)

-- name: list
-- The receipts, the latest first, each with what it reached; from a place on, or one.
SELECT e.tenant_id, e.erasure_id, e.seq, e.erased_at, e.by, e.subject, e.user_id, e.memories, e.purged_at,
  (SELECT jsonb_object_agg(r.what, r.rows) FROM erased_rows r WHERE r.tenant_id = :tenant_id AND r.erasure_id = e.erasure_id) AS rows
FROM erasures e
WHERE e.tenant_id = :tenant_id AND (:erasure_id::text IS NULL OR e.erasure_id = :erasure_id)
  AND (e.seq, e.erasure_id) < (:seq::bigint, :after)
ORDER BY e.seq DESC, e.erasure_id DESC LIMIT :count

-- name: place
SELECT seq FROM erasures WHERE tenant_id = :tenant_id AND erasure_id = :after

-- name: unpurged
-- What is still to be cleaned from beneath.
SELECT erasure_id, seq, subject, user_id, holders FROM erasures WHERE tenant_id = :tenant_id AND purged_at IS NULL ORDER BY seq

-- name: purged
UPDATE erasures SET purged_at = greatest(:now::timestamptz, erased_at)
WHERE tenant_id = :tenant_id AND erasure_id = ANY (:erasure_ids) AND purged_at IS NULL
RETURNING erasure_id, purged_at

-- name: working
-- Memories of the working tier that those erasures took, by session.
SELECT m.session_id, array_agg(m.memory_id) AS memory_ids
FROM erasures e
JOIN tombstones t ON t.tenant_id = :tenant_id AND t.seq = e.seq
JOIN memories m ON m.tenant_id = :tenant_id AND m.memory_id = t.memory_id AND m.tier = 'working'
WHERE e.tenant_id = :tenant_id AND e.erasure_id = ANY (:erasure_ids)
GROUP BY m.session_id
