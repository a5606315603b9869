-- Reading back: one memory with its provenance, its trail, and the event log.

-- name: memory
SELECT {memory m},
  r.seq AS dead_seq, r.retracted_at, r.retracted_by, r.reason AS retraction_reason, r.superseded_by, t.tombstoned_at,
  {contradicted m} AS contradiction
FROM memories m
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = m.holder
LEFT JOIN memory_bodies b ON b.tenant_id = :tenant_id AND b.memory_id = m.memory_id
LEFT JOIN retractions r ON r.tenant_id = :tenant_id AND r.memory_id = m.memory_id
LEFT JOIN tombstones t ON t.tenant_id = :tenant_id AND t.memory_id = m.memory_id
WHERE m.tenant_id = :tenant_id AND m.memory_id = :memory_id

-- name: candidates
-- The candidate and all those it is an edit of, the first first.
WITH RECURSIVE line AS (
  SELECT c.*, 0 AS back FROM candidates c WHERE c.tenant_id = :tenant_id AND c.candidate_id = :candidate_id
  UNION ALL
  SELECT c.*, line.back + 1 FROM line JOIN candidates c ON c.tenant_id = :tenant_id AND c.candidate_id = line.edits
)
SELECT * FROM line ORDER BY back DESC

-- name: proposals_of
-- The proposals of candidates.
SELECT proposal_id FROM proposals WHERE tenant_id = :tenant_id AND candidate_id = ANY (:candidate_ids) ORDER BY seq

-- name: recalls_with
-- The recalls that returned a memory, the latest first.
SELECT recall_id FROM recalls WHERE tenant_id = :tenant_id AND :memory_id = ANY (result_ids) ORDER BY at DESC LIMIT :count

-- name: recalled
-- How often recalls returned it, from when until when.
SELECT count(*) AS times, min(at) AS first_at, max(at) AS last_at FROM recalls WHERE tenant_id = :tenant_id AND :memory_id = ANY (result_ids)

-- name: recalls
-- A page of recorded recalls, the latest first, from an id on. No index finds an agent or a memory: these are searched
-- among the latest :most recalls that match the rest (null: among all).
-- plan: each time
SELECT found.recall_id, found.at, found.seq, found.run_id, found.agent_id, found.user_id, found.pack, found.as_of,
  coalesce((found.request ->> 'with_query')::boolean, false) AS with_query, cardinality(found.result_ids) AS returned,
  found.omitted, found.degraded
FROM (
  SELECT r.* FROM recalls r
  WHERE r.tenant_id = :tenant_id AND (:user_id::text IS NULL OR r.user_id = :user_id) AND (:run_id::text IS NULL OR r.run_id = :run_id)
    AND (:most::bigint IS NOT NULL OR :after::text IS NULL OR r.recall_id < :after)
    AND (:first::text IS NULL OR r.recall_id >= :first) AND (:end::text IS NULL OR r.recall_id < :end)
    AND (:since::timestamptz IS NULL OR r.at >= :since) AND (:until::timestamptz IS NULL OR r.at < :until)
  ORDER BY r.recall_id DESC LIMIT coalesce(:most::bigint, :count)) found
WHERE (:agent_id::text IS NULL OR found.agent_id = :agent_id) AND (:memory_id::text IS NULL OR :memory_id = ANY (found.result_ids))
  AND (:after::text IS NULL OR found.recall_id < :after)
ORDER BY found.recall_id DESC
LIMIT :count

-- name: recall_place
SELECT seq FROM recalls WHERE tenant_id = :tenant_id AND recall_id = :after

-- name: prompts_of
-- What was compiled from a recall.
SELECT compile_id, memory_ids FROM compiles WHERE tenant_id = :tenant_id AND recall_id = :recall_id ORDER BY at, compile_id

-- name: prompts_with
-- The compiled prompts that a memory went into, the latest first.
SELECT compile_id FROM compiles WHERE tenant_id = :tenant_id AND :memory_id = ANY (memory_ids) ORDER BY at DESC LIMIT :count

-- name: used_since
-- The recalls and prompts that used memories since then; their ids begin with the time.
SELECT used.memory_id, 'recalls' AS kind, r.recall_id AS id
FROM recalls r, unnest(r.result_ids) AS used (memory_id)
WHERE r.tenant_id = :tenant_id AND r.recall_id >= :first_recall AND used.memory_id = ANY (:memory_ids)
UNION ALL
SELECT used.memory_id, 'prompts', c.compile_id
FROM compiles c, unnest(c.memory_ids) AS used (memory_id)
WHERE c.tenant_id = :tenant_id AND c.compile_id >= :first_prompt AND used.memory_id = ANY (:memory_ids)
ORDER BY 1, 2, 3 DESC

-- name: events_of
-- The events of those transactions.
SELECT * FROM events WHERE tenant_id = :tenant_id AND seq = ANY (:seqs) ORDER BY seq, n

-- name: events
-- The log after a sequence number; a page ends with a whole transaction, so that the next one begins after its number.
SELECT * FROM events
WHERE tenant_id = :tenant_id AND seq > :after AND seq <= (
  SELECT max(page.seq) FROM (
    SELECT seq FROM events WHERE tenant_id = :tenant_id AND seq > :after ORDER BY seq, n LIMIT :count) page)
ORDER BY seq, n

-- name: events_found
-- The same, of some types.
-- plan: each time
WITH found AS (
  SELECT * FROM events e
  WHERE e.tenant_id = :tenant_id AND e.seq > :after AND {told_of e}
  ORDER BY e.seq, e.n LIMIT :count)
SELECT * FROM found
UNION ALL
SELECT e.* FROM events e, (SELECT seq, n FROM found ORDER BY seq DESC, n DESC LIMIT 1) last
WHERE e.tenant_id = :tenant_id AND e.seq = last.seq AND e.n > last.n AND {told_of e}
ORDER BY seq, n

-- name: events_about
-- Events that name an id are few in a long log: all of them are found first, then a page of whole transactions.
-- plan: each time
WITH hits AS MATERIALIZED (
  SELECT e.seq, e.n FROM events e WHERE e.tenant_id = :tenant_id AND e.seq >= :made AND {told_of e}
), page AS (
  SELECT seq, n FROM hits WHERE seq > :after AND seq < :before
  ORDER BY CASE WHEN :latest THEN -seq ELSE seq END FETCH FIRST :count ROWS WITH TIES)
SELECT e.* FROM page JOIN events e ON e.tenant_id = :tenant_id AND e.seq = page.seq AND e.n = page.n
ORDER BY e.seq, e.n

-- name: latest_events
-- The latest first, before a sequence number; here too a page ends with a whole transaction.
-- plan: each time
WITH found AS (
  SELECT * FROM events e
  WHERE e.tenant_id = :tenant_id AND e.seq < :before AND {told_of e}
  ORDER BY e.seq DESC, e.n DESC LIMIT :count)
SELECT * FROM found
UNION ALL
SELECT e.* FROM events e, (SELECT seq, n FROM found ORDER BY seq, n LIMIT 1) last
WHERE e.tenant_id = :tenant_id AND e.seq = last.seq AND e.n < last.n AND {told_of e}
ORDER BY seq DESC, n DESC

-- name: corrections
-- Every correction with each memory that it replaced.
SELECT m.memory_id, r.memory_id AS replaced
FROM memories m
LEFT JOIN retractions r ON r.tenant_id = :tenant_id AND r.superseded_by = m.memory_id
WHERE m.tenant_id = :tenant_id AND m.class = 'correction'

-- name: decisions_on
-- Decisions whose recall returned one of those memories, in the order of their commits.
SELECT c.*, r.result_ids
FROM captures c
JOIN recalls r ON r.tenant_id = :tenant_id AND r.recall_id = c.recall_id
WHERE c.tenant_id = :tenant_id AND c.kind = 'decision' AND r.result_ids && :memory_ids::text[]
ORDER BY c.seq, c.capture_id
