-- Stage 3, review: the queue and the verdicts.

-- name: enqueue
-- each: proposal_id, candidate_id, class, tier_derived, priority, risk, sensitive, consent_check, contradicts, auto_eligible, human_reasons, due_at, pack, edit_of, reopens, run_id, audits
INSERT INTO proposals (tenant_id, seq, enqueued_at,
  proposal_id, candidate_id, class, tier_derived, priority, risk, sensitive, consent_check, contradicts, auto_eligible, human_reasons, due_at, pack, edit_of, reopens, run_id, audits)
VALUES (:tenant_id, :seq, :at,
  :proposal_id, :candidate_id, :class, :tier_derived, :priority, :risk, :sensitive, :consent_check, :contradicts, :auto_eligible, :human_reasons, :due_at, :pack, :edit_of, :reopens, :run_id, :audits)

-- name: lock
-- Two people on one proposal pass one after the other; many proposals are locked in one order for all.
SELECT proposal_id FROM proposals WHERE tenant_id = :tenant_id AND proposal_id = ANY (:proposal_ids) ORDER BY proposal_id FOR UPDATE

-- name: is_there
SELECT proposal_id FROM proposals WHERE tenant_id = :tenant_id AND proposal_id = :proposal_id

-- name: some
-- Proposals with their candidates, by id.
SELECT p.proposal_id, p.seq AS proposal_seq, p.tier_derived, p.priority, p.risk, p.sensitive, p.consent_check,
  p.contradicts, p.auto_eligible, p.human_reasons, p.enqueued_at, p.due_at, p.pack, p.edit_of, p.reopens, p.audits,
  {candidate c}, m.memory_id
FROM proposals p
JOIN candidates c ON c.tenant_id = :tenant_id AND c.candidate_id = p.candidate_id
LEFT JOIN memories m ON m.tenant_id = :tenant_id AND m.proposal_id = p.proposal_id
WHERE p.tenant_id = :tenant_id AND p.proposal_id = ANY (:proposal_ids)

-- name: list
-- plan: each time
-- The queue by due time; with `closed` also the proposals with a final verdict. A proposal is open while no verdict ended
-- it; `held` ones are open too.
SELECT p.proposal_id
FROM proposals p
WHERE p.tenant_id = :tenant_id AND {listed p} AND (:closed OR {undecided p}) AND {narrowed p}
ORDER BY p.due_at, p.proposal_id
LIMIT :count

-- name: list_narrowed
-- plan: each time
-- Open proposals, filtered by columns of other tables, which are read for open proposals only.
WITH open AS MATERIALIZED (
  SELECT p.proposal_id, p.candidate_id, p.due_at, p.human_reasons, p.tier_derived
  FROM proposals p
  WHERE p.tenant_id = :tenant_id AND {listed p} AND {undecided p})
SELECT p.proposal_id FROM open p WHERE {narrowed p} ORDER BY p.due_at, p.proposal_id LIMIT :count

-- name: counts
-- plan: each time
-- Open proposals, counted by class, risk, tier and reason: a row for each; the total has the kind `open`.
WITH open AS MATERIALIZED (
  SELECT p.class, p.risk, p.due_at, p.human_reasons, {tier_of p} AS tier, {held_for p} AS held_for, {assignee_of p} AS assignee
  FROM proposals p
  WHERE p.tenant_id = :tenant_id AND {undecided p})
SELECT 'open' AS kind, '' AS name, count(*) AS count, count(*) FILTER (WHERE due_at <= :now) AS overdue,
  count(*) FILTER (WHERE due_at > :now AND due_at <= :now::timestamptz + interval '1 day') AS soon,
  count(held_for) AS held, count(*) FILTER (WHERE assignee = :asker) AS mine
FROM open
UNION ALL SELECT 'by_class', class, count(*), 0, 0, 0, 0 FROM open GROUP BY class
UNION ALL SELECT 'by_risk', risk, count(*), 0, 0, 0, 0 FROM open GROUP BY risk
UNION ALL SELECT 'by_tier', tier, count(*), 0, 0, 0, 0 FROM open GROUP BY tier
UNION ALL SELECT 'by_reason', reason, count(*), 0, 0, 0, 0
  FROM (SELECT unnest(human_reasons) AS reason FROM open
        UNION ALL SELECT held_for FROM open WHERE held_for <> '' AND NOT held_for = ANY (human_reasons)) reasons
  GROUP BY reason
ORDER BY kind, name

-- name: attend
-- Who returns after a while counts as new.
INSERT INTO attendances (tenant_id, proposal_id, principal, since, at)
VALUES (:tenant_id, :proposal_id, :principal, :now, :now)
ON CONFLICT (tenant_id, proposal_id, principal) DO UPDATE
SET at = :now, since = CASE WHEN attendances.at < :gone THEN :now ELSE attendances.since END

-- name: attending
SELECT principal, since FROM attendances
WHERE tenant_id = :tenant_id AND proposal_id = :proposal_id AND principal <> :principal AND at >= :gone
ORDER BY since, principal

-- name: left
-- Those who are gone.
DELETE FROM attendances WHERE tenant_id = :tenant_id AND at < :gone

-- name: auto_promotable
-- What policy alone may promote and has not yet; nothing that a person has touched, and nothing of a suspended class.
SELECT p.proposal_id
FROM proposals p
WHERE p.tenant_id = :tenant_id AND {policys_own p}
  AND NOT coalesce((SELECT b.open FROM breakers b WHERE b.tenant_id = :tenant_id AND b.write_class = p.class
    ORDER BY b.seq DESC LIMIT 1), false)
  AND coalesce((SELECT v.action FROM verdicts v WHERE v.tenant_id = :tenant_id AND v.proposal_id = p.proposal_id
    ORDER BY v.seq DESC, v.verdict_id DESC LIMIT 1), 'release') = 'release'
ORDER BY p.seq, p.proposal_id
LIMIT :count

-- name: settled
-- How far policy has nothing left to promote, if that lies past the cursor; what waits for room, or is of a suspended
-- class, is left to it. Sequences follow commits, so nothing can appear before that position.
WITH first_left AS MATERIALIZED (
  SELECT p.seq, p.proposal_id FROM proposals p WHERE p.tenant_id = :tenant_id AND {policys_own p}
  ORDER BY p.seq, p.proposal_id LIMIT 1)
SELECT p.seq, p.proposal_id FROM proposals p
WHERE p.tenant_id = :tenant_id AND p.auto_eligible AND {past_settled p}
  AND NOT EXISTS (SELECT FROM first_left f WHERE (f.seq, f.proposal_id) <= (p.seq, p.proposal_id))
ORDER BY p.seq DESC, p.proposal_id DESC
LIMIT 1

-- name: settle
-- Move that cursor past proposals that policy promoted when they were enqueued, if it left none between.
UPDATE cursors u SET seq = :seq, capture_id = :place
WHERE u.tenant_id = :tenant_id AND u.name = 'promote'
  AND NOT EXISTS (SELECT FROM proposals p WHERE p.tenant_id = :tenant_id AND p.auto_eligible AND p.seq < :seq
    AND (p.seq, p.proposal_id) > (u.seq, u.capture_id))

-- name: verdicts
SELECT * FROM verdicts WHERE tenant_id = :tenant_id AND proposal_id = ANY (:proposal_ids) ORDER BY seq, verdict_id

-- name: decide
-- rank: 1
-- each: verdict_id, proposal_id, seq, action, by, by_kind, at, pack, tier, priority, assignee, memory_id, holder, remark, cause
INSERT INTO verdicts (tenant_id, verdict_id, proposal_id, seq, action, by, by_kind, at, pack, tier, priority,
  assignee, memory_id, holder, remark, cause, txid)
VALUES (:tenant_id, :verdict_id, :proposal_id, :seq, :action, :by, :by_kind, :at, :pack, :tier, :priority,
  :assignee, :memory_id, :holder, :remark, :cause, :txid)

-- name: of_capture
-- The proposals that came out of a capture.
SELECT p.proposal_id FROM proposals p
JOIN candidates c ON c.tenant_id = :tenant_id AND c.candidate_id = p.candidate_id
WHERE p.tenant_id = :tenant_id AND c.capture_id = :capture_id
ORDER BY p.seq, p.proposal_id

-- name: duplicates_of
-- The proposals that were set aside as duplicates of a memory and have not come back.
SELECT v.proposal_id FROM verdicts v
WHERE v.tenant_id = :tenant_id AND v.memory_id = :memory_id AND v.action = 'duplicate'
  AND NOT EXISTS (SELECT FROM proposals p WHERE p.tenant_id = :tenant_id AND p.reopens = v.proposal_id)
ORDER BY v.seq, v.proposal_id
