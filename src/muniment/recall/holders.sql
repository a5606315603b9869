-- The processes that hold an index of a tenant's memories in memory: their leases, and the number up to which each has confirmed
-- that it dropped what ended, so that a purge can wait for them.

-- name: durable
-- The row of a process must survive a crash of the server; the other writes of this login need not.
SET LOCAL synchronous_commit = on

-- name: hold
-- Add the row of a process, at the tenant's visibility number, with a lease of so many seconds; none for a tenant without a number.
INSERT INTO index_holders (tenant_id, holder_id, confirmed_seq, leased_until)
SELECT latest.tenant_id, :holder_id, latest.visible_seq, statement_timestamp() + make_interval(secs => :lease)
FROM (
  SELECT t.tenant_id, t.visible_seq FROM ticks t
  WHERE t.tenant_id = :tenant_id AND t.visible_seq IS NOT NULL
  ORDER BY t.visible_seq DESC LIMIT 1) latest
ON CONFLICT (tenant_id, holder_id) DO UPDATE SET confirmed_seq = excluded.confirmed_seq, leased_until = excluded.leased_until

-- name: marks
-- The marks of earlier visibility numbers. After a restore they are other marks, or there are none.
SELECT t.visible_seq, t.mark::text AS mark FROM ticks t WHERE t.tenant_id = :tenant_id AND t.visible_seq = ANY (:numbers)

-- name: confirm
-- Confirm a number and renew the lease. If the lease has run out no row changes, and the process drops what it holds.
UPDATE index_holders SET confirmed_seq = :visible_seq, leased_until = statement_timestamp() + make_interval(secs => :lease)
WHERE tenant_id = :tenant_id AND holder_id = :holder_id AND leased_until > statement_timestamp()

-- name: release
DELETE FROM index_holders WHERE tenant_id = :tenant_id AND holder_id = :holder_id

-- name: clean
-- Remove the rows of processes that ended without doing so themselves.
DELETE FROM index_holders WHERE tenant_id = :tenant_id AND leased_until < statement_timestamp() - interval '1 hour'
