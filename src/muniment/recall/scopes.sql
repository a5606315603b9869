-- The index of scopes in the process: the statements that fill it, bring it up to date, and check an answer that was ranked from it.

-- name: number
-- The tenant's visibility number with its mark, the pack in force, and the last tick that made words or vectors anew.
SELECT t.visible_seq, t.mark::text AS mark,
  (SELECT f.pack FROM packs_in_force f WHERE f.tenant_id = :tenant_id) AS pack,
  (SELECT max(c.seq) FROM index_rebuilds c WHERE c.tenant_id = :tenant_id) AS rebuilt_seq
FROM ticks t
WHERE t.tenant_id = :tenant_id AND t.visible_seq IS NOT NULL
ORDER BY t.visible_seq DESC LIMIT 1

-- name: changes
-- What changed after an earlier visibility number: `mark` is that of the number (after a restore another, or null), `ended` has the
-- memories that were retracted or lost their content, `owners` the users of those that were promoted. `related` says whether there
-- is anything new that the statement `related` reads, apart from keys.
WITH promoted AS MATERIALIZED (
  SELECT m.user_id, m.session_id, m.proposal_id, (
    SELECT s.consent_root FROM memory_scope s WHERE s.tenant_id = :tenant_id AND s.memory_id = m.memory_id) AS consent_root
  FROM memories m
  WHERE m.tenant_id = :tenant_id AND m.born_seq > :after AND m.user_id = ANY (:users)
  ORDER BY m.born_seq
  LIMIT :most + 1
)
SELECT (SELECT t.mark::text FROM ticks t WHERE t.tenant_id = :tenant_id AND t.visible_seq = :after) AS mark,
  ARRAY(
    SELECT r.memory_id FROM retractions r WHERE r.tenant_id = :tenant_id AND r.seq > :after
    UNION
    SELECT t.memory_id FROM tombstones t WHERE t.tenant_id = :tenant_id AND t.seq > :after) AS ended,
  ARRAY(SELECT DISTINCT user_id FROM promoted) AS owners,
  EXISTS (SELECT FROM promoted WHERE consent_root IS NOT NULL)
    OR EXISTS (SELECT FROM promoted JOIN session_ends e ON e.tenant_id = :tenant_id AND e.user_id = promoted.user_id
      AND e.session_id = promoted.session_id)
    OR EXISTS (SELECT FROM promoted JOIN contradictions c ON c.tenant_id = :tenant_id AND c.proposal_id = promoted.proposal_id)
    OR EXISTS (SELECT FROM consents c WHERE c.tenant_id = :tenant_id AND c.seq > :after)
    OR EXISTS (SELECT FROM contradictions c WHERE c.tenant_id = :tenant_id AND c.seq > :after)
    OR EXISTS (SELECT FROM resolutions r WHERE r.tenant_id = :tenant_id AND r.seq > :after)
    OR EXISTS (SELECT FROM qualifications q WHERE q.tenant_id = :tenant_id AND q.seq > :after)
    OR EXISTS (SELECT FROM session_ends e WHERE e.tenant_id = :tenant_id AND e.seq > :after) AS related,
  keys.*
FROM (
  SELECT array_agg(k.holder) AS holders, array_agg(k.wrapped_key) AS wrapped_keys, array_agg(k.key_version) AS key_versions
  FROM subjects k WHERE k.tenant_id = :tenant_id AND k.holder = ANY (:holders)) keys

-- name: live_memories
-- results: binary
-- All memories of one user ('': the tenant's) that were not retracted, as packed columns; whether their time is over is decided
-- by the search, because clocks can go back. If there are more than :most, only `size` is filled.
WITH live AS MATERIALIZED (
  SELECT s.* FROM memory_scope s
  WHERE s.tenant_id = :tenant_id AND s.user_id = :user_id AND s.dead_seq IS NULL AND s.tomb_seq IS NULL
  LIMIT :most + 1
), size AS MATERIALIZED (
  SELECT count(*) AS size FROM live
), chosen AS MATERIALIZED (
  SELECT live.* FROM live WHERE (SELECT size FROM size) <= :most
)
{index_columns chosen}

-- name: promoted_after
-- results: binary
-- The same of the memories of several users that were promoted after a sequence number; `size` counts those of all users.
WITH size AS MATERIALIZED (
  SELECT count(*) AS size FROM memories m WHERE m.tenant_id = :tenant_id AND m.born_seq > :after
), chosen AS MATERIALIZED (
  SELECT s.* FROM memory_scope s
  WHERE s.tenant_id = :tenant_id AND s.dead_seq IS NULL AND s.tomb_seq IS NULL AND s.memory_id = ANY (ARRAY(
    SELECT m.memory_id FROM memories m
    WHERE m.tenant_id = :tenant_id AND m.born_seq > :after AND m.user_id = ANY (:users) AND (SELECT size FROM size) <= :most
    ORDER BY m.born_seq))
)
{index_columns chosen}

-- name: related
-- What else decides about one user's memories: their consents, the qualifiers that resolved contradictions require, the open
-- contradictions with another memory of :users, the sessions of theirs that have ended, and the key that the user's queries are
-- sealed under.
SELECT consents.*, required.*, open.*, ARRAY(
  SELECT DISTINCT s.session_id FROM memory_scope s
  WHERE s.tenant_id = :tenant_id AND s.user_id = :user_id AND s.tier = 'working' AND s.dead_seq IS NULL
    AND s.expires_at > :now::timestamptz - interval '1 day' AND NOT {session_goes_on s}) AS ended_sessions, holder_key.*
FROM (
  SELECT jsonb_agg(jsonb_build_array(c.root_id, c.consent_id, c.action, c.valid_from, nullif(c.valid_until, 'infinity'), c.predicates,
    c.labels, c.supersedes)) AS consents
  FROM consents c
  WHERE c.tenant_id = :tenant_id AND c.root_id = ANY (ARRAY(
    SELECT DISTINCT s.consent_root FROM memory_scope s
    WHERE s.tenant_id = :tenant_id AND s.user_id = :user_id AND s.consent_root IS NOT NULL AND s.dead_seq IS NULL))) consents, (
  SELECT jsonb_agg(jsonb_build_array(q.memory_id, q.qualifiers)) AS required
  FROM qualifications q
  JOIN memory_scope s ON s.tenant_id = :tenant_id AND s.memory_id = q.memory_id
  WHERE q.tenant_id = :tenant_id AND s.user_id = :user_id AND s.dead_seq IS NULL) required, (
  SELECT jsonb_agg(jsonb_build_array(c.contradiction_id, c.existing, i.memory_id)) AS open
  FROM contradictions c
  JOIN memories i ON i.tenant_id = :tenant_id AND i.proposal_id = c.proposal_id
  JOIN memory_scope e ON e.tenant_id = :tenant_id AND e.memory_id = c.existing
  WHERE c.tenant_id = :tenant_id
    AND NOT EXISTS (SELECT FROM resolutions r WHERE r.tenant_id = :tenant_id AND r.contradiction_id = c.contradiction_id)
    AND (e.user_id = :user_id OR i.user_id = :user_id) AND e.user_id = ANY (:users) AND i.user_id = ANY (:users)) open
LEFT JOIN (SELECT k.wrapped_key, k.key_version FROM subjects k WHERE k.tenant_id = :tenant_id AND k.holder = :holder) holder_key ON true

-- name: ended
-- The memories that were retracted, or lost their content, after a sequence number.
SELECT r.memory_id FROM retractions r WHERE r.tenant_id = :tenant_id AND r.seq > :after
UNION
SELECT t.memory_id FROM tombstones t WHERE t.tenant_id = :tenant_id AND t.seq > :after

-- name: record
-- Record a recall that was ranked from the index, in the snapshot that its bodies are read in, if the answer still holds.
INSERT INTO recalls AS r (tenant_id, recall_id, at, seq, agent_id, run_id, user_id, pack, embedder, request, result_ids, omitted,
  holder, query, degraded)
SELECT latest.tenant_id, :recall_id, :now, coalesce((SELECT seq FROM tenant_clock WHERE tenant_id = :tenant_id), 0),
  :agent_id, :run_id, :user_id, :pack, :recorded_embedder, :request, :result_ids, :omitted, :holder, :query, :degraded
FROM (
  SELECT t.tenant_id, t.visible_seq, t.mark FROM ticks t
  WHERE t.tenant_id = :tenant_id AND t.visible_seq IS NOT NULL
  ORDER BY t.visible_seq DESC LIMIT 1) latest
WHERE {answer_holds latest}
RETURNING r.seq

-- name: require
-- For a cluster: fails with SQLSTATE 22P02 if the answer does not hold any more. `recall.record_by_values` follows: a row that is
-- inserted by a query this long would take the coordinator a tenth of a millisecond more for each shard.
SELECT CAST(CASE WHEN (SELECT count(*) FROM (
    SELECT t.visible_seq, t.mark FROM ticks t
    WHERE t.tenant_id = :tenant_id AND t.visible_seq IS NOT NULL
    ORDER BY t.visible_seq DESC LIMIT 1) latest
  WHERE {answer_holds latest}) = 1 THEN '1' ELSE 'the index of memories is out of date' END AS integer) AS one
FROM tenant_clock k WHERE k.tenant_id = :tenant_id
