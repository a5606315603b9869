-- The durable tier: its log is the pipeline's own rows; its index is a projection of them, which can be rebuilt.

-- name: hold
-- Readers go on; new writers wait, and this waits for those that are writing.
LOCK TABLE memory_scope IN SHARE ROW EXCLUSIVE MODE

-- name: projection
-- A digest of each durable memory's index, to compare before with after.
SELECT s.memory_id, md5(concat_ws(' | ', s.*::text,
    (SELECT string_agg(t.*::text, ' ' ORDER BY t.term) FROM memory_terms t WHERE t.tenant_id = :tenant_id AND t.memory_id = s.memory_id),
    (SELECT w.*::text FROM memory_words w WHERE w.tenant_id = :tenant_id AND w.memory_id = s.memory_id),
    (SELECT string_agg(l.*::text, ' ') FROM memory_links l WHERE l.tenant_id = :tenant_id AND l.memory_id = s.memory_id),
    (SELECT string_agg(v.*::text, ' ' ORDER BY v.embedder) FROM memory_vectors v WHERE v.tenant_id = :tenant_id AND v.memory_id = s.memory_id)
  )) AS mark
FROM memory_scope s
WHERE s.tenant_id = :tenant_id AND s.tier = 'durable'

-- name: clear_terms
DELETE FROM memory_terms t USING memories m
WHERE t.tenant_id = :tenant_id AND m.tenant_id = :tenant_id AND m.memory_id = t.memory_id AND m.tier = 'durable'

-- name: clear_words
DELETE FROM memory_words w USING memories m
WHERE w.tenant_id = :tenant_id AND m.tenant_id = :tenant_id AND m.memory_id = w.memory_id AND m.tier = 'durable'

-- name: clear_links
DELETE FROM memory_links l USING memories m
WHERE l.tenant_id = :tenant_id AND m.tenant_id = :tenant_id AND m.memory_id = l.memory_id AND m.tier = 'durable'

-- name: clear_vectors
-- Those of that embedder: another's cannot be rebuilt here.
DELETE FROM memory_vectors v USING memories m
WHERE v.tenant_id = :tenant_id AND m.tenant_id = :tenant_id AND m.memory_id = v.memory_id AND m.tier = 'durable'
  AND v.embedder = :embedder

-- name: clear_scope
DELETE FROM memory_scope s USING memories m
WHERE s.tenant_id = :tenant_id AND m.tenant_id = :tenant_id AND m.memory_id = s.memory_id AND m.tier = 'durable'

-- name: fill_scope
-- From the log: the memories, their retractions, their tombstones.
INSERT INTO memory_scope (tenant_id, user_id, memory_id, born_seq, dead_seq, tomb_seq, tomb_at, promoted_at, expires_at, priority, confidence,
  tier, class, classification, session_id, workflow_id, intent_id, entity, predicate, consent_root, qualifiers, valid_from, valid_until)
SELECT m.tenant_id, m.user_id, m.memory_id, m.born_seq, r.seq, t.seq, t.tombstoned_at, m.promoted_at, m.expires_at, m.priority, m.confidence,
  m.tier, m.class, m.classification, m.session_id, m.workflow_id, m.intent_id, m.entity, m.predicate, m.consent_root, m.qualifiers, m.valid_from, m.valid_until
FROM memories m
LEFT JOIN retractions r ON r.tenant_id = :tenant_id AND r.memory_id = m.memory_id
LEFT JOIN tombstones t ON t.tenant_id = :tenant_id AND t.memory_id = m.memory_id
WHERE m.tenant_id = :tenant_id AND m.tier = 'durable'

-- name: bodies
-- Durable memories with a body, after an id.
SELECT {memory m}
FROM memories m
JOIN memory_bodies b ON b.tenant_id = :tenant_id AND b.memory_id = m.memory_id
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = m.holder
WHERE m.tenant_id = :tenant_id AND m.tier = 'durable' AND m.memory_id > :after
ORDER BY m.memory_id LIMIT :count

-- name: words
-- results: binary
-- The words of the durable memories that have postings, after an id.
SELECT m.memory_id, m.user_id, w.terms
FROM memories m
JOIN memory_words w ON w.tenant_id = :tenant_id AND w.memory_id = m.memory_id
WHERE m.tenant_id = :tenant_id AND m.tier = 'durable' AND m.memory_id > :after AND NOT {after_postings m}
ORDER BY m.memory_id LIMIT :count
