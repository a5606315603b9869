-- Stage 2, candidate: captures become typed facts, or refusals.

-- name: cursor
SELECT seq, capture_id FROM cursors WHERE tenant_id = :tenant_id AND name = 'consolidate'

-- name: next_captures
-- The captures behind the cursor with the keys of their holders, in the order of their commits; those proposed directly are
-- done already.
SELECT c.*, d.capture_id IS NOT NULL AS done, s.wrapped_key, s.key_version
FROM captures c
LEFT JOIN consolidations d ON d.tenant_id = :tenant_id AND d.capture_id = c.capture_id AND d.number = 1
LEFT JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = c.holder
WHERE c.tenant_id = :tenant_id AND {unread c}
ORDER BY c.seq, c.capture_id
LIMIT :count

-- name: due_again
-- Those to be tried again now, in their order; none whose holder has an earlier one that is not due. A capture that was
-- consolidated before blocks no other: its turn was long ago; one that waits for a model's answer blocks those that do so
-- too. Those come last. Without the captures themselves: mostly there are none, and the join would be planned each time for
-- nothing.
SELECT r.capture_id, r.tries, r.number, r.late
FROM retries r
WHERE r.tenant_id = :tenant_id AND r.parked_at IS NULL AND {its_time r}
  AND NOT EXISTS (
    SELECT FROM retries e WHERE e.tenant_id = :tenant_id AND e.parked_at IS NULL AND NOT {its_time e}
      AND (e.number = 1 OR (e.late IS NOT NULL AND r.late IS NOT NULL))
      AND e.holder = r.holder AND e.holder <> '*' AND (e.seq, e.capture_id) < (r.seq, r.capture_id))
ORDER BY r.late IS NOT NULL, r.seq, r.capture_id
LIMIT :count

-- name: again
-- Captures to be tried again with the keys of their holders, in their order.
SELECT c.*, s.wrapped_key, s.key_version
FROM captures c
LEFT JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = c.holder
WHERE c.tenant_id = :tenant_id AND c.capture_id = ANY (:capture_ids)
ORDER BY c.seq, c.capture_id

-- name: held_up
-- Whose captures wait to be tried again, and whether for a model's answer alone; `until`: the model fails as a whole, and is
-- not asked before.
SELECT r.holder, r.late IS NOT NULL AS late, min(r.next_at) FILTER (WHERE r.late = 'model' AND NOT {its_time r}) AS until
FROM retries r
WHERE r.tenant_id = :tenant_id AND r.parked_at IS NULL AND (r.number = 1 OR r.late IS NOT NULL)
GROUP BY r.holder, r.late IS NOT NULL

-- name: still_again
-- Those of them that no other process finished or parked meanwhile.
SELECT capture_id, late IS NOT NULL AS late FROM retries
WHERE tenant_id = :tenant_id AND capture_id = ANY (:capture_ids) AND parked_at IS NULL

-- name: put_off
-- each: capture_id, seq, holder, tries, next_at, error, parked_at, number, late
INSERT INTO retries (tenant_id, capture_id, seq, holder, tries, next_at, error, parked_at, number, late)
VALUES (:tenant_id, :capture_id, :seq, :holder, :tries, :next_at, :error, :parked_at, :number, :late)
ON CONFLICT (tenant_id, capture_id) DO UPDATE
SET tries = excluded.tries, next_at = excluded.next_at, error = excluded.error, parked_at = excluded.parked_at,
  number = excluded.number, late = excluded.late

-- name: done_again
DELETE FROM retries WHERE tenant_id = :tenant_id AND capture_id = ANY (:capture_ids)

-- name: parked
-- What waits for an operator, oldest first.
SELECT capture_id, tries, error, parked_at FROM retries
WHERE tenant_id = :tenant_id AND parked_at IS NOT NULL AND capture_id > :after ORDER BY capture_id LIMIT :count

-- name: requeue
UPDATE retries SET tries = 0, next_at = :now, parked_at = NULL
WHERE tenant_id = :tenant_id AND parked_at IS NOT NULL AND (:capture_ids::text[] IS NULL OR capture_id = ANY (:capture_ids))
RETURNING capture_id

-- name: backlog
-- How much waits: behind the cursor, to be tried again, parked; since when the oldest does, and when the next can be tried:
-- what waits behind another counts with that one. Also why the answers of a model are waited for.
SELECT
  (SELECT count(*) FROM captures c WHERE c.tenant_id = :tenant_id AND {unread c}) AS behind,
  (SELECT min(c.captured_at) FROM captures c WHERE c.tenant_id = :tenant_id AND {unread c}) AS since,
  (SELECT count(*) FROM retries r WHERE r.tenant_id = :tenant_id AND r.parked_at IS NULL) AS again,
  (SELECT min(r.next_at) FROM retries r WHERE r.tenant_id = :tenant_id AND r.parked_at IS NULL AND {comes_first r}) AS next_at,
  (SELECT count(*) FROM retries r WHERE r.tenant_id = :tenant_id AND r.parked_at IS NOT NULL) AS parked,
  (SELECT r.error FROM retries r WHERE r.tenant_id = :tenant_id AND r.parked_at IS NULL AND r.late IS NOT NULL AND r.error IS NOT NULL
   ORDER BY r.late = 'model' DESC, r.next_at DESC, r.capture_id LIMIT 1) AS model_error

-- name: next_try
-- When the next can be tried again.
SELECT min(r.next_at) AS at FROM retries r WHERE r.tenant_id = :tenant_id AND r.parked_at IS NULL AND {comes_first r}

-- name: answer
SELECT answer, holder FROM extractions WHERE tenant_id = :tenant_id AND capture_id = :capture_id AND extractor = :extractor

-- name: keep_answer
-- The first answer stays.
INSERT INTO extractions (tenant_id, capture_id, extractor, holder, at, answer)
VALUES (:tenant_id, :capture_id, :extractor, :holder, :now, :answer) ON CONFLICT DO NOTHING

-- name: before
-- Of the last captures before a batch: which of them is the last of each session. Few are read, so that an old session that
-- goes on costs no more than a new one.
SELECT DISTINCT ON (b.session_id) b.session_id, b.capture_id
FROM (SELECT c.session_id, c.capture_id, c.seq FROM captures c
      WHERE c.tenant_id = :tenant_id AND (c.seq, c.capture_id) < (:seq, :capture_id)
      ORDER BY c.seq DESC, c.capture_id DESC LIMIT 200) b
WHERE b.session_id = ANY (:sessions)
ORDER BY b.session_id, b.seq DESC, b.capture_id DESC

-- name: still_there
SELECT capture_id FROM captures WHERE tenant_id = :tenant_id AND capture_id = :capture_id AND content <> ''

-- name: spend
-- Count one more call to a model on that day; returns no row where the limit is reached.
INSERT INTO model_calls (tenant_id, extractor, day, calls) VALUES (:tenant_id, :extractor, :day, 1)
ON CONFLICT (tenant_id, extractor, day) DO UPDATE SET calls = model_calls.calls + 1 WHERE model_calls.calls < :most
RETURNING calls

-- name: calibrations
-- The latest of each source.
SELECT DISTINCT ON (source) source, calibration_id, points FROM calibrations
WHERE tenant_id = :tenant_id AND source = ANY (:sources) ORDER BY source, seq DESC

-- name: mark_done
-- each: capture_id, number
INSERT INTO consolidations (tenant_id, capture_id, number, at) VALUES (:tenant_id, :capture_id, :number, :now)

-- name: insert
-- each: candidate_id, capture_id, live_capture_id, capture_seq, author, source, class, entity, predicate, classification, holder, subject, user_id, session_id, workflow_id, intent_id, qualifiers, raw_confidence, confidence, trust, consent_id, extractor, claimed_by, calibration, flags, ordinal, corrects, gates, redactions, exceptions, edits, editor, prior_editors, editors, consolidation, fact, valid_from, valid_until, third_party, fingerprint, language, confined_to, prior_confined_to, content
INSERT INTO candidates (tenant_id, seq,
  candidate_id, capture_id, live_capture_id, capture_seq, author, source, class, entity, predicate, classification, holder, subject,
  user_id, session_id, workflow_id, intent_id, qualifiers, raw_confidence, confidence, trust, consent_id, extractor, claimed_by,
  calibration, flags, ordinal, corrects, gates, redactions, exceptions, edits, editor, prior_editors, editors, consolidation, fact, valid_from, valid_until,
  third_party, fingerprint, language, confined_to, prior_confined_to, content)
VALUES (:tenant_id, :seq,
  :candidate_id, :capture_id, :live_capture_id, :capture_seq, :author, :source, :class, :entity, :predicate, :classification, :holder, :subject,
  :user_id, :session_id, :workflow_id, :intent_id, :qualifiers, :raw_confidence, :confidence, :trust, :consent_id, :extractor, :claimed_by,
  :calibration, :flags, :ordinal, :corrects, :gates, :redactions, :exceptions, :edits, :editor, :prior_editors, :editors, :consolidation, :fact, :valid_from, :valid_until,
  :third_party, :fingerprint, :language, :confined_to, :prior_confined_to, :content)

-- name: ordinals
-- The next free ordinal among the candidates of those captures, for an edit or a duplicate that returns.
SELECT capture_id, max(ordinal) + 1 AS ordinal FROM candidates
WHERE tenant_id = :tenant_id AND capture_id = ANY (:capture_ids)
GROUP BY capture_id

-- name: refuse
-- each: capture_id, consolidation, extractor, ordinal, gate, reason, rejection, language
INSERT INTO refusals (tenant_id, seq, at, capture_id, consolidation, extractor, ordinal, gate, reason, rejection, language)
VALUES (:tenant_id, :seq, :at, :capture_id, :consolidation, :extractor, :ordinal, :gate, :reason, :rejection, :language)

-- name: name
-- The names in the facts of captures.
-- each: capture_id, candidate_id, name
INSERT INTO capture_names (tenant_id, capture_id, candidate_id, name)
VALUES (:tenant_id, :capture_id, :candidate_id, :name) ON CONFLICT DO NOTHING

-- name: name_as_edited
-- An edit has the names of the fact that it changes.
INSERT INTO capture_names AS n (tenant_id, capture_id, candidate_id, name)
SELECT o.tenant_id, o.capture_id, :candidate_id, o.name FROM capture_names o
WHERE o.tenant_id = :tenant_id AND o.capture_id = :capture_id AND o.candidate_id = :edits
ON CONFLICT DO NOTHING

-- name: name_as_corrected
-- A correction has the names of the memory that it corrects.
INSERT INTO capture_names AS n (tenant_id, capture_id, candidate_id, name)
SELECT o.tenant_id, :capture_id, :candidate_id, o.name
FROM memories m
JOIN capture_names o ON o.tenant_id = :tenant_id AND o.capture_id = m.capture_id AND o.candidate_id = m.candidate_id
WHERE m.tenant_id = :tenant_id AND m.memory_id = :corrects
ON CONFLICT DO NOTHING

-- name: refusals
-- Those of the last consolidation first.
SELECT capture_id, gate, reason, at, rejection FROM refusals
WHERE tenant_id = :tenant_id AND capture_id = :capture_id ORDER BY consolidation DESC, ordinal

-- name: facts_of
-- The facts proposed from those captures before, without edits and copies; a row from before the digests has none.
SELECT capture_id, holder, fact, extractor, ordinal FROM candidates
WHERE tenant_id = :tenant_id AND capture_id = ANY (:capture_ids) AND edits IS NULL

-- name: any_rejected
-- Whether anything was ever rejected.
SELECT FROM rejection_marks WHERE tenant_id = :tenant_id LIMIT 1

-- name: rejected
-- Rejections for those users or for all that share a mark, those that share most first; what was lifted, or is too old,
-- left out. What was undone, and what a person had forgotten, counts like a rejection (PRO-8, SUB-3).
SELECT r.proposal_id, {candidate c}, s.wrapped_key, s.key_version
FROM (
  SELECT k.proposal_id, count(*) AS shared
  FROM rejection_marks k
  JOIN proposals o ON o.tenant_id = :tenant_id AND o.proposal_id = k.proposal_id
  JOIN candidates u ON u.tenant_id = :tenant_id AND u.candidate_id = o.candidate_id AND (u.user_id IS NULL OR u.user_id = ANY (:users))
  WHERE k.tenant_id = :tenant_id AND k.mark = ANY (:marks::bigint[]) AND {not_to_be_kept k}
    AND NOT EXISTS (SELECT FROM verdicts l WHERE l.tenant_id = :tenant_id AND l.proposal_id = k.proposal_id AND l.action = 'lift')
  GROUP BY k.proposal_id ORDER BY shared DESC, k.proposal_id DESC LIMIT :count) r
JOIN proposals p ON p.tenant_id = :tenant_id AND p.proposal_id = r.proposal_id
JOIN candidates c ON c.tenant_id = :tenant_id AND c.candidate_id = p.candidate_id
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = c.holder
ORDER BY r.shared DESC, r.proposal_id DESC

-- name: remember
-- each: mark
INSERT INTO rejection_marks (tenant_id, mark, proposal_id) VALUES (:tenant_id, :mark, :proposal_id) ON CONFLICT DO NOTHING

-- name: language
-- The version of the language package that reads the tenant's texts; none is recorded in a tenant from before versions were.
SELECT version FROM language_versions WHERE tenant_id = :tenant_id ORDER BY seq DESC LIMIT 1

-- name: adopt_language
INSERT INTO language_versions (tenant_id, seq, version, adopted_at, adopted_by, txid)
VALUES (:tenant_id, :seq, :version, :at, :by, :txid)
