-- Cursors: how far a tenant's log has been read, by purpose. Sequence numbers follow commits, so nothing can appear
-- behind one.

-- name: open
INSERT INTO cursors (tenant_id, name, seq, capture_id) VALUES (:tenant_id, :cursor, 0, '') ON CONFLICT DO NOTHING

-- name: take
SELECT seq, capture_id AS place, at FROM cursors WHERE tenant_id = :tenant_id AND name = :cursor FOR UPDATE

-- name: move
UPDATE cursors SET seq = :seq, capture_id = :place WHERE tenant_id = :tenant_id AND name = :cursor

-- name: advance
-- Move it, creating it if needed, unless another process has moved it further.
INSERT INTO cursors (tenant_id, name, seq, capture_id) VALUES (:tenant_id, :cursor, :seq, :place)
ON CONFLICT (tenant_id, name) DO UPDATE SET seq = excluded.seq, capture_id = excluded.capture_id
WHERE (cursors.seq, cursors.capture_id) < (excluded.seq, excluded.capture_id)

-- name: move_to
-- Move to a time.
UPDATE cursors SET at = :at WHERE tenant_id = :tenant_id AND name = :cursor
