-- What a person stated and corrected, for that person to read.

-- name: statements
-- The statements of a person in their own name, the latest first, after one of them; each with its last proposal and last refusal.
SELECT c.capture_id, c.captured_at, {state_of_capture c} AS state,
  (SELECT p.proposal_id FROM candidates n
   JOIN proposals p ON p.tenant_id = :tenant_id AND p.candidate_id = n.candidate_id
   WHERE n.tenant_id = :tenant_id AND n.capture_id = c.capture_id
   ORDER BY p.seq DESC, p.proposal_id DESC LIMIT 1) AS proposal_id,
  (SELECT ARRAY[f.gate, f.reason] FROM refusals f
   WHERE f.tenant_id = :tenant_id AND f.capture_id = c.capture_id
   ORDER BY f.consolidation DESC, f.ordinal DESC LIMIT 1) AS refused
FROM captures c
WHERE c.tenant_id = :tenant_id AND c.author = :author AND c.source = 'operator' AND c.kind = 'statement' AND c.vouched IS NULL
  AND (c.seq, c.capture_id) < (:seq::bigint, :after)
ORDER BY c.seq DESC, c.capture_id DESC
LIMIT :count

-- name: retractions
-- Why memories were retracted, of those that were.
SELECT memory_id, reason FROM retractions WHERE tenant_id = :tenant_id AND memory_id = ANY (:memory_ids)
