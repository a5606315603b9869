-- Requests under a caller's own key: made once, and what was answered.

-- name: claim
-- In the transaction of what was asked for. The second of two meets the primary key, and does nothing.
INSERT INTO requests (tenant_id, principal, key, fingerprint, at)
VALUES (:tenant_id, :principal, :key, :fingerprint, :now)

-- name: one
SELECT fingerprint, status, answer FROM requests WHERE tenant_id = :tenant_id AND principal = :principal AND key = :key

-- name: keep
-- Once, and not where an erasure came after the claim.
UPDATE requests SET status = :status, answer = :answer
WHERE tenant_id = :tenant_id AND principal = :principal AND key = :key AND status IS NULL AND NOT closed

-- name: close
-- No answer of before is given again, and none that is still on its way is kept; but that of the erasure itself.
UPDATE requests SET answer = NULL, closed = true WHERE tenant_id = :tenant_id AND key <> :own AND NOT closed

-- name: outlived
DELETE FROM requests WHERE tenant_id = :tenant_id AND at < :before
