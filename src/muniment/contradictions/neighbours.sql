-- Neighbours: the live memories that a candidate is compared with, without those whose consent has ended for good. A
-- memory that nobody sees now (`hidden`) can be contradicted, but not repeated.

-- name: on_keys
-- Those on the same keys; which of them overlap in scope, and what they say, is decided outside.
SELECT {memory m}, NOT {consent_allows f} AS hidden
FROM unnest(:entities::text[], :predicates::text[]) AS wanted (entity, predicate)
JOIN memories m ON m.tenant_id = :tenant_id AND m.entity = wanted.entity AND m.predicate = wanted.predicate
JOIN memory_scope f ON f.tenant_id = :tenant_id AND f.memory_id = m.memory_id
JOIN memory_bodies b ON b.tenant_id = :tenant_id AND b.memory_id = m.memory_id
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = m.holder
WHERE f.dead_seq IS NULL AND f.expires_at > :now AND {session_goes_on f}
  AND {consent_may_return f}
ORDER BY m.born_seq, m.memory_id

-- name: near
-- plan: each time
-- The nearest to a text among what those users (null: anybody) see in a large tenant, as far as the distance reaches: by
-- the tenant's vector index, which has the vectors of the built-in embedder.
SELECT {near_columns m}
FROM (
  SELECT v.memory_id, v.vector::halfvec(256) <=> :vector::halfvec(256) AS distance
  FROM memory_vectors v
  JOIN memory_scope f ON f.tenant_id = :tenant_id AND f.memory_id = v.memory_id
  WHERE v.tenant_id = :tenant_id AND v.embedder = :embedder
    AND (:users::text[] IS NULL OR f.user_id = ANY (:users)) AND {near_scope f}
  ORDER BY distance LIMIT :count) near
JOIN memories m ON m.tenant_id = :tenant_id AND m.memory_id = near.memory_id
JOIN memory_scope f ON f.tenant_id = :tenant_id AND f.memory_id = near.memory_id
JOIN memory_bodies b ON b.tenant_id = :tenant_id AND b.memory_id = near.memory_id
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = m.holder
WHERE near.distance <= :reach
ORDER BY near.distance, m.memory_id

-- name: near_exactly
-- The same without an index, by comparing all of them. It is planned once, and written so that the plan is good without
-- statistics too: each table is read by one index scan over the ids. With `OR` in one condition, the users' index would
-- not be used, and each candidate would read the scope of the whole tenant.
WITH nearest AS MATERIALIZED (
  SELECT v.memory_id, v.vector <=> :vector::halfvec AS distance
  FROM memory_vectors v
  WHERE v.tenant_id = :tenant_id AND v.embedder = :embedder
    AND v.memory_id = ANY (ARRAY(
      SELECT f.memory_id FROM memory_scope f WHERE f.user_id = ANY (:users::text[]) AND {near_scope f}
      UNION ALL SELECT f.memory_id FROM memory_scope f WHERE :users::text[] IS NULL AND {near_scope f}))
  ORDER BY distance LIMIT :count
), near AS MATERIALIZED (
  SELECT nearest.* FROM nearest WHERE nearest.distance <= :reach
)
SELECT {near_columns m}
FROM near
JOIN memories m ON m.tenant_id = :tenant_id AND m.memory_id = near.memory_id AND m.memory_id = ANY (ARRAY(SELECT memory_id FROM near))
JOIN memory_scope f ON f.tenant_id = :tenant_id AND f.memory_id = near.memory_id AND f.memory_id = ANY (ARRAY(SELECT memory_id FROM near))
JOIN memory_bodies b ON b.tenant_id = :tenant_id AND b.memory_id = near.memory_id AND b.memory_id = ANY (ARRAY(SELECT memory_id FROM near))
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = m.holder
ORDER BY near.distance, m.memory_id

-- name: vectors
-- results: binary
-- All that those users see, for a batch that is compared in the process.
SELECT v.memory_id, f.user_id, halfvec_send(v.vector) AS vector
FROM memory_vectors v
JOIN memory_scope f ON f.tenant_id = :tenant_id AND f.memory_id = v.memory_id
WHERE v.tenant_id = :tenant_id AND v.embedder = :embedder
  AND (:users::text[] IS NULL OR f.user_id = ANY (:users))
  AND f.dead_seq IS NULL AND f.expires_at > :now AND {session_goes_on f}
  AND {consent_may_return f}
LIMIT :count

-- name: of_capture
-- The live memories of a user that came from a capture.
SELECT m.memory_id
FROM candidates c
JOIN proposals p ON p.tenant_id = :tenant_id AND p.candidate_id = c.candidate_id
JOIN memories m ON m.tenant_id = :tenant_id AND m.proposal_id = p.proposal_id
JOIN memory_scope f ON f.tenant_id = :tenant_id AND f.memory_id = m.memory_id
WHERE c.tenant_id = :tenant_id AND c.capture_id = :capture_id
  AND f.user_id = :user_id AND f.dead_seq IS NULL AND f.expires_at > :now AND {consent_allows f}
ORDER BY m.memory_id

-- name: some
-- Those memories.
SELECT {memory m}, NOT {consent_allows f} AS hidden
FROM memories m
JOIN memory_scope f ON f.tenant_id = :tenant_id AND f.memory_id = m.memory_id
JOIN memory_bodies b ON b.tenant_id = :tenant_id AND b.memory_id = m.memory_id
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = m.holder
WHERE m.tenant_id = :tenant_id AND m.memory_id = ANY (:memory_ids)
