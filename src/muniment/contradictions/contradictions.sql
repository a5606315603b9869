-- Contradictions: opened when they are found, ended once.

-- name: insert
-- each: contradiction_id, existing, reason
INSERT INTO contradictions (tenant_id, contradiction_id, seq, opened_at, entity, predicate, existing, proposal_id, reason, txid)
VALUES (:tenant_id, :contradiction_id, :seq, :at, :entity, :predicate, :existing, :proposal_id, :reason, :txid)

-- name: of_proposal
-- The contradictions opened for a proposal before.
SELECT existing FROM contradictions WHERE tenant_id = :tenant_id AND proposal_id = :proposal_id

-- name: touching
-- Those not ended yet that have one of these memories or proposals as a side.
SELECT c.contradiction_id, c.opened_at
FROM contradictions c
LEFT JOIN memories m ON m.tenant_id = :tenant_id AND m.proposal_id = c.proposal_id
WHERE c.tenant_id = :tenant_id
  AND (c.existing = ANY (:memory_ids) OR m.memory_id = ANY (:memory_ids) OR c.proposal_id = ANY (:proposal_ids))
  AND NOT EXISTS (SELECT FROM resolutions r WHERE r.tenant_id = :tenant_id AND r.contradiction_id = c.contradiction_id)
ORDER BY c.contradiction_id

-- name: resolve
-- each: contradiction_id
INSERT INTO resolutions (tenant_id, contradiction_id, seq, resolved_at, txid, resolved_by, outcome)
VALUES (:tenant_id, :contradiction_id, :seq, :at, :txid, :by, :outcome)

-- name: qualify
-- each: memory_id, qualifiers
INSERT INTO qualifications (tenant_id, memory_id, contradiction_id, seq, qualified_at, txid, qualifiers)
VALUES (:tenant_id, :memory_id, :contradiction_id, :seq, :at, :txid, :qualifiers)

-- name: list
-- The oldest first, after a contradiction. One is open until it is ended, or a side is retracted or expires.
SELECT page.* FROM (
  SELECT c.tenant_id, c.contradiction_id, c.seq, c.entity, c.predicate, c.existing, c.proposal_id, i.memory_id AS incoming,
    c.reason, c.opened_at, r.outcome, r.resolved_by,
    coalesce(r.resolved_at, least(re.retracted_at, ri.retracted_at,
      CASE WHEN e.expires_at <= :now THEN e.expires_at END, CASE WHEN i.expires_at <= :now THEN i.expires_at END)) AS closed_at
  FROM contradictions c
  JOIN memories e ON e.tenant_id = :tenant_id AND e.memory_id = c.existing
  LEFT JOIN memories i ON i.tenant_id = :tenant_id AND i.proposal_id = c.proposal_id
  LEFT JOIN resolutions r ON r.tenant_id = :tenant_id AND r.contradiction_id = c.contradiction_id
  LEFT JOIN retractions re ON re.tenant_id = :tenant_id AND re.memory_id = c.existing
  LEFT JOIN retractions ri ON ri.tenant_id = :tenant_id AND ri.memory_id = i.memory_id
  WHERE c.tenant_id = :tenant_id
    AND (:memory_id::text IS NULL OR c.existing = :memory_id OR i.memory_id = :memory_id)
    AND (:proposal_id::text IS NULL OR c.proposal_id = :proposal_id)
    AND (:contradiction_id::text IS NULL OR c.contradiction_id = :contradiction_id)
    AND c.contradiction_id > :after
) page
WHERE :closed OR page.closed_at IS NULL
ORDER BY page.contradiction_id
LIMIT :count
