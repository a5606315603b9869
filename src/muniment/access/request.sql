-- Idempotent requests: claimed once, with the answer kept.

-- name: claim
-- In the transaction of the verb. The second of two violates the primary key, and nothing is written.
INSERT INTO requests (tenant_id, principal, key, fingerprint, at)
VALUES (:tenant_id, :principal, :key, :fingerprint, :now)

-- name: one
SELECT fingerprint, status, answer FROM requests WHERE tenant_id = :tenant_id AND principal = :principal AND key = :key

-- name: keep
-- Once, and not if an erasure came after the claim.
UPDATE requests SET status = :status, answer = :answer
WHERE tenant_id = :tenant_id AND principal = :principal AND key = :key AND status IS NULL AND NOT closed

-- name: close
-- Delete all kept answers, and keep none for requests in progress, except that of the erasure itself.
UPDATE requests SET answer = NULL, closed = true WHERE tenant_id = :tenant_id AND key <> :own AND NOT closed

-- name: outlived
DELETE FROM requests WHERE tenant_id = :tenant_id AND at < :before
