-- Backfill: live memories follow a later ontology and new aliases.

-- name: order
INSERT INTO backfills (tenant_id, backfill_id, seq, ordered_at, txid, ordered_by, pack, ontology_version, from_versions)
VALUES (:tenant_id, :backfill_id, :seq, :at, :txid, :by, :pack, :ontology_version, :from_versions)

-- name: take
-- The order in progress; of two processes the second waits here, and goes on where the first has come.
SELECT * FROM backfills WHERE tenant_id = :tenant_id AND finished_at IS NULL FOR UPDATE

-- name: under_way
SELECT backfill_id FROM backfills WHERE tenant_id = :tenant_id AND finished_at IS NULL

-- name: next
-- Live memories in the order of their promotion, from a place up to a sequence number: of those predicates, promoted under
-- another ontology by a pack that was registered before this one; or about an entity or a subject whose namespace is an alias.
-- What rests on a consent keeps its subject, which is the consent's.
SELECT {memory m}
FROM memories m
JOIN memory_scope f ON f.tenant_id = :tenant_id AND f.memory_id = m.memory_id
JOIN memory_bodies b ON b.tenant_id = :tenant_id AND b.memory_id = m.memory_id
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = m.holder
JOIN packs p ON p.tenant_id = :tenant_id AND p.pack = m.pack
WHERE m.tenant_id = :tenant_id
  AND ((m.predicate = ANY (:predicates) AND m.ontology_version <> :ontology_version
      AND p.seq < (SELECT n.seq FROM packs n WHERE n.tenant_id = :tenant_id AND n.pack = :pack))
    OR split_part(m.entity, ':', 1) = ANY (:aliases::text[])
    OR (m.consent_id IS NULL AND split_part(m.subject, ':', 1) = ANY (:aliases::text[])))
  AND f.dead_seq IS NULL AND f.expires_at > :now
  AND (m.born_seq, m.memory_id) > (:place_seq, :place) AND m.born_seq <= :seq
ORDER BY m.born_seq, m.memory_id
LIMIT :count

-- name: move
UPDATE backfills SET place_seq = :place_seq, place = :place
WHERE tenant_id = :tenant_id AND backfill_id = :backfill_id AND finished_at IS NULL

-- name: item
INSERT INTO backfill_items (tenant_id, backfill_id, memory_id, change, outcome, reason, proposal_id, became, at)
VALUES (:tenant_id, :backfill_id, :memory_id, :change, :outcome, :reason, :proposal_id, :became, :now)

-- name: finish
UPDATE backfills SET finished_at = :now WHERE tenant_id = :tenant_id AND backfill_id = :backfill_id AND finished_at IS NULL

-- name: list
-- The orders, the latest first, each with what became of its memories; from a place on, or one of them.
SELECT o.backfill_id, o.pack, o.ontology_version, o.from_versions, o.ordered_by, o.ordered_at, o.finished_at, coalesce((
    SELECT jsonb_object_agg(i.outcome, i.number) FROM (
      SELECT x.outcome, count(*) AS number FROM backfill_items x
      WHERE x.tenant_id = :tenant_id AND x.backfill_id = o.backfill_id GROUP BY x.outcome) i), '{}') AS done
FROM backfills o
WHERE o.tenant_id = :tenant_id AND (:backfill_id::text IS NULL OR o.backfill_id = :backfill_id)
  AND (o.seq, o.backfill_id) < (:seq::bigint, :after)
ORDER BY o.seq DESC, o.backfill_id DESC
LIMIT :count

-- name: place
SELECT seq FROM backfills WHERE tenant_id = :tenant_id AND backfill_id = :after

-- name: left
-- The memories that were left, of some orders.
SELECT backfill_id, memory_id, change, outcome, reason, proposal_id, became
FROM backfill_items
WHERE tenant_id = :tenant_id AND backfill_id = ANY (:backfill_ids) AND outcome IN ('left', 'refused', 'held')
ORDER BY backfill_id, memory_id
LIMIT :count
