-- The processes that hold an index of a tenant's memories: what they drop and confirm, so that a purge can wait for them.

-- name: durable
-- The row of a process must survive a crash of the server; the other writes of this login need not.
SET LOCAL synchronous_commit = on

-- name: hold
INSERT INTO index_holders (tenant_id, holder_id, confirmed_seq, leased_until)
VALUES (:tenant_id, :holder_id, :visible_seq, statement_timestamp() + make_interval(secs => :lease))
ON CONFLICT (tenant_id, holder_id) DO UPDATE SET confirmed_seq = excluded.confirmed_seq, leased_until = excluded.leased_until

-- name: marks
-- The marks of earlier visibility numbers: others, or none, if the database was restored since.
SELECT t.visible_seq, t.mark::text AS mark FROM ticks t WHERE t.tenant_id = :tenant_id AND t.visible_seq = ANY (:numbers)

-- name: confirm
-- Nothing is changed if the lease has run out: then the process drops what it holds.
UPDATE index_holders SET confirmed_seq = :visible_seq, leased_until = statement_timestamp() + make_interval(secs => :lease)
WHERE tenant_id = :tenant_id AND holder_id = :holder_id AND leased_until > statement_timestamp()

-- name: release
DELETE FROM index_holders WHERE tenant_id = :tenant_id AND holder_id = :holder_id

-- name: clean
-- Rows of processes that ended without removing them.
DELETE FROM index_holders WHERE tenant_id = :tenant_id AND leased_until < statement_timestamp() - interval '1 hour'
