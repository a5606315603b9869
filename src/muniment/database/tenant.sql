-- Tenants: their keys, their clock, their events, their packs.

-- name: add
INSERT INTO tenants (tenant_id, created_at) VALUES (:tenant_id, :now) ON CONFLICT DO NOTHING

-- name: add_clock
INSERT INTO tenant_clock (tenant_id) VALUES (:tenant_id) ON CONFLICT DO NOTHING

-- name: add_key
INSERT INTO tenant_keys (tenant_id, version, wrapped, created_at)
VALUES (:tenant_id, :version, :wrapped, :now) ON CONFLICT DO NOTHING

-- name: keys
SELECT version, wrapped FROM tenant_keys WHERE tenant_id = :tenant_id

-- name: subject_keys
-- The wrapped data keys of holders.
SELECT holder, wrapped_key, key_version FROM subjects WHERE tenant_id = :tenant_id AND holder = ANY (:holders)

-- name: hold_subjects
-- The same for sealing: no erasure destroys the keys before the commit. In one order for all.
SELECT holder, wrapped_key, key_version FROM subjects WHERE tenant_id = :tenant_id AND holder = ANY (:holders)
ORDER BY holder FOR SHARE

-- name: add_subjects
-- each: holder, wrapped_key
INSERT INTO subjects (tenant_id, holder, wrapped_key, key_version, created_at)
VALUES (:tenant_id, :holder, :wrapped_key, :key_version, :now) ON CONFLICT DO NOTHING

-- name: renew_subject
-- plan: each time
SELECT renew_subject(:tenant_id::text COLLATE "C", :holder, :wrapped_key, :key_version)

-- name: outdated_keys
-- Data keys wrapped under an earlier version of the tenant's key, after a holder.
SELECT holder, wrapped_key, key_version FROM subjects
WHERE tenant_id = :tenant_id AND key_version < :version AND wrapped_key IS NOT NULL AND holder > :after
ORDER BY holder LIMIT :count

-- name: rewrap
-- plan: each time
SELECT rewrap_subjects(:tenant_id::text COLLATE "C", :holders, :before, :wrapped, :version)

-- name: drop_keys
-- plan: each time
-- Drop the versions that wrap nothing any more; returns how many earlier ones are still needed.
SELECT drop_tenant_keys(:tenant_id::text COLLATE "C", :version) AS needed

-- name: add_audit_key
-- Of two transactions one inserts the row; the other finds it.
INSERT INTO audit_keys (tenant_id, wrapped, key_version, created_at)
VALUES (:tenant_id, :wrapped, :key_version, :now) ON CONFLICT DO NOTHING

-- name: audit_key
SELECT wrapped, key_version FROM audit_keys WHERE tenant_id = :tenant_id

-- name: audited
-- Whether the tenant has an audit key, for a login that may not read it.
SELECT created_at FROM audit_keys WHERE tenant_id = :tenant_id

-- name: rewrap_audit_key
-- plan: each time
SELECT rewrap_audit_key(:tenant_id::text COLLATE "C", :before, :wrapped, :version)

-- name: clock
SELECT seq, at FROM tenant_clock WHERE tenant_id = :tenant_id

-- name: transaction_id
-- The id of this transaction where the tenant's rows are. It is passed on as a value: a cluster would evaluate the
-- function in an INSERT at its coordinator, which has another. It names the server too: after a restore on another one
-- the ids of transactions repeat (SCL-5).
SELECT transaction_mark()::text AS txid FROM tenant_clock WHERE tenant_id = :tenant_id

-- name: tick
-- The next sequence number. Time never runs backwards, whatever the caller's clock says; no row is returned if it would
-- be further ahead of the database's clock than its owner allows (AUD-5).
UPDATE tenant_clock SET seq = seq + 1, prev_at = at, at = greatest(at, :now)
WHERE tenant_id = :tenant_id
  AND (clock_bound() IS NULL OR greatest(at, :now::timestamptz) <= statement_timestamp() + clock_bound())
RETURNING seq, at, prev_at

-- name: clock_bound
SELECT clock_bound() AS bound FROM tenant_clock WHERE tenant_id = :tenant_id

-- name: clock_state
-- The tenant's clock, the database's own, and how far ahead of it the tenant's may be.
SELECT c.seq, c.at, statement_timestamp() AS database_now, clock_bound() AS bound
FROM tenant_clock c WHERE c.tenant_id = :tenant_id

-- name: set_back
-- The next sequence number at an earlier time, the only step back; `record_reset` has to record it.
UPDATE tenant_clock SET seq = seq + 1, prev_at = at, at = :now
WHERE tenant_id = :tenant_id AND at > :now::timestamptz
  AND (clock_bound() IS NULL OR :now::timestamptz <= statement_timestamp() + clock_bound())
RETURNING seq, at, prev_at

-- name: record_set_back
INSERT INTO ticks (tenant_id, seq, at, prev_seq, prev_at, txid, reset)
VALUES (:tenant_id, :seq, :at, :seq::bigint - 1, :prev_at, :txid, :seq)

-- name: record_reset
INSERT INTO clock_resets (tenant_id, seq, at, prev_at, txid, reset_by, reason)
VALUES (:tenant_id, :seq, :at, :prev_at, :txid, :by, :reason)

-- name: record_tick
INSERT INTO ticks (tenant_id, seq, at, prev_seq, prev_at, txid, visible_seq)
VALUES (:tenant_id, :seq, :at, nullif(:seq::bigint - 1, 0), :prev_at, :txid, :visible_seq)

-- name: events
-- each: n, event_id, type, actor, body, rows
INSERT INTO events (tenant_id, seq, n, event_id, type, at, actor, body, rows, txid)
VALUES (:tenant_id, :seq, :n, :event_id, :type, :at, :actor, :body, :rows, :txid)

-- name: pack
SELECT p.pack, p.digest, p.document, p.registered_at, p.registered_by, p.usable, EXISTS (
  SELECT FROM packs_in_force f WHERE f.tenant_id = :tenant_id AND f.pack = :pack) AS in_force
FROM packs p WHERE p.tenant_id = :tenant_id AND p.pack = :pack

-- name: list_packs
SELECT p.pack, p.digest, p.document, p.registered_at, p.registered_by, p.usable, f.pack IS NOT NULL AS in_force
FROM packs p
LEFT JOIN packs_in_force f ON f.tenant_id = :tenant_id AND f.pack = p.pack
WHERE p.tenant_id = :tenant_id AND (p.seq, p.pack) > (:seq::bigint, :after)
ORDER BY p.seq, p.pack
LIMIT :count

-- name: pack_place
SELECT seq FROM packs WHERE tenant_id = :tenant_id AND pack = :after

-- name: add_pack
-- Of two registrations one wins; the other finds the row.
INSERT INTO packs (tenant_id, pack, pack_id, version, ontology_version, digest, document, seq, registered_at, registered_by)
VALUES (:tenant_id, :pack, :pack_id, :version, :ontology_version, :digest, :document, :seq, :at, :by)

-- name: add_labels
-- each: label, rank, sensitive
INSERT INTO pack_labels (tenant_id, pack, label, rank, sensitive)
VALUES (:tenant_id, :pack, :label, :rank, :sensitive)

-- name: add_confirmation
-- That end users may confirm facts about themselves under the pack (SUB-2).
INSERT INTO pack_confirmations (tenant_id, pack, trust_floor) VALUES (:tenant_id, :pack, :trust_floor)
