-- Packs: which one is in force, and the history of activations.

-- name: in_force
-- For a reader.
SELECT pack, seq FROM packs_in_force WHERE tenant_id = :tenant_id

-- name: hold_in_force
-- For a writer: the pack stays in force until the commit. It comes with the transaction's id (`tenant.transaction_id`).
SELECT pack, seq, transaction_mark()::text AS txid FROM packs_in_force WHERE tenant_id = :tenant_id FOR SHARE

-- name: take_in_force
-- For a change: everybody who decides under the pack has committed, and nobody begins to.
SELECT pack, seq FROM packs_in_force WHERE tenant_id = :tenant_id FOR UPDATE

-- name: activate
-- Of two activations that follow the same one, one wins.
INSERT INTO pack_activations (tenant_id, seq, pack, activated_at, activated_by, by_kind, registered_by, second_person,
  loosens, reason, previous_seq, previous_pack, txid)
VALUES (:tenant_id, :seq, :pack, :at, :by, :by_kind, :registered_by, :second_person,
  :loosens, :reason, :previous_seq, :previous_pack, :txid)

-- name: put_in_force
INSERT INTO packs_in_force (tenant_id, seq, pack, txid) VALUES (:tenant_id, :seq, :pack, :txid)
ON CONFLICT (tenant_id) DO UPDATE SET seq = excluded.seq, pack = excluded.pack, txid = excluded.txid

-- name: retire
-- Refused by a foreign key while the pack is in force.
UPDATE packs SET retired_at = :at, retired_by = :by
WHERE tenant_id = :tenant_id AND pack = :pack AND retired_at IS NULL

-- name: activations
-- The history, the latest first.
SELECT seq, pack, activated_at, activated_by, by_kind, registered_by, second_person, loosens, reason, previous_pack
FROM pack_activations WHERE tenant_id = :tenant_id AND (:before::bigint IS NULL OR seq < :before)
ORDER BY seq DESC LIMIT :count

-- name: activation_at
-- The activation in force at a time; before the first one, the first.
SELECT seq, pack, activated_at, activated_by, by_kind, registered_by, second_person, loosens, reason, previous_pack
FROM pack_activations WHERE tenant_id = :tenant_id
ORDER BY activated_at > :time::timestamptz, CASE WHEN activated_at > :time::timestamptz THEN seq ELSE -seq END LIMIT 1

-- name: in_force_at
-- The pack in force at a sequence number; before the first activation, the first one's.
SELECT pack FROM pack_activations WHERE tenant_id = :tenant_id
ORDER BY seq > :seq::bigint, CASE WHEN seq > :seq::bigint THEN seq ELSE -seq END LIMIT 1

-- name: in_force_since
-- Every pack that was in force at some time since then.
SELECT DISTINCT a.pack FROM pack_activations a
WHERE a.tenant_id = :tenant_id AND (a.activated_at > :since::timestamptz OR a.seq = (
  SELECT max(b.seq) FROM pack_activations b WHERE b.tenant_id = :tenant_id AND b.activated_at <= :since::timestamptz))

-- name: waiting_under_others
-- Open proposals that were made under another pack: they pass the gates again.
SELECT count(*) AS proposals FROM proposals p
WHERE p.tenant_id = :tenant_id AND p.pack <> :pack AND p.audits IS NULL AND {undecided p}

-- name: would_collect
-- Memories that ended before a horizon and still have content.
SELECT count(*) AS memories FROM memory_scope f
LEFT JOIN retractions r ON r.tenant_id = :tenant_id AND r.memory_id = f.memory_id
WHERE f.tenant_id = :tenant_id AND f.tomb_seq IS NULL
  AND ((f.dead_seq IS NOT NULL AND r.retracted_at < :before) OR f.expires_at < :before)

-- name: would_archive
-- Captures of a kind older than its horizon.
SELECT count(*) AS captures FROM captures c
WHERE c.tenant_id = :tenant_id AND c.kind = :kind AND c.captured_at < :before
