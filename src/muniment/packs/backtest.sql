-- Backtests: read with the auditor's login, in read-only transactions.

-- name: captures
-- The latest captures of a window, the newest first, from a place on. `decided_seq` is the sequence number at which the
-- capture was decided, which says what it was compared with; `queued` is whether anything of it entered the queue.
SELECT c.*, coalesce(d.seq, r.seq, c.seq + 1) AS decided_seq, d.seq IS NOT NULL AS queued
FROM captures c
LEFT JOIN LATERAL (SELECT min(x.seq) AS seq FROM candidates x WHERE x.tenant_id = :tenant_id AND x.capture_id = c.capture_id) d ON true
LEFT JOIN LATERAL (SELECT min(x.seq) AS seq FROM refusals x WHERE x.tenant_id = :tenant_id AND x.capture_id = c.capture_id) r ON true
WHERE c.tenant_id = :tenant_id AND (:since::timestamptz IS NULL OR c.captured_at > :since) AND c.captured_at <= :until
  AND (c.seq, c.capture_id) < (:seq, :capture_id)
ORDER BY c.seq DESC, c.capture_id DESC
LIMIT :count

-- name: answers
-- The stored answers of models about those captures.
SELECT capture_id, extractor, holder, answer FROM extractions
WHERE tenant_id = :tenant_id AND capture_id = ANY (:capture_ids) AND extractor = ANY (:extractors)

-- name: on_keys
-- All memories that ever were on those keys and still have content; the caller checks which were live at the time.
SELECT {memory m}, f.dead_seq AS died_seq, NOT {consent_allows f} AS hidden
FROM unnest(:entities::text[], :predicates::text[]) AS wanted (entity, predicate)
JOIN memories m ON m.tenant_id = :tenant_id AND m.entity = wanted.entity AND m.predicate = wanted.predicate
JOIN memory_scope f ON f.tenant_id = :tenant_id AND f.memory_id = m.memory_id
JOIN memory_bodies b ON b.tenant_id = :tenant_id AND b.memory_id = m.memory_id
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = m.holder
WHERE {consent_may_return f}
ORDER BY m.born_seq, m.memory_id

-- name: vectors
-- All memories that those users (null: anybody) see or once saw, to be compared with a batch at once.
SELECT v.memory_id, f.user_id, f.entity IS NOT NULL AS on_key, {about m} AS about, f.born_seq,
  f.dead_seq AS died_seq, nullif(f.expires_at, 'infinity') AS ends_at, halfvec_send(v.vector) AS vector
FROM memory_vectors v
JOIN memory_scope f ON f.tenant_id = :tenant_id AND f.memory_id = v.memory_id
JOIN memories m ON m.tenant_id = :tenant_id AND m.memory_id = v.memory_id
WHERE v.tenant_id = :tenant_id AND v.embedder = :embedder AND (:users::text[] IS NULL OR f.user_id = ANY (:users))
  AND {consent_may_return f}
LIMIT :count

-- name: recalls
-- The latest recalls of a window, the newest first, without those for a single memory.
SELECT recall_id FROM recalls
WHERE tenant_id = :tenant_id AND (:since::timestamptz IS NULL OR at > :since) AND at <= :until AND (request->>'only') IS NULL
ORDER BY recall_id DESC
LIMIT :count
