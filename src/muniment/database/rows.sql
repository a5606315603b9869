-- Rows compared with the log: which were removed lawfully, whether copies match, what an erasure blanked.

-- name: archived
-- Captures that moved to an archive.
SELECT capture_id AS part FROM archived_captures WHERE tenant_id = :tenant_id AND capture_id = ANY (:parts)

-- name: tombstoned
-- Memories whose content was deleted.
SELECT memory_id AS part FROM tombstones WHERE tenant_id = :tenant_id AND memory_id = ANY (:parts)

-- name: erased_candidates
-- Proposals whose candidate lost its content.
SELECT p.proposal_id AS part FROM proposals p
JOIN candidates c ON c.tenant_id = :tenant_id AND c.candidate_id = p.candidate_id AND c.content = ''
WHERE p.tenant_id = :tenant_id AND p.proposal_id = ANY (:parts)

-- name: odd_scopes
-- Where `memory_scope` differs from the memory, its retraction and its tombstone, of which it is a copy.
SELECT coalesce(f.memory_id, m.memory_id) AS memory_id, f.memory_id IS NOT NULL AS here, m.memory_id IS NOT NULL AS promoted
FROM (SELECT * FROM memories WHERE tenant_id = :tenant_id) m
FULL JOIN (SELECT * FROM memory_scope WHERE tenant_id = :tenant_id) f ON f.memory_id = m.memory_id
LEFT JOIN retractions r ON r.tenant_id = :tenant_id AND r.memory_id = m.memory_id
LEFT JOIN tombstones t ON t.tenant_id = :tenant_id AND t.memory_id = m.memory_id
WHERE (f.memory_id, f.user_id, f.born_seq, f.promoted_at, f.expires_at, f.priority, f.confidence, f.tier, f.class,
    f.classification, f.session_id, f.workflow_id, f.intent_id, f.entity, f.predicate, f.consent_root, f.qualifiers, f.valid_from, f.valid_until,
    f.dead_seq, f.tomb_seq, f.tomb_at)
  IS DISTINCT FROM (m.memory_id, m.user_id, m.born_seq, m.promoted_at, m.expires_at, m.priority, m.confidence, m.tier, m.class,
    m.classification, m.session_id, m.workflow_id, m.intent_id, m.entity, m.predicate, m.consent_root, m.qualifiers, m.valid_from, m.valid_until,
    r.seq, t.seq, t.tombstoned_at)
ORDER BY 1 LIMIT :count

-- name: odd_pack_in_force
-- Where the pack in force is not that of the latest activation.
SELECT f.pack FROM (
  SELECT seq, pack FROM pack_activations WHERE tenant_id = :tenant_id ORDER BY seq DESC LIMIT 1) a
LEFT JOIN packs_in_force f ON f.tenant_id = :tenant_id
WHERE (f.seq, f.pack) IS DISTINCT FROM (a.seq, a.pack)

-- name: blanked
-- plan: each time
-- The rows whose content this transaction has blanked, by form.
SELECT form, id FROM blanked_rows(:tenant_id::text COLLATE "C")

-- name: lists_after
-- The packed lists of rows of the events after a place.
-- results: binary
SELECT seq, n, rows FROM events
WHERE tenant_id = :tenant_id AND (seq, n) > (:seq::bigint, :n::int) AND rows IS NOT NULL ORDER BY seq, n LIMIT :count

-- name: batch_lists
-- The packed lists of rows without an event, of the batches after a number.
-- results: binary
SELECT number, rows, rows_until FROM chain_batches WHERE tenant_id = :tenant_id AND rows IS NOT NULL AND number > :after
ORDER BY number LIMIT :count

-- name: lists_since
-- Those that were sealed since a time.
SELECT rows FROM chain_batches WHERE tenant_id = :tenant_id AND rows IS NOT NULL AND sealed_at >= :since

-- name: swept_until
-- The time up to which rows without an event are listed.
SELECT max(rows_until) AS at FROM chain_batches WHERE tenant_id = :tenant_id

-- name: any_list
SELECT seq FROM events WHERE tenant_id = :tenant_id AND rows IS NOT NULL ORDER BY seq LIMIT 1
