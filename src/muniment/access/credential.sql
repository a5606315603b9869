-- API keys: created, looked up, revoked.

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
-- The principals of live keys.
SELECT DISTINCT principal_id FROM api_keys
WHERE tenant_id = :tenant_id AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > :now)

-- name: find
-- The columns that a presented key is compared with.
SELECT key_id, digest, principal_id, kind, roles, user_id, clearance, tools, channels, packs, expires_at, last_used_at, revoked_at
FROM api_keys WHERE tenant_id = :tenant_id AND key_id = :key_id

-- name: used
-- Recorded once in a while; of two at the same time the second changes nothing.
UPDATE api_keys SET last_used_at = :now
WHERE tenant_id = :tenant_id AND key_id = :key_id AND revoked_at IS NULL AND (last_used_at IS NULL OR last_used_at <= :before)

-- name: page
-- A page of keys, the latest first, from a key on; or one of them. Never the digest.
SELECT tenant_id, key_id, label, principal_id, kind, roles, user_id, clearance, tools, channels, packs, created_at, created_by,
  expires_at, last_used_at, revoked_at, revoked_by
FROM api_keys
WHERE tenant_id = :tenant_id AND (:key_id::text IS NULL OR key_id = :key_id) AND (:after::text IS NULL OR key_id < :after)
ORDER BY key_id DESC LIMIT :count

-- name: lock
-- A key that is not revoked, locked against every other change.
SELECT key_id FROM api_keys WHERE tenant_id = :tenant_id AND key_id = :key_id AND revoked_at IS NULL FOR UPDATE

-- name: revoke
UPDATE api_keys SET revoked_at = :at, revoked_by = :by
WHERE tenant_id = :tenant_id AND key_id = :key_id AND revoked_at IS NULL

-- name: lock_of_user
-- The keys of a user who is being erased, locked against revocations.
SELECT key_id FROM api_keys WHERE tenant_id = :tenant_id AND user_id = :user_id ORDER BY key_id FOR UPDATE

-- name: live_of_user
-- Read under the tenant's tick.
SELECT key_id FROM api_keys WHERE tenant_id = :tenant_id AND user_id = :user_id AND revoked_at IS NULL ORDER BY key_id

-- name: forget_user
UPDATE api_keys
SET user_id = NULL, label = NULL, revoked_at = coalesce(revoked_at, :at), revoked_by = coalesce(revoked_by, :by)
WHERE tenant_id = :tenant_id AND user_id = :user_id
RETURNING key_id
