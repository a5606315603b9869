-- Imports: which items of another system were brought in before, and what became of them.

-- name: known_items
-- The captures of items of one system. The digest is empty where the item was erased since.
SELECT key, capture_id, digest FROM idempotency_keys
WHERE tenant_id = :tenant_id AND principal = :system AND principal_kind = 'import' AND key = ANY (:keys)

-- name: claim_items
-- each: key, capture_id, digest
INSERT INTO idempotency_keys (tenant_id, key, principal, principal_kind, capture_id, digest)
VALUES (:tenant_id, :key, :system, 'import', :capture_id, :digest)

-- name: facts
-- plan: each time
-- The facts of imported captures, without content: the proposal of each and its status, and the memory that it became or repeats.
SELECT n.capture_id, p.proposal_id, p.tier_derived AS tier, n.classification, p.human_reasons,
  (SELECT v.action FROM verdicts v WHERE v.tenant_id = :tenant_id AND v.proposal_id = p.proposal_id
     AND v.action IN ('approve', 'edit', 'reject', 'block', 'duplicate', 'withdraw')) AS decided,
  coalesce((SELECT m.memory_id FROM memories m WHERE m.tenant_id = :tenant_id AND m.proposal_id = p.proposal_id),
    (SELECT v.memory_id FROM verdicts v WHERE v.tenant_id = :tenant_id AND v.proposal_id = p.proposal_id AND v.action = 'duplicate')) AS memory_id
FROM captures c
JOIN candidates n ON n.tenant_id = :tenant_id AND n.capture_id = c.capture_id
JOIN proposals p ON p.tenant_id = :tenant_id AND p.candidate_id = n.candidate_id
WHERE c.tenant_id = :tenant_id AND c.capture_id = ANY (:capture_ids) AND starts_with(c.vouched, 'import:')
ORDER BY n.capture_id, p.seq, p.proposal_id

-- name: refusals
-- plan: each time
-- What gates refused of imported captures, in the last consolidation of each.
SELECT f.capture_id, f.gate, f.reason FROM refusals f
JOIN captures c ON c.tenant_id = :tenant_id AND c.capture_id = f.capture_id
WHERE f.tenant_id = :tenant_id AND f.capture_id = ANY (:capture_ids) AND starts_with(c.vouched, 'import:')
  AND NOT EXISTS (SELECT FROM consolidations d
    WHERE d.tenant_id = :tenant_id AND d.capture_id = f.capture_id AND d.number > f.consolidation)
ORDER BY f.capture_id, f.ordinal

-- name: captures
-- plan: each time
-- Imported captures: whether each was consolidated.
SELECT c.capture_id, EXISTS (SELECT FROM consolidations d WHERE d.tenant_id = :tenant_id AND d.capture_id = c.capture_id) AS read
FROM captures c
WHERE c.tenant_id = :tenant_id AND c.capture_id = ANY (:capture_ids) AND starts_with(c.vouched, 'import:')

-- name: open_proposals
-- plan: each time
-- The open proposals of an import, in the order they came, after one of them.
SELECT p.proposal_id FROM proposals p
WHERE p.tenant_id = :tenant_id AND p.run_id = :import_id AND p.action = 'promote' AND p.proposal_id > :after
  AND NOT EXISTS (SELECT FROM verdicts v WHERE v.tenant_id = :tenant_id AND v.proposal_id = p.proposal_id
    AND v.action IN ('approve', 'edit', 'reject', 'block', 'duplicate', 'withdraw'))
ORDER BY p.proposal_id
LIMIT :count

-- name: state
-- plan: each time
-- The captures of an import: from which system, by whom, when, and how many of them are not consolidated yet.
SELECT count(*) AS captures, min(c.origin) AS origin, min(c.author) AS by, min(c.captured_at) AS first_at, max(c.captured_at) AS last_at,
  count(*) FILTER (WHERE NOT EXISTS (
    SELECT FROM consolidations d WHERE d.tenant_id = :tenant_id AND d.capture_id = c.capture_id)) AS unread
FROM captures c
WHERE c.tenant_id = :tenant_id AND c.run_id = :import_id AND starts_with(c.vouched, 'import:')

-- name: statuses
-- plan: each time
-- The proposals of an import by their last verdict that sets a status, and the refusals.
SELECT fate, count(*) AS facts FROM (
  SELECT coalesce((SELECT v.action FROM verdicts v WHERE v.tenant_id = :tenant_id AND v.proposal_id = p.proposal_id
      AND v.action IN ('approve', 'edit', 'reject', 'block', 'duplicate', 'withdraw', 'hold', 'release')
    ORDER BY v.seq DESC, v.verdict_id DESC LIMIT 1), 'pending') AS fate
  FROM proposals p WHERE p.tenant_id = :tenant_id AND p.run_id = :import_id
  UNION ALL
  SELECT 'refused' FROM refusals f
  JOIN captures c ON c.tenant_id = :tenant_id AND c.capture_id = f.capture_id
  WHERE f.tenant_id = :tenant_id AND c.run_id = :import_id AND starts_with(c.vouched, 'import:')) found
GROUP BY fate
