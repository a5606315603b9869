-- Stage 4, promote: the only insert into promoted memory.

-- name: lock_subject
-- Held against revocation and erasure until the commit.
SELECT holder FROM subjects WHERE tenant_id = :tenant_id AND holder = :holder FOR SHARE

-- name: make_locks
-- each: key
INSERT INTO promotion_locks (tenant_id, key) VALUES (:tenant_id, :key) ON CONFLICT DO NOTHING

-- name: take_locks
-- Sorted, so that two promotions never wait for each other in a ring.
SELECT key FROM promotion_locks WHERE tenant_id = :tenant_id AND key = ANY (:keys) ORDER BY key FOR UPDATE

-- name: live_on_keys
-- Live memories on those keys, what an ended consent hides left out; which of them overlap in scope, and what they say, is decided outside.
SELECT {memory m}
FROM unnest(:entities::text[], :predicates::text[]) AS wanted (entity, predicate)
JOIN memories m ON m.tenant_id = :tenant_id AND m.entity = wanted.entity AND m.predicate = wanted.predicate
JOIN memory_scope f ON f.tenant_id = m.tenant_id AND f.memory_id = m.memory_id
JOIN memory_bodies b ON b.tenant_id = m.tenant_id AND b.memory_id = m.memory_id
JOIN subjects s ON s.tenant_id = m.tenant_id AND s.holder = m.holder
WHERE f.dead_seq IS NULL AND f.expires_at > :now
  AND {consent_allows f}
ORDER BY m.born_seq, m.memory_id

-- name: insert
INSERT INTO memories (tenant_id, memory_id, candidate_id, proposal_id, verdict_id, capture_id, born_seq, promoted_at, born_txid,
  expires_at, class, entity, predicate, classification, sensitive, tier, tier_derived, priority, confidence, trust, holder,
  subject, user_id, session_id, workflow_id, intent_id, qualifiers, decision_key, consent_id, consent_root, pack,
  ontology_version, kind, origin, source, author, editors, approver, approver_kind, captured_at, observed_at)
VALUES (:tenant_id, :memory_id, :candidate_id, :proposal_id, :verdict_id, :capture_id, :seq, :at, :txid,
  coalesce(:expires_at::timestamptz, 'infinity'), :class, :entity, :predicate, :classification, :sensitive, :tier, :tier_derived, :priority, :confidence, :trust, :holder,
  :subject, :user_id, :session_id, :workflow_id, :intent_id, :qualifiers, :decision_key, :consent_id, :consent_root, :pack,
  :ontology_version, :kind, :origin, :source, :author, :editors, :approver, :approver_kind, :captured_at, :observed_at)

-- name: insert_body
INSERT INTO memory_bodies (tenant_id, memory_id, content) VALUES (:tenant_id, :memory_id, :content)

-- name: insert_scope
INSERT INTO memory_scope (tenant_id, user_id, memory_id, born_seq, promoted_at, expires_at, priority, confidence, tier, class,
  classification, session_id, workflow_id, intent_id, entity, predicate, consent_root, qualifiers)
VALUES (:tenant_id, :user_id, :memory_id, :seq, :at, coalesce(:expires_at::timestamptz, 'infinity'), :priority, :confidence, :tier, :class,
  :classification, :session_id, :workflow_id, :intent_id, :entity, :predicate, :consent_root, :qualifiers)

-- name: live
-- Whether a memory is there, and whether it stands.
SELECT memory_id, dead_seq FROM memory_scope WHERE tenant_id = :tenant_id AND memory_id = :memory_id

-- name: lock_live
-- Of two who would retract it at once, the second waits here and then finds nothing.
SELECT memory_id FROM memory_scope
WHERE tenant_id = :tenant_id AND memory_id = :memory_id AND dead_seq IS NULL AND (:expired_too OR expires_at > :now)
FOR UPDATE

-- name: retract
-- A second retraction of the same memory meets the primary key.
INSERT INTO retractions (tenant_id, memory_id, seq, retracted_at, txid, retracted_by, reason, superseded_by)
VALUES (:tenant_id, :memory_id, :seq, :at, :txid, :by, :reason, :superseded_by)

-- name: bury
UPDATE memory_scope SET dead_seq = :seq WHERE tenant_id = :tenant_id AND memory_id = :memory_id AND dead_seq IS NULL

-- name: contradict
INSERT INTO contradictions (tenant_id, contradiction_id, seq, opened_at, entity, predicate, existing, incoming, reason, txid)
VALUES (:tenant_id, :contradiction_id, :seq, :at, :entity, :predicate, :existing, :incoming, 'other_value', :txid)

-- name: contradictions
-- Open while both sides stand: closed by the first retraction or expiry of a side.
SELECT c.*, nullif(least(re.retracted_at, ri.retracted_at,
    CASE WHEN e.expires_at <= :now THEN e.expires_at END, CASE WHEN i.expires_at <= :now THEN i.expires_at END), NULL) AS closed_at
FROM contradictions c
JOIN memory_scope e ON e.tenant_id = c.tenant_id AND e.memory_id = c.existing
JOIN memory_scope i ON i.tenant_id = c.tenant_id AND i.memory_id = c.incoming
LEFT JOIN retractions re ON re.tenant_id = c.tenant_id AND re.memory_id = c.existing
LEFT JOIN retractions ri ON ri.tenant_id = c.tenant_id AND ri.memory_id = c.incoming
WHERE c.tenant_id = :tenant_id
  AND (:memory_id::text IS NULL OR c.existing = :memory_id OR c.incoming = :memory_id)
ORDER BY c.seq, c.contradiction_id
