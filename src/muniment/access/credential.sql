-- API keys: made, looked up, revoked.

-- name: add
INSERT INTO api_keys (
  tenant_id, key_id, digest, label, principal_id, kind, roles, user_id, clearance, tools, channels, packs, created_at, created_by,
  expires_at
)
VALUES (
  :tenant_id, :key_id, :digest, :label, :principal_id, :kind, :roles, :user_id, :clearance, :tools, :channels, :packs, :at, :by,
  :expires_at
)

-- name: names
-- Whom live keys stand for.
SELECT DISTINCT principal_id FROM api_keys
WHERE tenant_id = :tenant_id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)

-- name: find
-- What is compared with a key that was presented.
SELECT key_id, digest, principal_id, kind, roles, user_id, clearance, tools, channels, packs, expires_at, last_used_at, revoked_at
FROM api_keys WHERE tenant_id = :tenant_id AND key_id = :key_id

-- name: used
-- Once in a while; who comes at the same moment has nothing to write.
UPDATE api_keys SET last_used_at = :now
WHERE tenant_id = :tenant_id AND key_id = :key_id AND revoked_at IS NULL AND (last_used_at IS NULL OR last_used_at <= :before)

-- name: page
-- The latest first, from a key on; one of them when it is named. Never the digest.
SELECT tenant_id, key_id, label, principal_id, kind, roles, user_id, clearance, tools, channels, packs, created_at, created_by,
  expires_at, last_used_at, revoked_at, revoked_by
FROM api_keys
WHERE tenant_id = :tenant_id AND (:key_id::text IS NULL OR key_id = :key_id) AND (:after::text IS NULL OR key_id < :after)
ORDER BY key_id DESC LIMIT :count

-- name: lock
-- One that is not revoked, held against every other change.
SELECT key_id FROM api_keys WHERE tenant_id = :tenant_id AND key_id = :key_id AND revoked_at IS NULL FOR UPDATE

-- name: revoke
UPDATE api_keys SET revoked_at = :at, revoked_by = :by
WHERE tenant_id = :tenant_id AND key_id = :key_id AND revoked_at IS NULL

-- name: lock_of_user
-- Those of a user who is erased, against whoever revokes one.
SELECT key_id FROM api_keys WHERE tenant_id = :tenant_id AND user_id = :user_id ORDER BY key_id FOR UPDATE

-- name: live_of_user
-- Asked under the tenant's clock.
SELECT key_id FROM api_keys WHERE tenant_id = :tenant_id AND user_id = :user_id AND revoked_at IS NULL ORDER BY key_id

-- name: forget_user
UPDATE api_keys
SET user_id = NULL, label = NULL, revoked_at = coalesce(revoked_at, :at), revoked_by = coalesce(revoked_by, :by)
WHERE tenant_id = :tenant_id AND user_id = :user_id
RETURNING key_id
