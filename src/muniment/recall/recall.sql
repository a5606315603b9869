-- Stage 5, recall: promoted memory only, through every filter, then in order, then the limit.

-- name: visible
-- Without a query. The ids to answer with: part 0 plain records, 1 those of low confidence, 2 the sides of open conflicts.
-- A correction comes just before the best record on its key.
WITH seen AS MATERIALIZED (
  SELECT s.memory_id, s.priority, s.confidence, s.born_seq, s.tier, s.class, s.entity, s.predicate, {wanted s} AS wanted
  FROM memory_scope s
  WHERE {visible s}
), conflicts AS MATERIALIZED (
  SELECT c.contradiction_id, c.existing, i.memory_id AS incoming
  FROM contradictions c
  JOIN memories i ON i.tenant_id = :tenant_id AND i.proposal_id = c.proposal_id
  WHERE c.tenant_id = :tenant_id AND c.seq <= :seq
    AND c.existing IN (SELECT memory_id FROM seen) AND i.memory_id IN (SELECT memory_id FROM seen)
    AND {still_open c}
), chosen AS (
  SELECT contradiction_id, existing, incoming FROM conflicts
  WHERE existing IN (SELECT memory_id FROM seen WHERE wanted) OR incoming IN (SELECT memory_id FROM seen WHERE wanted)
), placed AS (
  SELECT s.memory_id, s.tier, s.class = 'correction' AS correction, s.confidence < :confidence AS low,
    coalesce(best.priority, s.priority) AS priority, coalesce(best.born_seq, s.born_seq) AS born_seq
  FROM seen s
  LEFT JOIN LATERAL (
    SELECT o.priority, o.born_seq FROM seen o
    WHERE s.class = 'correction' AND o.entity = s.entity AND o.predicate = s.predicate
    ORDER BY o.priority DESC, o.born_seq DESC LIMIT 1) best ON s.class = 'correction'
  WHERE s.wanted AND s.memory_id NOT IN (SELECT existing FROM conflicts UNION ALL SELECT incoming FROM conflicts)
)
(SELECT 0 AS part, memory_id, tier, NULL AS contradiction_id, count(*) OVER () AS total
 FROM placed WHERE NOT low ORDER BY priority DESC, born_seq DESC, correction DESC, memory_id LIMIT :count)
UNION ALL
(SELECT 1, memory_id, tier, NULL, count(*) OVER ()
 FROM placed WHERE low ORDER BY priority DESC, born_seq DESC, correction DESC, memory_id LIMIT :count)
UNION ALL
(SELECT 2, s.memory_id, s.tier, contradiction_id, 0
 FROM chosen JOIN seen s ON s.memory_id IN (existing, incoming) ORDER BY contradiction_id, s.memory_id)

-- name: seen
-- results: binary
-- For a query: all that is visible, as packed columns, which are ranked in Python; only their number (`size`) where that
-- is more than is searched exactly. With them come their words and vectors, their open conflicts, and the key that the
-- query itself is sealed under.
WITH visible AS MATERIALIZED (
  SELECT s.memory_id, s.priority, s.confidence, s.born_seq, s.promoted_at, s.tier, s.class, s.entity, s.predicate, s.intent_id,
    {wanted s} AS wanted
  FROM memory_scope s
  WHERE {visible s}
  LIMIT :most + 1
), size AS MATERIALIZED (
  SELECT count(*) AS size FROM visible
), seen AS MATERIALIZED (
  SELECT visible.* FROM visible WHERE (SELECT size FROM size) <= :most
), open AS (
  SELECT c.contradiction_id, c.existing, (
    SELECT i.memory_id FROM memories i WHERE i.tenant_id = :tenant_id AND i.proposal_id = c.proposal_id) AS incoming
  FROM contradictions c
  WHERE c.tenant_id = :tenant_id AND c.seq <= :seq AND {still_open c}
)
SELECT (SELECT size FROM size) AS size, seen_columns.*, words.*, vectors.*, keyed.*, conflicts.*, holder_key.*
FROM (
  SELECT {packed seen} FROM seen) seen_columns, (
  SELECT {words_of seen}) words, (
  SELECT {vectors_of seen}) vectors, (
  SELECT {keyed seen}) keyed, (
  SELECT array_agg(open.contradiction_id) AS contradictions, array_agg(open.existing) AS existing, array_agg(open.incoming) AS incoming
  FROM open
  WHERE open.existing = ANY (ARRAY(SELECT memory_id FROM seen)) AND open.incoming = ANY (ARRAY(SELECT memory_id FROM seen))) conflicts
LEFT JOIN (SELECT k.wrapped_key, k.key_version FROM subjects k WHERE k.tenant_id = :tenant_id AND k.holder = :holder) holder_key ON true

-- name: some
-- results: binary
-- plan: each time
-- The same for those memories, as far as they are visible.
WITH seen AS MATERIALIZED (
  SELECT s.memory_id, s.priority, s.confidence, s.born_seq, s.promoted_at, s.tier, s.class, s.entity, s.predicate, s.intent_id,
    {wanted s} AS wanted
  FROM memory_scope s
  WHERE s.memory_id = ANY (:memory_ids) AND {visible s}
)
SELECT seen_columns.*, words.*, vectors.*, keyed.*
FROM (SELECT {packed seen} FROM seen) seen_columns, (SELECT {words_of seen}) words, (SELECT {vectors_of seen}) vectors,
  (SELECT {keyed seen}) keyed

-- name: rare
-- plan: each time
-- In a scope too large to be read: the newest visible memories with each word of the query, up to a number of each; by the
-- postings, and by the words of what has none yet.
WITH later AS MATERIALIZED (
  SELECT asked.term, s.memory_id
  FROM memories m
  JOIN memory_words w ON w.tenant_id = :tenant_id AND w.memory_id = m.memory_id
  JOIN memory_scope s ON s.tenant_id = :tenant_id AND s.memory_id = m.memory_id
  JOIN unnest(:terms::bigint[]) AS asked (term) ON {has_term w}
  WHERE m.tenant_id = :tenant_id AND {after_postings m} AND {visible s} AND {wanted s}
)
SELECT asked.term, ARRAY(
  SELECT found.memory_id
  FROM unnest(:users::text[]) AS own (user_id), LATERAL (
    SELECT t.memory_id
    FROM memory_terms t
    JOIN memory_scope s ON s.tenant_id = :tenant_id AND s.memory_id = t.memory_id
    WHERE t.tenant_id = :tenant_id AND t.term = asked.term AND t.user_id = own.user_id AND {visible s} AND {wanted s}
    ORDER BY t.memory_id DESC LIMIT :count) found
  UNION
  SELECT later.memory_id FROM later WHERE later.term = asked.term
  ORDER BY memory_id DESC LIMIT :count) AS memory_ids
FROM unnest(:terms::bigint[]) AS asked (term)

-- name: near
-- plan: each time
-- In a scope too large to be read: the nearest visible memories of the built-in embedder, by the tenant's vector index where it has one.
SELECT v.memory_id
FROM memory_vectors v
JOIN memory_scope s ON s.tenant_id = :tenant_id AND s.memory_id = v.memory_id
WHERE v.tenant_id = :tenant_id AND v.embedder = 'wordllama-256@1' AND {visible s} AND {wanted s}
ORDER BY v.vector::halfvec(256) <=> :aim::halfvec(256) LIMIT :count

-- name: near_exactly
-- plan: each time
-- The same for any other embedder, by comparing all of them.
SELECT v.memory_id
FROM memory_vectors v
JOIN memory_scope s ON s.tenant_id = :tenant_id AND s.memory_id = v.memory_id
WHERE v.tenant_id = :tenant_id AND v.embedder = :embedder AND {visible s} AND {wanted s}
ORDER BY v.vector <=> :aim::halfvec, v.memory_id LIMIT :count

-- name: conflicts
-- The open conflicts that one of those memories is a side of, where the run sees both sides.
SELECT c.contradiction_id, c.existing, i.memory_id AS incoming
FROM contradictions c
JOIN memories i ON i.tenant_id = :tenant_id AND i.proposal_id = c.proposal_id
JOIN memory_scope a ON a.tenant_id = :tenant_id AND a.memory_id = c.existing
JOIN memory_scope b ON b.tenant_id = :tenant_id AND b.memory_id = i.memory_id
WHERE c.tenant_id = :tenant_id AND c.seq <= :seq AND {still_open c}
  AND (c.existing = ANY (:memory_ids) OR i.memory_id = ANY (:memory_ids))
  AND {visible a} AND {visible b}

-- name: links
-- The visible facts that link those entities to others, in either direction, the most important first.
SELECT s.memory_id, s.entity, m.holder, b.content, k.wrapped_key, k.key_version
FROM memory_links l
JOIN memory_scope s ON s.tenant_id = :tenant_id AND s.memory_id = l.memory_id
JOIN memories m ON m.tenant_id = :tenant_id AND m.memory_id = l.memory_id
JOIN memory_bodies b ON b.tenant_id = :tenant_id AND b.memory_id = l.memory_id
JOIN subjects k ON k.tenant_id = :tenant_id AND k.holder = m.holder
WHERE l.tenant_id = :tenant_id AND (l.entity = ANY (:around) OR l.links_to = ANY (:around)) AND {visible s}
ORDER BY s.priority DESC, s.born_seq DESC, s.memory_id LIMIT :count

-- name: of_decision
-- The memories that belong to the run's own decision.
SELECT memory_id FROM memories WHERE tenant_id = :tenant_id AND decision_key = :decision_key

-- name: moment
-- The tenant's sequence at a time: that of the last transaction committed by then, null if there is none.
-- `earlier`: the sequence before the clock was set back over that time, where something had been dated in between.
SELECT (SELECT max(seq) FROM ticks WHERE tenant_id = :tenant_id AND at <= :at) AS seq,
  (SELECT max(t.seq) FROM clock_resets r
   JOIN ticks t ON t.tenant_id = :tenant_id AND t.seq < r.seq AND t.at >= r.at AND t.at <= :at
   WHERE r.tenant_id = :tenant_id AND r.at <= :at AND r.prev_at > :at) AS earlier

-- name: moment_of_number
SELECT at FROM ticks WHERE tenant_id = :tenant_id AND seq = :seq

-- name: filters
-- Every filter of one memory, by its name.
SELECT {by_user s} AS by_user, {is_promoted s} AS is_promoted, {not_retracted s} AS not_retracted, {not_expired s} AS not_expired,
  {by_label s} AS by_label, {by_intent s} AS by_intent, {by_session s} AS by_session, {session_open s} AS session_open, {by_workflow s} AS by_workflow,
  {by_qualifiers s} AS by_qualifiers, {is_fresh s} AS is_fresh, {has_content s} AS has_content, {consent_allows s} AS consent_allows,
  {holds s} AS holds, s.valid_from, s.valid_until,
  {wanted s} AS wanted,
  s.memory_id, s.user_id, s.born_seq, s.dead_seq, s.tomb_seq, s.promoted_at, nullif(s.expires_at, 'infinity') AS ends_at, s.tier, s.class, s.classification, s.session_id,
  s.workflow_id, s.intent_id, s.entity, s.predicate, s.qualifiers, s.consent_root, s.confidence, {required_then s},
  r.retracted_at, r.retracted_by, r.reason, r.superseded_by, t.tombstoned_at, e.ended_at AS session_ended_at
FROM memory_scope s
LEFT JOIN retractions r ON r.tenant_id = :tenant_id AND r.memory_id = s.memory_id
LEFT JOIN tombstones t ON t.tenant_id = :tenant_id AND t.memory_id = s.memory_id
LEFT JOIN session_ends e ON e.tenant_id = :tenant_id AND e.user_id = s.user_id AND e.session_id = s.session_id AND s.tier = 'working'
WHERE s.tenant_id = :tenant_id AND s.memory_id = ANY (:memory_ids)
ORDER BY s.memory_id

-- name: bodies
-- results: binary
-- The provenance and the sealed content of what is returned; without the content that the session store holds.
SELECT m.memory_id, m.candidate_id, m.proposal_id, m.verdict_id, m.capture_id, m.promoted_at,
  nullif(m.expires_at, 'infinity') AS ends_at, m.class, m.entity, m.predicate, m.classification, m.tier, m.priority,
  m.confidence, m.holder, m.subject, m.user_id, m.session_id, m.workflow_id, m.intent_id, m.qualifiers,
  m.consent_id, m.pack, m.kind, m.origin, m.vouched, m.source, m.author, m.approver, m.captured_at, m.observed_at, m.valid_from, m.valid_until,
  CASE WHEN m.memory_id = ANY (:held) THEN NULL ELSE b.content END AS content, s.wrapped_key, s.key_version, {required_then m}
FROM memories m
JOIN memory_bodies b ON b.tenant_id = :tenant_id AND b.memory_id = m.memory_id
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = m.holder
WHERE m.tenant_id = :tenant_id AND m.memory_id = ANY (:memory_ids)

-- name: record
-- Beside the answer, without waiting for the disk (the recall login commits asynchronously).
INSERT INTO recalls AS r (tenant_id, recall_id, at, seq, agent_id, run_id, user_id, pack, embedder, request, result_ids, omitted,
  holder, query, as_of, as_of_seq, degraded, candidates)
SELECT k.tenant_id, :recall_id, :now, k.seq, :agent_id, :run_id, :user_id, :pack, :embedder, :request, :result_ids, :omitted,
  :holder, :query, :as_of, :as_of_seq, :degraded, :candidates
FROM tenant_clock k WHERE k.tenant_id = :tenant_id
RETURNING r.seq

-- name: record_unopened
-- The same in a tenant in which nothing was ever written: it has no clock.
INSERT INTO recalls (tenant_id, recall_id, at, seq, agent_id, run_id, user_id, pack, embedder, request, result_ids, omitted,
  holder, query, as_of, as_of_seq, degraded, candidates)
VALUES (:tenant_id, :recall_id, :now, 0, :agent_id, :run_id, :user_id, :pack, :embedder, :request, :result_ids, :omitted,
  :holder, :query, :as_of, :as_of_seq, :degraded, :candidates)
RETURNING seq

-- name: record_by_values
-- The same for a cluster, where a row that is inserted by a query waits while any shard is moved, and is planned for each.
INSERT INTO recalls (tenant_id, recall_id, at, seq, agent_id, run_id, user_id, pack, embedder, request, result_ids, omitted,
  holder, query, as_of, as_of_seq, degraded, candidates)
VALUES (:tenant_id, :recall_id, :now, clock_number(:tenant_id), :agent_id, :run_id, :user_id, :pack, :embedder, :request, :result_ids,
  :omitted, :holder, :query, :as_of, :as_of_seq, :degraded, :candidates)
RETURNING seq

-- name: recorded
-- One recall as it was recorded, with the key its query is sealed under.
SELECT r.*, s.wrapped_key, s.key_version
FROM recalls r
LEFT JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = r.holder
WHERE r.tenant_id = :tenant_id AND r.recall_id = :recall_id

-- name: compiled
-- :seq is the tenant's sequence number when the run's own proposals were read.
INSERT INTO compiles (tenant_id, compile_id, recall_id, at, seq, agent_id, run_id, token_budget, tokens, format, tokenizer, blocks,
  memory_ids, left_out, told_seq, digest)
VALUES (:tenant_id, :compile_id, :recall_id, :now, :seq, :agent_id, :run_id, :token_budget, :tokens, :format, :tokenizer, :blocks, :memory_ids, :left_out, :told_seq, :digest)

-- name: own_proposals
-- A run's own proposals since it was last told of some, with their verdicts; what the checks found is for reviewers.
SELECT p.proposal_id, p.seq, p.class, ARRAY(SELECT v.action FROM verdicts v
  WHERE v.tenant_id = :tenant_id AND v.proposal_id = p.proposal_id AND v.by_kind = 'operator' ORDER BY v.seq, v.verdict_id) AS actions
FROM proposals p
JOIN candidates c ON c.tenant_id = :tenant_id AND c.candidate_id = p.candidate_id
WHERE p.tenant_id = :tenant_id AND p.run_id = :run_id AND c.author = :agent_id
  AND c.user_id IS NOT DISTINCT FROM :user_id AND p.seq > coalesce((
  SELECT max(k.told_seq) FROM compiles k WHERE k.tenant_id = :tenant_id AND k.run_id = :run_id AND k.agent_id = :agent_id), 0)
ORDER BY p.seq FETCH FIRST :count ROWS WITH TIES
