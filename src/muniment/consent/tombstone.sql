-- Tombstones: what is left of memories whose content was removed.

-- name: of_consent
-- The memories that rest on a chain of consents and still have content.
SELECT f.memory_id
FROM memory_scope f
WHERE f.tenant_id = :tenant_id AND f.consent_root = :root_id
  AND NOT EXISTS (SELECT FROM tombstones t WHERE t.tenant_id = :tenant_id AND t.memory_id = f.memory_id)
ORDER BY f.memory_id LIMIT :count

-- name: lock_live
-- Lock those of them that are live until the commit.
SELECT memory_id FROM memory_scope
WHERE tenant_id = :tenant_id AND memory_id = ANY (:memory_ids) AND dead_seq IS NULL
ORDER BY memory_id FOR UPDATE

-- name: digests
-- Digests of the sealed bytes.
SELECT memory_id, sha256(content) AS digest FROM memory_bodies WHERE tenant_id = :tenant_id AND memory_id = ANY (:memory_ids)

-- name: insert
-- each: memory_id, digest
INSERT INTO tombstones (tenant_id, memory_id, seq, tombstoned_at, txid, digest)
VALUES (:tenant_id, :memory_id, :seq, :at, :txid, :digest)

-- name: entomb
UPDATE memory_scope SET tomb_seq = :seq, tomb_at = :at
WHERE tenant_id = :tenant_id AND memory_id = ANY (:memory_ids) AND tomb_seq IS NULL

-- name: delete_bodies
-- Their vectors go with them.
DELETE FROM memory_bodies WHERE tenant_id = :tenant_id AND memory_id = ANY (:memory_ids)

-- name: notify
-- Told to the processes that listen after the commit; those that hold content of the tenant in memory overwrite what ended.
SELECT pg_notify('muniment_removed', :tenant_id)

-- name: count_of_consent
SELECT count(*) AS memories FROM memory_scope f
JOIN tombstones t ON t.tenant_id = :tenant_id AND t.memory_id = f.memory_id
WHERE f.tenant_id = :tenant_id AND f.consent_root = :root_id
