-- Stage 3, review: the queue and the verdicts.

-- name: enqueue
-- each: proposal_id, candidate_id, class, tier_derived, priority, risk, sensitive, consent_check, contradicts, auto_eligible, human_reasons, due_at, pack, edit_of, reopens, run_id, audits, action, targets
INSERT INTO proposals (tenant_id, seq, enqueued_at,
  proposal_id, candidate_id, class, tier_derived, priority, risk, sensitive, consent_check, contradicts, auto_eligible, human_reasons, due_at, pack, edit_of, reopens, run_id, audits, action, targets)
VALUES (:tenant_id, :seq, :at,
  :proposal_id, :candidate_id, :class, :tier_derived, :priority, :risk, :sensitive, :consent_check, :contradicts, :auto_eligible, :human_reasons, :due_at, :pack, :edit_of, :reopens, :run_id, :audits, :action, :targets)

-- name: propose_again
-- The candidate of a memory that was superseded, once more.
INSERT INTO proposals (tenant_id, seq, enqueued_at,
  proposal_id, candidate_id, class, tier_derived, priority, risk, sensitive, consent_check, contradicts, auto_eligible, human_reasons, due_at, pack, run_id, restores)
VALUES (:tenant_id, :seq, :at,
  :proposal_id, :candidate_id, :class, :tier_derived, :priority, :risk, :sensitive, :consent_check, :contradicts, :auto_eligible, :human_reasons, :due_at, :pack, :run_id, :restores)

-- name: lock
-- Two people on one proposal pass one after the other; many proposals are locked in one order for all. Rows that refer to a
-- proposal can be written meanwhile: whoever writes them has the tenant's clock, which comes after all locks.
SELECT proposal_id FROM proposals WHERE tenant_id = :tenant_id AND proposal_id = ANY (:proposal_ids) ORDER BY proposal_id FOR NO KEY UPDATE

-- name: lock_items
-- The same with the open proposals that say the same as these.
SELECT p.proposal_id FROM proposals p WHERE p.tenant_id = :tenant_id AND {of_items p} ORDER BY p.proposal_id FOR NO KEY UPDATE

-- name: items
-- The ids of proposals with those that say the same, for reading.
SELECT p.proposal_id FROM proposals p WHERE p.tenant_id = :tenant_id AND {of_items p} ORDER BY p.proposal_id

-- name: beside
-- Of these proposals, while they are open: how many say the same and which, the first :count of them in the order they came
-- (REV-11); and which open ones contradict them (REV-12). The plan is made once, perhaps while the tables are small: ids in
-- arrays have it use the indexes also when they have grown.
WITH asked AS MATERIALIZED (
  SELECT p.proposal_id, CASE WHEN p.action = 'promote' THEN c.fingerprint END AS fingerprint
  FROM proposals p
  JOIN candidates c ON c.tenant_id = :tenant_id AND c.candidate_id = p.candidate_id
  WHERE p.tenant_id = :tenant_id AND p.proposal_id = ANY (:proposal_ids) AND {undecided p}),
alike AS MATERIALIZED (
  SELECT c.candidate_id FROM candidates c
  WHERE c.tenant_id = :tenant_id AND c.fingerprint = ANY (ARRAY(SELECT DISTINCT a.fingerprint FROM asked a))),
items AS MATERIALIZED (
  SELECT same.fingerprint, count(*) AS count, (array_agg(q.proposal_id ORDER BY q.seq, q.proposal_id))[1:(:count::int)] AS members
  FROM candidates same
  JOIN proposals q ON q.tenant_id = :tenant_id AND q.candidate_id = same.candidate_id
  WHERE same.tenant_id = :tenant_id AND same.candidate_id = ANY (ARRAY(SELECT candidate_id FROM alike))
    AND q.candidate_id = ANY (ARRAY(SELECT candidate_id FROM alike)) AND {same_item q}
  GROUP BY same.fingerprint HAVING count(*) > 1),
pairs AS MATERIALIZED (
  SELECT k.proposal_id, k.contradicts AS other FROM proposal_contradictions k
  WHERE k.tenant_id = :tenant_id AND k.proposal_id = ANY (:proposal_ids)
  UNION ALL
  SELECT k.contradicts, k.proposal_id FROM proposal_contradictions k
  WHERE k.tenant_id = :tenant_id AND k.contradicts = ANY (:proposal_ids))
SELECT a.proposal_id, i.count, i.members, o.others
FROM asked a
LEFT JOIN items i ON i.fingerprint = a.fingerprint
LEFT JOIN (
  SELECT k.proposal_id, array_agg(k.other ORDER BY q.seq, q.proposal_id) AS others
  FROM pairs k
  JOIN proposals q ON q.tenant_id = :tenant_id AND q.proposal_id = k.other
  WHERE {undecided q} GROUP BY k.proposal_id) o ON o.proposal_id = a.proposal_id
WHERE i.count IS NOT NULL OR o.others IS NOT NULL

-- name: wait
-- each: proposal_id, holder
INSERT INTO waiting_proposals (tenant_id, proposal_id, holder, seq) VALUES (:tenant_id, :proposal_id, :holder, :seq)

-- name: wait_no_more
DELETE FROM waiting_proposals WHERE tenant_id = :tenant_id AND proposal_id = ANY (:proposal_ids)

-- name: waiting_ids
-- Which proposals wait about each of those holders: the latest :each of each.
SELECT w.proposal_id FROM {waiting_about asked}

-- name: waiting_beside
-- Open proposals about each of those holders, the latest :each of each and :most in all, without the :known ones, with the keys of
-- their content. OFFSET 0 keeps the order of the joins: before a table was analysed, each looks as small as the few that wait.
SELECT p.proposal_id, p.tier_derived, {candidate c}, s.wrapped_key, s.key_version
FROM {waiting_about asked}
CROSS JOIN LATERAL (
  SELECT * FROM proposals o WHERE o.tenant_id = :tenant_id AND o.proposal_id = w.proposal_id AND NOT o.proposal_id = ANY (:known) OFFSET 0) p
CROSS JOIN LATERAL (SELECT * FROM candidates o WHERE o.tenant_id = :tenant_id AND o.candidate_id = p.candidate_id OFFSET 0) c
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = c.holder
WHERE p.action = 'promote' AND c.content <> '' AND {undecided p}
ORDER BY p.seq DESC, p.proposal_id DESC
LIMIT :most

-- name: oppose
-- each: proposal_id, contradicts, reason
INSERT INTO proposal_contradictions (tenant_id, proposal_id, contradicts, seq, found_at, txid, reason)
VALUES (:tenant_id, :proposal_id, :contradicts, :seq, :at, :txid, :reason)

-- name: is_there
SELECT proposal_id FROM proposals WHERE tenant_id = :tenant_id AND proposal_id = :proposal_id

-- name: some
-- Proposals with their candidates, by id.
SELECT p.proposal_id, p.seq AS proposal_seq, p.tier_derived, p.priority, p.risk, p.sensitive, p.consent_check,
  p.contradicts, p.auto_eligible, p.human_reasons, p.enqueued_at, p.due_at, p.pack, p.edit_of, p.reopens, p.audits, p.restores,
  p.action, p.targets, {candidate c}, CASE WHEN p.action = 'promote' THEN c.fingerprint END AS item, m.memory_id
FROM proposals p
JOIN candidates c ON c.tenant_id = :tenant_id AND c.candidate_id = p.candidate_id
LEFT JOIN memories m ON m.tenant_id = :tenant_id AND m.proposal_id = p.proposal_id
WHERE p.tenant_id = :tenant_id AND p.proposal_id = ANY (:proposal_ids)

-- name: dangers
-- What to notice in proposals.
SELECT p.proposal_id, {dangers p} AS dangers FROM proposals p WHERE p.tenant_id = :tenant_id AND p.proposal_id = ANY (:proposal_ids)

-- name: list
-- plan: each time
-- The queue by due time; with `closed` also the proposals with a final verdict. A proposal is open while no verdict ended
-- it; `held` ones are open too. Open ones that say the same are listed as one, unless closed ones are listed too.
SELECT p.proposal_id
FROM proposals p
WHERE p.tenant_id = :tenant_id AND {listed p} AND (:closed OR ({undecided p} AND {leads p})) AND {narrowed p} AND {with_danger p}
ORDER BY p.due_at, p.proposal_id
LIMIT :count

-- name: list_narrowed
-- plan: each time
-- Open proposals, filtered by columns of other tables, which are read for open proposals only.
WITH open AS MATERIALIZED (SELECT {open_row p} FROM proposals p WHERE p.tenant_id = :tenant_id AND {listed p} AND {undecided p}),
noticed AS MATERIALIZED ({noticed open}),
placed AS MATERIALIZED ({placed open})
SELECT p.proposal_id FROM placed p WHERE {narrowed p} AND {leads p} ORDER BY p.due_at, p.proposal_id LIMIT :count

-- name: list_ordered
-- plan: each time
-- Open proposals in another order than by due time. OFFSET 0: from the first on, until there are enough.
WITH open AS MATERIALIZED (SELECT {open_row p} FROM {open_proposals p} WHERE {filtered p}),
noticed AS MATERIALIZED ({noticed open}),
placed AS MATERIALIZED ({placed open}),
last AS MATERIALIZED (
  SELECT {place_of_last a} AS place, a.due_at, a.proposal_id FROM proposals a WHERE a.tenant_id = :tenant_id AND a.proposal_id = :after)
SELECT p.proposal_id
FROM (
  SELECT o.* FROM placed o
  WHERE NOT EXISTS (SELECT FROM last l WHERE (o.place, o.due_at, o.proposal_id) <= (l.place, l.due_at, l.proposal_id))
  ORDER BY o.place, o.due_at, o.proposal_id OFFSET 0) p
WHERE {narrowed p} AND {leads p}
ORDER BY p.place, p.due_at, p.proposal_id
LIMIT :count

-- name: list_grouped
-- plan: each time
-- Open proposals group by group, those about nobody last; within a group in the order that is asked for. Groups go by their
-- names, so that a page begins where the one before it ended, whatever was decided meanwhile. OFFSET 0: from the first on, until
-- there are enough.
WITH open AS MATERIALIZED (SELECT {open_row p} FROM {open_proposals p} WHERE {filtered p}),
noticed AS MATERIALIZED ({noticed open}),
placed AS MATERIALIZED ({placed open}),
headings AS MATERIALIZED ({headings_of open}),
last AS MATERIALIZED (
  SELECT {heading h} AS heading, {place_of_last a} AS place, a.due_at, a.proposal_id
  FROM proposals a JOIN candidates h ON h.tenant_id = :tenant_id AND h.candidate_id = a.candidate_id
  WHERE a.tenant_id = :tenant_id AND a.proposal_id = :after)
SELECT p.proposal_id
FROM (
  SELECT o.*, h.heading, h.heading = '' AS about_nobody FROM placed o
  JOIN headings h ON h.candidate_id = o.candidate_id
  WHERE NOT EXISTS (SELECT FROM last l WHERE (h.heading = '', h.heading, o.place, o.due_at, o.proposal_id)
    <= (l.heading = '', l.heading, l.place, l.due_at, l.proposal_id))
  ORDER BY about_nobody, h.heading, o.place, o.due_at, o.proposal_id OFFSET 0) p
WHERE {narrowed p} AND {leads p}
ORDER BY p.about_nobody, p.heading, p.place, p.due_at, p.proposal_id
LIMIT :count

-- name: matching
-- plan: each time
-- How many open proposals match the filters; those that say the same count each.
WITH open AS MATERIALIZED (SELECT {open_row p} FROM {open_proposals p} WHERE {filtered p}),
noticed AS MATERIALIZED ({noticed open}),
placed AS MATERIALIZED ({placed open})
SELECT count(*) AS count FROM placed p WHERE {narrowed p}

-- name: groups
-- plan: each time
-- Open proposals that match the filters, counted by whom they are about, by source or by class; the largest groups first.
WITH open AS MATERIALIZED (SELECT {open_row p} FROM {open_proposals p} WHERE {filtered p}),
noticed AS MATERIALIZED (
  SELECT open.proposal_id, {heading n} AS heading, {danger_bits open} AS dangers FROM open JOIN candidates n ON n.candidate_id = open.candidate_id
  WHERE n.tenant_id = :tenant_id AND n.candidate_id = ANY (ARRAY(SELECT candidate_id FROM open)))
SELECT n.heading AS name,
  count(*) AS count, count(*) FILTER (WHERE p.due_at <= :now) AS overdue, count(*) FILTER (WHERE n.dangers > 0) AS unusual,
  min(p.due_at) AS due_at
FROM open p
JOIN noticed n ON n.proposal_id = p.proposal_id
WHERE {narrowed p} AND (:dangers::int IS NULL OR n.dangers & :dangers <> 0)
GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT :count

-- name: counts
-- plan: each time
-- Open proposals, counted by class, risk, tier and reason: a row for each; the total has the kind `open`. The verdicts so far are
-- read for those that have any, and what is equal in all that is counted is counted first.
WITH waits AS MATERIALIZED (
  SELECT p.proposal_id, p.class, p.risk, p.due_at, p.human_reasons, p.tier_derived FROM {open_proposals p}),
touched AS MATERIALIZED (
  SELECT p.proposal_id, {tier_of p} AS tier, {held_for p} AS held_for, {assignee_of p} AS assignee,
    EXISTS (SELECT FROM verdicts h WHERE h.tenant_id = :tenant_id AND h.proposal_id = p.proposal_id AND :asker = ANY (h.mentions)) AS mentioned
  FROM waits p
  WHERE EXISTS (SELECT FROM verdicts v WHERE v.tenant_id = :tenant_id AND v.proposal_id = p.proposal_id)),
open AS MATERIALIZED (
  SELECT p.class, p.risk, coalesce(t.tier, p.tier_derived) AS tier, p.human_reasons, t.held_for, count(*) AS count,
    count(*) FILTER (WHERE p.due_at <= :now) AS overdue,
    count(*) FILTER (WHERE p.due_at > :now AND p.due_at <= :now::timestamptz + interval '1 day') AS soon,
    count(*) FILTER (WHERE t.assignee = :asker) AS mine, count(*) FILTER (WHERE t.mentioned) AS mentioned
  FROM waits p LEFT JOIN touched t ON t.proposal_id = p.proposal_id
  GROUP BY p.class, p.risk, coalesce(t.tier, p.tier_derived), p.human_reasons, t.held_for)
SELECT 'open' AS kind, '' AS name, coalesce(sum(count), 0)::bigint AS count, coalesce(sum(overdue), 0)::bigint AS overdue,
  coalesce(sum(soon), 0)::bigint AS soon, coalesce(sum(count) FILTER (WHERE held_for IS NOT NULL), 0)::bigint AS held,
  coalesce(sum(mine), 0)::bigint AS mine, coalesce(sum(mentioned), 0)::bigint AS mentioned
FROM open
UNION ALL SELECT 'by_class', class, sum(count)::bigint, 0, 0, 0, 0, 0 FROM open GROUP BY class
UNION ALL SELECT 'by_risk', risk, sum(count)::bigint, 0, 0, 0, 0, 0 FROM open GROUP BY risk
UNION ALL SELECT 'by_tier', tier, sum(count)::bigint, 0, 0, 0, 0, 0 FROM open GROUP BY tier
UNION ALL SELECT 'by_reason', reason, sum(count)::bigint, 0, 0, 0, 0, 0
  FROM (SELECT unnest(human_reasons) AS reason, count FROM open
        UNION ALL SELECT held_for, count FROM open WHERE held_for <> '' AND NOT held_for = ANY (human_reasons)) reasons
  GROUP BY reason
ORDER BY kind, name

-- name: attend
-- Who returns after a while counts as new.
INSERT INTO presence (tenant_id, proposal_id, principal, since, at)
VALUES (:tenant_id, :proposal_id, :principal, :now, :now)
ON CONFLICT (tenant_id, proposal_id, principal) DO UPDATE
SET at = :now, since = CASE WHEN presence.at < :gone THEN :now ELSE presence.since END

-- name: attending
SELECT principal, since FROM presence
WHERE tenant_id = :tenant_id AND proposal_id = :proposal_id AND principal <> :principal AND at >= :gone
ORDER BY since, principal

-- name: left
-- Those who are gone.
DELETE FROM presence WHERE tenant_id = :tenant_id AND at < :gone

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
  assignee, memory_id, holder, remark, cause, mentions, txid)
VALUES (:tenant_id, :verdict_id, :proposal_id, :seq, :action, :by, :by_kind, :at, :pack, :tier, :priority,
  :assignee, :memory_id, :holder, :remark, :cause, :mentions, :txid)

-- name: of_capture
-- The proposals that came out of a capture.
SELECT p.proposal_id FROM proposals p
JOIN candidates c ON c.tenant_id = :tenant_id AND c.candidate_id = p.candidate_id
WHERE p.tenant_id = :tenant_id AND c.capture_id = :capture_id
ORDER BY p.seq, p.proposal_id

-- name: requests_to_forget
-- Open requests of a memory's own user to forget something, which may mean this memory.
SELECT p.proposal_id FROM proposals p
JOIN candidates c ON c.tenant_id = :tenant_id AND c.candidate_id = p.candidate_id
JOIN memories m ON m.tenant_id = :tenant_id AND m.memory_id = :memory_id AND m.user_id = c.user_id
WHERE p.tenant_id = :tenant_id AND p.action = 'retract' AND :memory_id = ANY (p.targets) AND {undecided p}
ORDER BY p.proposal_id

-- name: duplicates_of
-- The proposals that were set aside as duplicates of a memory and have not come back.
SELECT v.proposal_id FROM verdicts v
WHERE v.tenant_id = :tenant_id AND v.memory_id = :memory_id AND v.action = 'duplicate'
  AND NOT EXISTS (SELECT FROM proposals p WHERE p.tenant_id = :tenant_id AND p.reopens = v.proposal_id)
ORDER BY v.seq, v.proposal_id

-- name: known_of
-- The latest live memories about whom a proposal is about, without the :known ones and what its consent no longer allows; an entity
-- comes under all its names.
SELECT m.memory_id FROM memories m
JOIN memory_scope o ON o.tenant_id = :tenant_id AND o.memory_id = m.memory_id
WHERE m.tenant_id = :tenant_id AND m.entity = ANY (:about) AND o.dead_seq IS NULL AND o.expires_at > :now
  AND NOT m.memory_id = ANY (:known) AND {consent_allows o}
ORDER BY m.born_seq DESC, m.memory_id DESC
LIMIT :count

-- name: of_source
-- What people decided last on other facts of the same source.
SELECT v.proposal_id, v.action, v.by, v.at, p.class AS write_class, c.predicate
FROM (SELECT d.proposal_id, d.action, d.by, d.at, d.seq FROM verdicts d
  WHERE d.tenant_id = :tenant_id AND d.by_kind = 'operator' AND d.action IN ('approve', 'edit', 'reject')
  ORDER BY d.at DESC, d.seq DESC LIMIT :latest) v
JOIN proposals p ON p.tenant_id = :tenant_id AND p.proposal_id = v.proposal_id
JOIN candidates c ON c.tenant_id = :tenant_id AND c.candidate_id = p.candidate_id
WHERE c.claimed_by = :claimed_by AND v.proposal_id <> :proposal_id
ORDER BY v.at DESC, v.seq DESC
LIMIT :count

-- name: set_name
UPDATE subjects SET display_name = :display_name WHERE tenant_id = :tenant_id AND holder = :holder

-- name: names
SELECT holder, wrapped_key, key_version, display_name FROM subjects
WHERE tenant_id = :tenant_id AND holder = ANY (:holders) AND display_name IS NOT NULL

-- name: views
SELECT name, filters FROM saved_views WHERE tenant_id = :tenant_id AND principal = :principal ORDER BY name

-- name: save_view
INSERT INTO saved_views (tenant_id, principal, name, filters, saved_at) VALUES (:tenant_id, :principal, :view, :filters, :now)
ON CONFLICT (tenant_id, principal, name) DO UPDATE SET filters = :filters, saved_at = :now

-- name: remove_view
DELETE FROM saved_views WHERE tenant_id = :tenant_id AND principal = :principal AND name = :view

-- name: decided_since
-- How many proposals each person decided.
SELECT v.by, count(DISTINCT v.proposal_id) AS decided FROM verdicts v
WHERE v.tenant_id = :tenant_id AND v.by_kind = 'operator' AND v.at >= :since
  AND v.action IN ('approve', 'edit', 'reject', 'block', 'duplicate')
GROUP BY v.by ORDER BY decided DESC, v.by

-- name: second_looks
SELECT count(*) AS looks, count(*) FILTER (WHERE v.action = 'agree') AS agreed FROM verdicts v
WHERE v.tenant_id = :tenant_id AND v.by_kind = 'operator' AND v.at >= :since AND v.action IN ('agree', 'disagree')

-- name: to_look_at
-- The first proposal of those that another person decided and that are drawn by a hash of the verdicts' ids: who decides cannot know
-- before whether it is drawn.
SELECT v.proposal_id FROM verdicts v
WHERE v.tenant_id = :tenant_id AND v.by_kind = 'operator' AND v.at >= :since AND v.action IN ('approve', 'reject')
  AND v.by <> :principal AND ('x' || left(md5(v.verdict_id), 7))::bit(28)::int % 1000 < :share
  AND NOT EXISTS (SELECT FROM verdicts s WHERE s.tenant_id = :tenant_id AND s.proposal_id = v.proposal_id AND s.action IN ('agree', 'disagree'))
ORDER BY v.at, v.seq, v.proposal_id
LIMIT 1

-- name: to_search
-- plan: each time
-- Open proposals that match the filters and are searched for words, in the order that is asked for.
WITH open AS MATERIALIZED (SELECT {open_row p} FROM {open_proposals p} WHERE {filtered p}),
noticed AS MATERIALIZED ({noticed open}),
placed AS MATERIALIZED ({placed open})
SELECT p.proposal_id, p.candidate_id, p.seq, p.due_at, p.action, p.place FROM placed p
WHERE {narrowed p} ORDER BY p.place, p.due_at, p.proposal_id LIMIT :most

-- name: searched_texts
-- What candidates say, with the keys of it, and what they are about.
SELECT c.candidate_id, c.class, c.entity, c.predicate, c.subject, c.author, c.fingerprint, c.holder, c.content, s.wrapped_key, s.key_version
FROM candidates c
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = c.holder
WHERE c.tenant_id = :tenant_id AND c.candidate_id = ANY (:candidate_ids) AND c.content <> ''

-- name: searched_after
-- The place of a proposal among those that are searched, whether it is still open or not.
SELECT p.proposal_id, p.due_at, {place_of_last p} AS place, c.class, c.entity, c.subject, c.author
FROM proposals p JOIN candidates c ON c.tenant_id = :tenant_id AND c.candidate_id = p.candidate_id
WHERE p.tenant_id = :tenant_id AND p.proposal_id = :proposal_id
