-- Stage 4, promote: the only insert into promoted memory.

-- name: lock_subjects
-- Lock subjects against revocation and erasure until the commit, in one order for all.
SELECT holder FROM subjects WHERE tenant_id = :tenant_id AND holder = ANY (:holders) ORDER BY holder FOR SHARE

-- name: make_locks
-- each: key
INSERT INTO promotion_locks (tenant_id, key) VALUES (:tenant_id, :key) ON CONFLICT DO NOTHING

-- name: take_lock
-- Promotions of one scope pass one after the other.
SELECT key FROM promotion_locks WHERE tenant_id = :tenant_id AND key = :key FOR UPDATE

-- name: take_locks
-- Several, in one order for all.
SELECT key FROM promotion_locks WHERE tenant_id = :tenant_id AND key = ANY (:keys) ORDER BY key FOR UPDATE

-- name: locks
-- Which of these locks there are; none is ever deleted.
SELECT key FROM promotion_locks WHERE tenant_id = :tenant_id AND key = ANY (:keys)

-- name: share_lock
-- Promotions for two users pass at once, and never beside one for all users.
SELECT key FROM promotion_locks WHERE tenant_id = :tenant_id AND key = :key FOR SHARE

-- name: insert
-- rank: 2
-- each: memory_id, candidate_id, proposal_id, verdict_id, capture_id, seq, at, expires_at, class, entity, predicate, classification, sensitive, tier, tier_derived, priority, confidence, trust, holder, subject, user_id, session_id, workflow_id, intent_id, qualifiers, decision_key, consent_id, consent_root, pack, ontology_version, kind, origin, vouched, source, author, editors, approver, approver_kind, captured_at, observed_at, valid_from, valid_until, third_party, confirm_floor, corrects, proposal_action
INSERT INTO memories (tenant_id, memory_id, candidate_id, proposal_id, verdict_id, capture_id, born_seq, promoted_at, born_txid,
  expires_at, class, entity, predicate, classification, sensitive, tier, tier_derived, priority, confidence, trust, holder,
  subject, user_id, session_id, workflow_id, intent_id, qualifiers, decision_key, consent_id, consent_root, pack,
  ontology_version, kind, origin, vouched, source, author, editors, approver, approver_kind, captured_at, observed_at,
  valid_from, valid_until, third_party, confirm_floor, corrects, proposal_action)
VALUES (:tenant_id, :memory_id, :candidate_id, :proposal_id, :verdict_id, :capture_id, :seq, :at, :txid,
  coalesce(:expires_at::timestamptz, 'infinity'), :class, :entity, :predicate, :classification, :sensitive, :tier, :tier_derived, :priority, :confidence, :trust, :holder,
  :subject, :user_id, :session_id, :workflow_id, :intent_id, :qualifiers, :decision_key, :consent_id, :consent_root, :pack,
  :ontology_version, :kind, :origin, :vouched, :source, :author, :editors, :approver, :approver_kind, :captured_at, :observed_at,
  :valid_from, :valid_until, :third_party, :confirm_floor, :corrects, :proposal_action)

-- name: insert_body
-- rank: 3
-- each: memory_id, content
INSERT INTO memory_bodies (tenant_id, memory_id, content) VALUES (:tenant_id, :memory_id, :content)

-- name: insert_scope
-- rank: 4
-- each: user_id, memory_id, seq, at, expires_at, priority, confidence, tier, class, classification, session_id, workflow_id, intent_id, entity, predicate, consent_root, qualifiers, valid_from, valid_until
INSERT INTO memory_scope (tenant_id, user_id, memory_id, born_seq, promoted_at, expires_at, priority, confidence, tier, class,
  classification, session_id, workflow_id, intent_id, entity, predicate, consent_root, qualifiers, valid_from, valid_until)
VALUES (:tenant_id, :user_id, :memory_id, :seq, :at, coalesce(:expires_at::timestamptz, 'infinity'), :priority, :confidence, :tier, :class,
  :classification, :session_id, :workflow_id, :intent_id, :entity, :predicate, :consent_root, :qualifiers, :valid_from, :valid_until)

-- name: is_there
-- Whether there is such a memory, live or not.
SELECT memory_id FROM memory_scope WHERE tenant_id = :tenant_id AND memory_id = :memory_id

-- name: lock_live
-- Of two retractions at once, the second waits here and then finds nothing.
SELECT memory_id FROM memory_scope
WHERE tenant_id = :tenant_id AND memory_id = :memory_id AND dead_seq IS NULL AND (:expired_too OR expires_at > :now)
FOR UPDATE

-- name: retract
-- A second retraction of the same memory violates the primary key.
-- each: memory_id
INSERT INTO retractions (tenant_id, memory_id, seq, retracted_at, txid, retracted_by, reason, superseded_by)
VALUES (:tenant_id, :memory_id, :seq, :at, :txid, :by, :reason, :superseded_by)

-- name: superseded_by
-- What a memory has superseded, the oldest first, with the proposals that those were promoted from.
SELECT m.memory_id, m.proposal_id, m.tier, m.priority, m.sensitive, m.classification, nullif(m.expires_at, 'infinity') AS ends_at, m.approver_kind
FROM retractions r
JOIN memories m ON m.tenant_id = :tenant_id AND m.memory_id = r.memory_id
WHERE r.tenant_id = :tenant_id AND r.superseded_by = :memory_id AND r.reason = 'superseded'
ORDER BY m.born_seq, m.memory_id

-- name: end_session
INSERT INTO session_ends (tenant_id, user_id, session_id, seq, ended_at, txid, ended_by)
VALUES (:tenant_id, :user_id, :session_id, :seq, :at, :txid, :by) ON CONFLICT DO NOTHING

-- name: session_end
SELECT session_id, nullif(user_id, '') AS user_id, seq, ended_at, ended_by FROM session_ends
WHERE tenant_id = :tenant_id AND user_id = :user_id AND session_id = :session_id

-- name: mark_dead
UPDATE memory_scope SET dead_seq = :seq WHERE tenant_id = :tenant_id AND memory_id = ANY (:memory_ids) AND dead_seq IS NULL

