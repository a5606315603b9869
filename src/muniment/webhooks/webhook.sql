-- Webhooks: their registration, and the delivery of events to them.

-- name: add
INSERT INTO webhooks (tenant_id, webhook_id, url, types, created_seq, created_at, created_by, secret, seq, n)
VALUES (:tenant_id, :webhook_id, :url, :types, :seq, :at, :by, :secret, :seq, :n)

-- name: every
-- The webhooks that were not removed, the oldest first; or one of them.
SELECT * FROM webhooks
WHERE tenant_id = :tenant_id AND removed_at IS NULL AND (:webhook_id::text IS NULL OR webhook_id = :webhook_id)
ORDER BY webhook_id

-- name: list
-- A page of the webhooks that were not removed, the oldest first.
SELECT * FROM webhooks
WHERE tenant_id = :tenant_id AND removed_at IS NULL AND (created_seq, webhook_id) > (:seq::bigint, :after)
ORDER BY created_seq, webhook_id
LIMIT :count

-- name: place
-- Also of a webhook that was removed: a page can end at it.
SELECT created_seq AS seq FROM webhooks WHERE tenant_id = :tenant_id AND webhook_id = :after

-- name: lock
-- One webhook, locked against every other change.
SELECT * FROM webhooks WHERE tenant_id = :tenant_id AND webhook_id = :webhook_id AND removed_at IS NULL FOR UPDATE

-- name: remove
-- The secrets are deleted at once; a process that still posts to it has lost its lease.
UPDATE webhooks SET removed_at = :at, secret = NULL, old_secret = NULL, old_secret_until = NULL, lease = NULL, leased_until = NULL
WHERE tenant_id = :tenant_id AND webhook_id = :webhook_id

-- name: rotate
UPDATE webhooks SET secret = :secret, old_secret = :old_secret, old_secret_until = :until
WHERE tenant_id = :tenant_id AND webhook_id = :webhook_id

-- name: set_off
-- Go on from this place, now; a process that posts to it has lost its lease.
UPDATE webhooks
SET seq = :seq, n = :n, tries = 0, next_try_at = NULL, parked_at = NULL, last_error = NULL, lease = NULL, leased_until = NULL
WHERE tenant_id = :tenant_id AND webhook_id = :webhook_id

-- name: due
-- The webhooks that have something to post, and are neither leased nor waiting for a retry.
SELECT webhook_id FROM webhooks
WHERE tenant_id = :tenant_id AND removed_at IS NULL AND parked_at IS NULL
  AND (next_try_at IS NULL OR next_try_at <= :now OR next_try_at > :now::timestamptz + interval '25 hours')
  AND (leased_until IS NULL OR leased_until <= :now OR leased_until > :now::timestamptz + interval '1 hour')
  AND (seq, n::int) < (SELECT seq, 32767 FROM tenant_clock WHERE tenant_id = :tenant_id)
ORDER BY webhook_id

-- name: claim
-- One process at a time, until its lease ends.
UPDATE webhooks SET lease = :lease, leased_until = :until
WHERE tenant_id = :tenant_id AND webhook_id = :webhook_id AND removed_at IS NULL AND parked_at IS NULL
  AND (next_try_at IS NULL OR next_try_at <= :now OR next_try_at > :now::timestamptz + interval '25 hours')
  AND (leased_until IS NULL OR leased_until <= :now OR leased_until > :now::timestamptz + interval '1 hour')
RETURNING *

-- name: next_events
SELECT tenant_id, seq, n, event_id, type, at, actor, body FROM events
WHERE tenant_id = :tenant_id AND (seq, n) > (:seq::bigint, :n::int) ORDER BY seq, n LIMIT :count

-- name: advance
-- Only by the holder of the lease, and only from the place where it began.
UPDATE webhooks
SET seq = :to_seq, n = :to_n, tries = 0, next_try_at = NULL, last_error = NULL, leased_until = :until
WHERE tenant_id = :tenant_id AND webhook_id = :webhook_id AND lease = :lease AND (seq, n::int) = (:seq::bigint, :n::int)

-- name: fail
-- The place stays, or moves past events of other types; the lease ends.
UPDATE webhooks
SET seq = :to_seq, n = :to_n, tries = :tries, next_try_at = :next_try_at, last_error = :error, parked_at = :parked_at,
  lease = NULL, leased_until = NULL
WHERE tenant_id = :tenant_id AND webhook_id = :webhook_id AND lease = :lease AND (seq, n::int) = (:seq::bigint, :n::int)

-- name: let_go
UPDATE webhooks SET lease = NULL, leased_until = NULL
WHERE tenant_id = :tenant_id AND webhook_id = :webhook_id AND lease = :lease

-- name: next_time
-- The earliest time at which there is something to do again.
SELECT min(greatest(next_try_at, leased_until)) AS at FROM webhooks
WHERE tenant_id = :tenant_id AND removed_at IS NULL AND parked_at IS NULL
  AND (next_try_at IS NOT NULL OR leased_until IS NOT NULL)
