-- Stage 2, candidate: captures become typed facts, or refusals.

-- name: open_cursor
INSERT INTO cursors (tenant_id, name, seq, capture_id) VALUES (:tenant_id, 'consolidate', 0, '') ON CONFLICT DO NOTHING

-- name: lock_cursor
-- One consolidator per tenant at a time.
SELECT seq, capture_id FROM cursors WHERE tenant_id = :tenant_id AND name = 'consolidate' FOR UPDATE

-- name: next_captures
-- The captures behind the cursor, in the order of their commits; those proposed directly are done already.
SELECT c.*, d.capture_id IS NOT NULL AS done
FROM captures c
LEFT JOIN consolidations d ON d.tenant_id = c.tenant_id AND d.capture_id = c.capture_id
WHERE c.tenant_id = :tenant_id AND (c.seq, c.capture_id) > (:seq, :capture_id)
ORDER BY c.seq, c.capture_id
LIMIT :count

-- name: move_cursor
UPDATE cursors SET seq = :seq, capture_id = :capture_id WHERE tenant_id = :tenant_id AND name = 'consolidate'

-- name: mark_done
-- each: capture_id
INSERT INTO consolidations (tenant_id, capture_id, at) VALUES (:tenant_id, :capture_id, :now)

-- name: insert
-- each: candidate_id, capture_id, live_capture_id, capture_seq, author, source, class, entity, predicate, classification, holder, subject, user_id, session_id, workflow_id, intent_id, qualifiers, raw_confidence, confidence, trust, consent_id, extractor, ordinal, edits, editor, prior_editors, editors, content
INSERT INTO candidates (tenant_id, seq,
  candidate_id, capture_id, live_capture_id, capture_seq, author, source, class, entity, predicate, classification, holder, subject,
  user_id, session_id, workflow_id, intent_id, qualifiers, raw_confidence, confidence, trust, consent_id, extractor, ordinal,
  edits, editor, prior_editors, editors, content)
VALUES (:tenant_id, :seq,
  :candidate_id, :capture_id, :live_capture_id, :capture_seq, :author, :source, :class, :entity, :predicate, :classification, :holder, :subject,
  :user_id, :session_id, :workflow_id, :intent_id, :qualifiers, :raw_confidence, :confidence, :trust, :consent_id, :extractor, :ordinal,
  :edits, :editor, :prior_editors, :editors, :content)

-- name: refuse
-- each: capture_id, extractor, ordinal, gate, reason
INSERT INTO refusals (tenant_id, seq, at, capture_id, extractor, ordinal, gate, reason)
VALUES (:tenant_id, :seq, :at, :capture_id, :extractor, :ordinal, :gate, :reason)

-- name: refusals
SELECT capture_id, gate, reason, at FROM refusals WHERE tenant_id = :tenant_id AND capture_id = :capture_id ORDER BY ordinal
