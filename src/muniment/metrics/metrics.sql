-- Metrics (MET-1 to MET-10). A window is after :since until :until; in the tenant's sequence numbers, which follow its
-- clock, after :first_seq until :last_seq. A state is that at the window's end.

-- name: bounds
-- The tenant's sequence numbers at the two ends of a window.
SELECT coalesce((SELECT max(seq) FROM ticks WHERE tenant_id = :tenant_id AND at <= :since), 0) AS first_seq,
  coalesce((SELECT max(seq) FROM ticks WHERE tenant_id = :tenant_id AND at <= :until), 0) AS last_seq

-- name: captures
-- Captures that were archived since count too.
SELECT c.kind, count(*) AS count FROM (
  SELECT kind FROM captures WHERE tenant_id = :tenant_id AND seq > :first_seq AND seq <= :last_seq
  UNION ALL
  SELECT r.kind FROM archived_captures a JOIN archives r ON r.tenant_id = :tenant_id AND r.archive_id = a.archive_id
  WHERE a.tenant_id = :tenant_id AND a.seq > :first_seq AND a.seq <= :last_seq) c
GROUP BY c.kind ORDER BY c.kind

-- name: waiting
-- What waits to be consolidated now: behind the cursor and not done, to be tried again, parked. As subqueries: a join
-- would be planned badly while the tables are new and have no statistics.
SELECT count(*) AS waiting, min(c.captured_at) AS oldest,
  (SELECT count(*) FROM retries r WHERE r.tenant_id = :tenant_id AND r.parked_at IS NULL) AS retrying,
  (SELECT count(*) FROM retries r WHERE r.tenant_id = :tenant_id AND r.parked_at IS NOT NULL) AS parked
FROM captures c
WHERE c.tenant_id = :tenant_id AND {unread c}
  AND (SELECT d.at FROM consolidations d WHERE d.tenant_id = :tenant_id AND d.capture_id = c.capture_id LIMIT 1) IS NULL

-- name: refusals
SELECT gate, reason, count(*) AS count FROM refusals
WHERE tenant_id = :tenant_id AND seq > :first_seq AND seq <= :last_seq
GROUP BY gate, reason ORDER BY gate, reason

-- name: redactions
-- What was masked, and what was found and left by an exception of the pack.
SELECT c.class AS write_class, k.excepted, k.kind, sum(k.times::bigint)::bigint AS count
FROM candidates c
CROSS JOIN LATERAL (
  SELECT false AS excepted, m.kind, m.times FROM jsonb_each_text(c.redactions) AS m (kind, times)
  UNION ALL
  SELECT true, m.kind, m.times FROM jsonb_each_text(c.exceptions) AS m (kind, times)) k
WHERE c.tenant_id = :tenant_id AND c.seq > :first_seq AND c.seq <= :last_seq AND (c.redactions <> '{}' OR c.exceptions IS NOT NULL)
GROUP BY c.class, k.excepted, k.kind ORDER BY c.class, k.kind

-- name: proposals
-- Without the samples of audits.
SELECT class, count(*) AS count FROM proposals
WHERE tenant_id = :tenant_id AND seq > :first_seq AND seq <= :last_seq AND audits IS NULL
GROUP BY class ORDER BY class

-- name: duplicates
SELECT p.class, count(*) AS count
FROM verdicts v JOIN proposals p ON p.tenant_id = :tenant_id AND p.proposal_id = v.proposal_id AND p.audits IS NULL
WHERE v.tenant_id = :tenant_id AND v.action = 'duplicate' AND v.seq > :first_seq AND v.seq <= :last_seq
GROUP BY p.class ORDER BY p.class

-- name: promotions
-- In the order of the index, which has all of it: the table is not read.
SELECT m.tier, m.class AS write_class, m.auto, count(*) AS count
FROM (
  SELECT tier, class, approver_kind = 'system' AS auto FROM memories
  WHERE tenant_id = :tenant_id AND born_seq > :first_seq AND born_seq <= :last_seq
  ORDER BY born_seq OFFSET 0) m
GROUP BY m.tier, m.class, m.auto ORDER BY m.tier, m.class, m.auto

-- name: retractions
SELECT reason AS name, count(*) AS count FROM retractions
WHERE tenant_id = :tenant_id AND seq > :first_seq AND seq <= :last_seq
GROUP BY reason ORDER BY reason

-- name: recalls
-- By workflow; their ids begin with the time.
SELECT request ->> 'workflow_id' AS workflow_id, count(*) AS n FROM recalls
WHERE tenant_id = :tenant_id AND recall_id >= :first_recall AND at > :since AND at <= :until
GROUP BY workflow_id ORDER BY n DESC, workflow_id NULLS FIRST

-- name: recalled
-- How many recalls there were, and how many memories one returned.
SELECT count(*) AS recalls, count(*) FILTER (WHERE degraded <> '{}') AS degraded,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY cardinality(result_ids)) AS median_results
FROM recalls
WHERE tenant_id = :tenant_id AND recall_id >= :first_recall AND at > :since AND at <= :until

-- name: erasures
SELECT count(*) AS erasures, count(purged_at) AS count,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM purged_at - erased_at)) AS median,
  percentile_cont(0.9) WITHIN GROUP (ORDER BY extract(epoch FROM purged_at - erased_at)) AS ninetieth,
  max(extract(epoch FROM purged_at - erased_at))::float8 AS longest
FROM erasures
WHERE tenant_id = :tenant_id AND seq > :first_seq AND seq <= :last_seq

-- name: golden
-- The last run of the golden queries in the window; of each query, whether it had failed in a run before.
SELECT g.at, g.passed, g.precision, g.recall, EXISTS (
  SELECT FROM golden_runs f WHERE f.tenant_id = :tenant_id AND f.query = g.query AND NOT f.passed
    AND (f.at, f.golden_id) < (g.at, g.golden_id)) AS once_failed
FROM golden_runs g
WHERE g.tenant_id = :tenant_id AND g.golden_id = (
  SELECT l.golden_id FROM golden_runs l
  WHERE l.tenant_id = :tenant_id AND l.at > :since AND l.at <= :until
  ORDER BY l.at DESC, l.golden_id DESC LIMIT 1)
ORDER BY g.query

-- name: record_golden
-- each: query, passed, precision, recall
INSERT INTO golden_runs (tenant_id, golden_id, at, by, query, passed, precision, recall)
VALUES (:tenant_id, :golden_id, :now, :by, :query, :passed, :precision, :recall)

-- name: hits
-- The latest recalls of the window with their results, and whether a later capture of the run names the recall itself.
SELECT r.recall_id, r.run_id, r.seq, coalesce(r.as_of_seq, r.seq) AS stood_at, r.request ->> 'workflow_id' AS workflow_id, r.pack,
  r.result_ids, n.recall_id IS NOT NULL AS named
FROM (
  SELECT * FROM recalls
  WHERE tenant_id = :tenant_id AND recall_id >= :first_recall AND at > :since AND at <= :until
  ORDER BY at DESC, recall_id DESC LIMIT :count) r
LEFT JOIN (
  SELECT recall_id, run_id, max(seq) AS seq FROM captures
  WHERE tenant_id = :tenant_id AND seq > :first_seq AND seq <= :last_seq AND recall_id IS NOT NULL
  GROUP BY recall_id, run_id) n ON n.recall_id = r.recall_id AND n.run_id = r.run_id AND n.seq > r.seq

-- name: returned
-- The confidence of memories.
SELECT memory_id, confidence FROM memories WHERE tenant_id = :tenant_id AND memory_id = ANY (:memory_ids)

-- name: sides
-- The contradictions between two of those memories, and from which sequence number to which they were open.
SELECT c.existing, m.memory_id AS incoming, greatest(c.seq, m.born_seq) AS opened, r.seq AS ended
FROM contradictions c
JOIN memories m ON m.tenant_id = :tenant_id AND m.proposal_id = c.proposal_id
LEFT JOIN resolutions r ON r.tenant_id = :tenant_id AND r.contradiction_id = c.contradiction_id
WHERE c.tenant_id = :tenant_id AND c.existing = ANY (:memory_ids) AND m.memory_id = ANY (:memory_ids)

-- name: said_by_runs
-- What those runs captured after a sequence number, the latest first; sealed.
SELECT capture_id, seq, run_id, holder, content FROM captures
WHERE tenant_id = :tenant_id AND seq > :after AND seq <= :last_seq AND run_id = ANY (:run_ids) AND content <> ''
ORDER BY seq DESC, capture_id DESC LIMIT :count

-- name: compiles
-- The latest compiled prompts of the window, each with its recall.
SELECT k.compile_id, k.at, k.token_budget, k.tokens, k.tokenizer, k.format, r.recall_id, r.seq, r.user_id, r.pack, r.request, r.holder,
  r.query, ARRAY(SELECT m.capture_id FROM memories m WHERE m.tenant_id = :tenant_id AND m.memory_id = ANY (k.memory_ids)) AS rests_on
FROM compiles k JOIN recalls r ON r.tenant_id = :tenant_id AND r.recall_id = k.recall_id
WHERE k.tenant_id = :tenant_id AND k.compile_id >= :first_compile AND k.at > :since AND k.at <= :until
ORDER BY k.at DESC, k.compile_id DESC LIMIT :count

-- name: said_before
-- What could have been in a prompt instead: captures for that user or for nobody, the latest first, and those that the memory in the
-- prompt rests on, however old they are; sealed.
SELECT capture_id, seq, captured_at, observed_at, source, kind, author, intent_id, holder, content FROM captures
WHERE tenant_id = :tenant_id AND content <> '' AND capture_id = ANY (ARRAY(
  SELECT c.capture_id FROM captures c
  WHERE c.tenant_id = :tenant_id AND c.seq <= :seq AND c.captured_at > :after AND c.captured_at <= :at
    AND (c.user_id IS NULL OR c.user_id = :user_id) AND c.classification = ANY (:labels) AND c.content <> ''
  ORDER BY c.seq DESC, c.capture_id DESC LIMIT :count) || :rests_on::text[])
ORDER BY seq DESC, capture_id DESC

-- name: without_consent
-- Sensitive memories of the window without a consent of their subject when they were promoted. An index has those that name a
-- consent. A constraint requires each to name one, which this does not rely on: of the others, those are read whose label
-- a pack of the tenant has ever declared sensitive.
SELECT m.memory_id, count(*) OVER () AS n
FROM memories m
WHERE m.tenant_id = :tenant_id AND m.memory_id = ANY (ARRAY(
    SELECT s.memory_id FROM memory_scope s
    WHERE s.tenant_id = :tenant_id AND s.consent_root IS NOT NULL AND s.born_seq > :first_seq AND s.born_seq <= :last_seq
    UNION ALL
    SELECT s.memory_id FROM memory_scope s
    WHERE s.tenant_id = :tenant_id AND s.consent_root IS NULL AND s.born_seq > :first_seq AND s.born_seq <= :last_seq
      AND s.class <> 'evidence_link'
      AND s.classification = ANY (ARRAY(SELECT l.label FROM pack_labels l WHERE l.tenant_id = :tenant_id AND l.sensitive))))
  AND m.sensitive AND m.class <> 'evidence_link' AND NOT EXISTS (
    SELECT FROM consents c
    WHERE c.tenant_id = :tenant_id AND c.action = 'grant' AND c.subject = m.subject AND c.seq <= m.born_seq
      AND c.valid_from <= m.promoted_at AND c.valid_until > m.promoted_at
      AND {consent_covers m} AND m.classification = ANY (c.labels)
      AND NOT EXISTS (SELECT FROM consents r WHERE r.tenant_id = :tenant_id AND r.root_id = c.root_id AND r.action = 'revoke'
                      AND r.seq < m.born_seq)
      AND NOT EXISTS (SELECT FROM consents n WHERE n.tenant_id = :tenant_id AND n.supersedes = c.consent_id
                      AND n.seq < m.born_seq AND n.valid_from <= m.promoted_at))
ORDER BY m.memory_id LIMIT :count

-- name: unmasked
-- What scans found in memories of the window that still have content.
SELECT f.memory_id, f.kinds
FROM pii_scans p, jsonb_each(p.found) AS f (memory_id, kinds)
JOIN memory_scope s ON s.tenant_id = :tenant_id AND s.memory_id = f.memory_id AND s.tomb_seq IS NULL
WHERE p.tenant_id = :tenant_id AND p.found <> '{}' AND s.born_seq > :first_seq AND s.born_seq <= :last_seq
ORDER BY f.memory_id

-- name: scanned
-- The last memory that was scanned.
SELECT seq, memory_id FROM pii_scans WHERE tenant_id = :tenant_id ORDER BY seq DESC, memory_id DESC LIMIT 1

-- name: to_scan
-- The next memories in the order of their promotion, with their sealed content.
SELECT m.memory_id, m.born_seq, m.pack, m.holder, b.content
FROM memories m LEFT JOIN memory_bodies b ON b.tenant_id = :tenant_id AND b.memory_id = m.memory_id
WHERE m.tenant_id = :tenant_id AND (m.born_seq, m.memory_id) > (:after_seq, :after) AND m.born_seq <= :last_seq
ORDER BY m.born_seq, m.memory_id LIMIT :count

-- name: not_scanned
SELECT count(*) AS n FROM memories m
WHERE m.tenant_id = :tenant_id AND (m.born_seq, m.memory_id) > (:after_seq, :after) AND m.born_seq <= :last_seq

-- name: record_scan
INSERT INTO pii_scans (tenant_id, seq, memory_id, scanned_at, scanned, found)
VALUES (:tenant_id, :seq, :memory_id, :now, :scanned, :found) ON CONFLICT DO NOTHING

-- name: resolved
-- How the contradictions that ended in the window ended, and after how many seconds: by outcome, and in total.
SELECT r.outcome, count(*) AS count,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM r.resolved_at - c.opened_at)) AS median,
  percentile_cont(0.9) WITHIN GROUP (ORDER BY extract(epoch FROM r.resolved_at - c.opened_at)) AS ninetieth,
  max(extract(epoch FROM r.resolved_at - c.opened_at))::float8 AS longest
FROM resolutions r
JOIN contradictions c ON c.tenant_id = :tenant_id AND c.contradiction_id = r.contradiction_id
WHERE r.tenant_id = :tenant_id AND r.seq > :first_seq AND r.seq <= :last_seq
GROUP BY GROUPING SETS ((r.outcome), ()) ORDER BY r.outcome NULLS FIRST

-- name: unresolved
-- Contradictions open at the window's end. One also ends when a side is retracted or expires.
SELECT count(*) AS count, percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM :until::timestamptz - c.opened_at)) AS median,
  percentile_cont(0.9) WITHIN GROUP (ORDER BY extract(epoch FROM :until::timestamptz - c.opened_at)) AS ninetieth,
  max(extract(epoch FROM :until::timestamptz - c.opened_at))::float8 AS longest
FROM contradictions c
JOIN memory_scope e ON e.tenant_id = :tenant_id AND e.memory_id = c.existing
LEFT JOIN memories m ON m.tenant_id = :tenant_id AND m.proposal_id = c.proposal_id AND m.born_seq <= :last_seq
LEFT JOIN memory_scope i ON i.tenant_id = :tenant_id AND i.memory_id = m.memory_id
WHERE c.tenant_id = :tenant_id AND c.seq <= :last_seq
  AND NOT EXISTS (SELECT FROM resolutions r WHERE r.tenant_id = :tenant_id AND r.contradiction_id = c.contradiction_id
                  AND r.seq <= :last_seq)
  AND (e.dead_seq IS NULL OR e.dead_seq > :last_seq) AND e.expires_at > :until
  AND (i.memory_id IS NULL OR ((i.dead_seq IS NULL OR i.dead_seq > :last_seq) AND i.expires_at > :until))

-- name: corrections
-- The corrections promoted in the window.
SELECT memory_id FROM memories
WHERE tenant_id = :tenant_id AND class = 'correction' AND born_seq > :first_seq AND born_seq <= :last_seq

-- name: decided
-- Proposals that people decided in the window, by person and day of a zone.
SELECT v.by AS operator, (v.at AT TIME ZONE :zone)::date AS day, count(*) AS decided
FROM verdicts v
WHERE v.tenant_id = :tenant_id AND v.seq > :first_seq AND v.seq <= :last_seq AND v.by_kind = 'operator'
  AND v.action IN ('approve', 'edit', 'reject', 'block', 'duplicate', 'withdraw')
GROUP BY v.by, day ORDER BY day DESC, decided DESC, v.by LIMIT :count

-- name: kept
-- The same by class, and how many of them before they were due.
SELECT p.class, count(*) AS decided, count(*) FILTER (WHERE v.at <= p.due_at) AS in_time
FROM verdicts v JOIN proposals p ON p.tenant_id = :tenant_id AND p.proposal_id = v.proposal_id
WHERE v.tenant_id = :tenant_id AND v.seq > :first_seq AND v.seq <= :last_seq AND v.by_kind = 'operator'
  AND v.action IN ('approve', 'edit', 'reject', 'block', 'duplicate', 'withdraw')
GROUP BY p.class ORDER BY p.class

-- name: queued
-- Proposals without a final verdict at the window's end, with their age in seconds: by class, and in total.
SELECT p.class, count(*) AS count, count(*) FILTER (WHERE p.due_at < :until) AS past_due,
  percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM :until::timestamptz - p.enqueued_at)) AS median,
  percentile_cont(0.9) WITHIN GROUP (ORDER BY extract(epoch FROM :until::timestamptz - p.enqueued_at)) AS ninetieth,
  max(extract(epoch FROM :until::timestamptz - p.enqueued_at))::float8 AS longest
FROM {waited p}
GROUP BY GROUPING SETS ((p.class), ()) ORDER BY p.class NULLS FIRST

-- name: owned
-- Those of them that were overdue, by whom they are assigned to now; the busiest first, and in the first place those of nobody.
SELECT found.owner, count(*) AS past_due FROM (
  SELECT {assignee_of p} AS owner FROM {waited p} WHERE p.due_at < :until
  OFFSET 0) found
GROUP BY found.owner ORDER BY found.owner IS NOT NULL, past_due DESC, found.owner LIMIT 200

-- name: audits
-- Samples of what policy promoted alone: those that a person confirmed or refuted in the window, and those still
-- waiting at its end. A sample whose memory was retracted as wrong by then counts as refuted at that time, whatever the
-- verdict on the sample.
SELECT p.class, count(*) FILTER (WHERE w.seq IS NULL AND v.action = 'duplicate') AS confirmed,
  count(*) FILTER (WHERE w.seq > :first_seq OR (w.seq IS NULL AND v.action IN ('reject', 'edit'))) AS refuted,
  count(*) FILTER (WHERE w.seq IS NULL AND f.proposal_id IS NULL) AS waiting
FROM proposals p
LEFT JOIN retractions w ON w.tenant_id = :tenant_id AND w.memory_id = p.audits AND w.reason IN ('wrong', 'undone') AND w.seq <= :last_seq
LEFT JOIN verdicts f ON f.tenant_id = :tenant_id AND f.proposal_id = p.proposal_id AND f.seq <= :last_seq
  AND f.action IN ('approve', 'edit', 'reject', 'block', 'duplicate', 'withdraw')
LEFT JOIN verdicts v ON v.tenant_id = :tenant_id AND v.verdict_id = f.verdict_id AND v.by_kind = 'operator' AND v.seq > :first_seq
WHERE p.tenant_id = :tenant_id AND p.audits IS NOT NULL AND p.seq <= :last_seq
GROUP BY p.class ORDER BY p.class

-- name: breakers
-- Whether promotion of a class without a person was suspended at the window's end.
SELECT DISTINCT ON (write_class) write_class, open FROM breakers
WHERE tenant_id = :tenant_id AND seq <= :last_seq ORDER BY write_class, seq DESC

-- name: told
-- End users' messages of the window (ISO-8 says which), those that gave a candidate, and those that only repeated what
-- was promoted.
SELECT count(*) AS messages, count(*) FILTER (WHERE c.gave) AS with_candidates, count(*) FILTER (WHERE c.again) AS repeated
FROM (
  SELECT EXISTS (SELECT FROM candidates k WHERE k.tenant_id = :tenant_id AND k.capture_id = m.capture_id) AS gave,
    EXISTS (
      SELECT FROM candidates k
      JOIN proposals p ON p.tenant_id = :tenant_id AND p.candidate_id = k.candidate_id AND p.audits IS NULL
      JOIN verdicts v ON v.tenant_id = :tenant_id AND v.proposal_id = p.proposal_id AND v.action = 'duplicate' AND v.by = 'auto'
      WHERE k.tenant_id = :tenant_id AND k.capture_id = m.capture_id AND v.seq <= :last_seq) AS again
  FROM (
    SELECT capture_id FROM captures
    WHERE tenant_id = :tenant_id AND kind = 'message' AND vouched = 'user' AND seq > :first_seq AND seq <= :last_seq
    UNION ALL
    SELECT a.capture_id FROM archived_captures a
    JOIN archives r ON r.tenant_id = :tenant_id AND r.archive_id = a.archive_id AND r.kind = 'message'
    WHERE a.tenant_id = :tenant_id AND a.vouched = 'user' AND a.seq > :first_seq AND a.seq <= :last_seq) m) c

-- name: stored
-- Memories live at the window's end, and the bytes of their sealed bodies. OFFSET 0: bodies are joined by their size alone.
SELECT s.tier, s.class AS write_class, count(*) AS records, coalesce(sum(b.size), 0)::bigint AS bytes
FROM memory_scope s
LEFT JOIN (SELECT o.memory_id, octet_length(o.content) AS size FROM memory_bodies o WHERE o.tenant_id = :tenant_id OFFSET 0) b ON b.memory_id = s.memory_id
WHERE s.tenant_id = :tenant_id AND s.born_seq <= :last_seq AND (s.dead_seq IS NULL OR s.dead_seq > :last_seq)
  AND s.expires_at > :until AND s.tomb_seq IS NULL
GROUP BY s.tier, s.class ORDER BY s.tier, s.class

-- name: answers
-- How often language models were called, by day (UTC).
SELECT extractor, day, calls FROM model_calls
WHERE tenant_id = :tenant_id AND day >= (:since::timestamptz AT TIME ZONE 'UTC')::date AND day <= (:until::timestamptz AT TIME ZONE 'UTC')::date
ORDER BY day, extractor

-- name: calibrations
-- The last calibration of each source at the window's end.
SELECT DISTINCT ON (source) source, calibrated_at AS at, verdicts, approved, points FROM calibrations
WHERE tenant_id = :tenant_id AND seq <= :last_seq ORDER BY source, seq DESC
