-- Notices: what people want to be told, and how far each of their channels has come.

-- name: add
INSERT INTO notices (
  tenant_id, notice_id, person, channel, roles, classes, kinds, digest, at, time_zone, created_seq, created_at, address, seq, n, digest_at,
  sent_at, seen_at, seen_roles
)
VALUES (
  :tenant_id, :notice_id, :person, :channel, :roles, :classes, :kinds, :digest, :daily_at, :time_zone, :seq, :at, :address, :from_seq, :from_n,
  :digest_at, :sent_at, :seen_at, :seen_roles
)

-- name: every
-- The settings that were not removed: of all, or of one person, the oldest first; or one of them.
SELECT * FROM notices
WHERE tenant_id = :tenant_id AND removed_at IS NULL AND (:person::text IS NULL OR person = :person)
  AND (:notice_id::text IS NULL OR notice_id = :notice_id)
ORDER BY notice_id

-- name: list
-- A page of the settings that were not removed, of all or of one person, the oldest first.
SELECT * FROM notices
WHERE tenant_id = :tenant_id AND removed_at IS NULL AND (:person::text IS NULL OR person = :person)
  AND (created_seq, notice_id) > (:seq::bigint, :after)
ORDER BY created_seq, notice_id
LIMIT :count

-- name: place
-- Also of a setting that was removed: a page can end at it.
SELECT created_seq AS seq FROM notices WHERE tenant_id = :tenant_id AND notice_id = :after

-- name: lock
-- One setting, locked against every other change.
SELECT * FROM notices WHERE tenant_id = :tenant_id AND notice_id = :notice_id AND removed_at IS NULL FOR UPDATE

-- name: lock_channel
-- A person's setting for a channel, locked against every other change.
SELECT * FROM notices WHERE tenant_id = :tenant_id AND person = :person AND channel = :channel AND removed_at IS NULL FOR UPDATE

-- name: remove
-- The address is deleted at once; a process that still sends there has lost its lease.
UPDATE notices SET removed_at = :at, address = NULL, lease = NULL, leased_until = NULL
WHERE tenant_id = :tenant_id AND notice_id = :notice_id

-- name: seen
-- When a person was last here without an API key, in all their settings. What was paused for want of that says so no longer.
UPDATE notices
SET seen_at = :now, seen_roles = :roles,
  last_error = CASE WHEN last_error IN ('not_seen', 'no_valid_key', 'role_missing') THEN NULL ELSE last_error END
WHERE tenant_id = :tenant_id AND person = :person AND removed_at IS NULL

-- name: keys
-- The API keys that a person has and had. A name that looks alike is another's.
SELECT roles, created_at, expires_at, revoked_at FROM api_keys
WHERE tenant_id = :tenant_id AND principal_id = :person AND kind = 'operator'

-- name: due
-- The settings with something to look at, that are neither leased nor waiting for a retry, nor had a message just now. The
-- time of a digest that cannot be the next one is set again.
SELECT notice_id FROM notices
WHERE tenant_id = :tenant_id AND {notice_ready notices}
  AND ((seq, n::int) < (SELECT seq, 32767 FROM tenant_clock WHERE tenant_id = :tenant_id)
    OR digest_at <= :now OR {digest_misplaced notices})
ORDER BY notice_id

-- name: claim
-- One process at a time, until its lease ends.
UPDATE notices SET lease = :lease, leased_until = :until
WHERE tenant_id = :tenant_id AND notice_id = :notice_id AND {notice_ready notices}
RETURNING *

-- name: settle
-- Only by the holder of the lease, and only from the place where it began. The lease ends. The error says why nothing may be sent
-- to the person now.
UPDATE notices
SET seq = :to_seq, n = :to_n, digest_at = :digest_at, sent_at = coalesce(:sent_at, sent_at), tries = 0, next_try_at = NULL,
  last_error = :error, lease = NULL, leased_until = NULL
WHERE tenant_id = :tenant_id AND notice_id = :notice_id AND lease = :lease AND (seq, n::int) = (:seq::bigint, :n::int)

-- name: fail
-- The place stays; the lease ends.
UPDATE notices
SET tries = :tries, next_try_at = :next_try_at, last_error = :error, lease = NULL, leased_until = NULL
WHERE tenant_id = :tenant_id AND notice_id = :notice_id AND lease = :lease

-- name: let_go
UPDATE notices SET lease = NULL, leased_until = NULL
WHERE tenant_id = :tenant_id AND notice_id = :notice_id AND lease = :lease

-- name: tested
-- How a test went. What was accepted lets the rest go at once.
UPDATE notices
SET sent_at = CASE WHEN :error::text IS NULL THEN :now ELSE sent_at END, tries = CASE WHEN :error::text IS NULL THEN 0 ELSE tries END,
  next_try_at = CASE WHEN :error::text IS NULL THEN NULL ELSE next_try_at END, last_error = :error
WHERE tenant_id = :tenant_id AND notice_id = :notice_id AND removed_at IS NULL

-- name: end_of_log
SELECT seq FROM tenant_clock WHERE tenant_id = :tenant_id

-- name: next_time
-- The earliest time at which there is something to do again. Times far ahead count as they do for `notice_ready`.
SELECT min(greatest(CASE WHEN next_try_at <= :now::timestamptz + interval '25 hours' THEN next_try_at END,
  CASE WHEN leased_until <= :now::timestamptz + interval '1 hour' THEN leased_until END,
  CASE WHEN sent_at <= :now THEN sent_at + interval '1 minute' END,
  CASE WHEN (seq, n::int) < (SELECT seq, 32767 FROM tenant_clock WHERE tenant_id = :tenant_id) OR {digest_misplaced notices} THEN :now
    ELSE digest_at END)) AS at
FROM notices
WHERE tenant_id = :tenant_id AND removed_at IS NULL AND channel <> 'browser'
  AND (digest_at IS NOT NULL OR (seq, n::int) < (SELECT seq, 32767 FROM tenant_clock WHERE tenant_id = :tenant_id))

-- name: named
-- Whom verdicts name: in a comment, or as the one they assign the proposal to.
SELECT v.verdict_id, v.mentions, v.assignee, p.class FROM verdicts v
JOIN proposals p ON p.tenant_id = :tenant_id AND p.proposal_id = v.proposal_id
WHERE v.tenant_id = :tenant_id AND v.verdict_id = ANY (:verdict_ids)

-- name: waiting
-- Open proposals by class: how many, overdue, and due before the end of the person's day; those of some classes, or of all.
SELECT p.class, count(*) AS open, count(*) FILTER (WHERE p.due_at <= :now) AS overdue,
  count(*) FILTER (WHERE p.due_at > :now AND p.due_at < :tomorrow) AS due_today
FROM proposals p
WHERE p.tenant_id = :tenant_id AND {undecided p} AND (:classes::text[] = '{}' OR p.class = ANY (:classes))
GROUP BY p.class ORDER BY p.class

-- name: contradictions
SELECT count(*) AS open FROM contradictions c
JOIN memory_scope e ON e.tenant_id = :tenant_id AND e.memory_id = c.existing AND e.dead_seq IS NULL AND e.expires_at > :now
WHERE c.tenant_id = :tenant_id
  AND NOT EXISTS (SELECT FROM resolutions r WHERE r.tenant_id = :tenant_id AND r.contradiction_id = c.contradiction_id)

-- name: erasure_requests
SELECT count(*) AS open FROM erasure_requests WHERE tenant_id = :tenant_id AND answer IS NULL
