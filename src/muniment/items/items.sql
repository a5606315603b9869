-- name: waiting
-- What one author put on these entities, or on any under :under, and asked to delete, that has no final verdict; what policy
-- found to be a duplicate comes with the memory that it repeats. The predicate is written out for the sake of its index.
SELECT p.proposal_id, p.action, p.enqueued_at, v.memory_id
FROM candidates c
JOIN proposals p ON p.tenant_id = :tenant_id AND p.candidate_id = c.candidate_id
LEFT JOIN verdicts v ON v.tenant_id = :tenant_id AND v.proposal_id = p.proposal_id AND v.action = 'duplicate' AND v.by_kind = 'system'
WHERE c.tenant_id = :tenant_id AND c.predicate = 'item' AND c.author = :author AND c.user_id IS NOT DISTINCT FROM :user_id
  AND (c.entity = ANY (:entities::text[]) OR {lies_under c}) AND (v.proposal_id IS NOT NULL OR {undecided p})
ORDER BY p.seq DESC, p.proposal_id DESC LIMIT :count

-- name: namespaces
-- One visible item of each namespace. The digest of a key, with its dot, has 13 characters.
SELECT max(s.memory_id) AS memory_id
FROM memory_scope s
WHERE {visible s} AND {wanted s}
GROUP BY left(s.entity, -13)
ORDER BY 1 LIMIT :count
