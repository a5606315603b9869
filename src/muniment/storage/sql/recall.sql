-- Stage 5, recall: promoted memory only, through every filter, then in order, then the limit.

-- name: visible
-- The ids to answer with: part 0 plain records, 1 those of low confidence, 2 the sides of open conflicts.
-- A correction takes the place of the best record on its key, ahead of it. Narrowing (`wanted`) comes after the filters:
-- it never takes one side out of a conflict.
WITH seen AS MATERIALIZED (
  SELECT s.memory_id, s.priority, s.confidence, s.born_seq, s.class, s.entity, s.predicate,
    s.tier = ANY (:tiers) AND s.class = ANY (:classes)
      AND (:entities::text[] IS NULL OR coalesce(s.entity = ANY (:entities), false))
      AND (:only::text[] IS NULL OR s.memory_id = ANY (:only)) AS wanted
  FROM memory_scope s
  WHERE s.tenant_id = :tenant_id
    AND s.user_id = ANY (:users)
    AND s.dead_seq IS NULL
    AND s.expires_at > :now
    AND s.classification = ANY (:labels)
    AND s.intent_id = ANY (:intents)
    AND (s.tier <> 'working' OR s.session_id = :session_id)
    AND (s.tier <> 'episodic' OR s.user_id <> '' OR s.workflow_id = '' OR s.workflow_id = :workflow_id)
    AND (s.qualifiers IS NULL OR (s.qualifiers || :qualifiers::jsonb) @> s.qualifiers)
    AND NOT EXISTS (SELECT FROM qualifications q WHERE q.tenant_id = :tenant_id AND q.memory_id = s.memory_id
                    AND NOT :qualifiers::jsonb @> q.qualifiers)
    AND s.promoted_at >= CASE s.tier WHEN 'working' THEN coalesce(:fresh_working::timestamptz, '-infinity')
                                     WHEN 'episodic' THEN coalesce(:fresh_episodic::timestamptz, '-infinity')
                                     WHEN 'semantic' THEN coalesce(:fresh_semantic::timestamptz, '-infinity')
                                     ELSE coalesce(:fresh_durable::timestamptz, '-infinity') END
    AND {consent_allows s}
), conflicts AS MATERIALIZED (
  SELECT c.contradiction_id, c.existing, i.memory_id AS incoming
  FROM contradictions c
  JOIN memories i ON i.tenant_id = :tenant_id AND i.proposal_id = c.proposal_id
  WHERE c.tenant_id = :tenant_id
    AND c.existing IN (SELECT memory_id FROM seen) AND i.memory_id IN (SELECT memory_id FROM seen)
    AND NOT EXISTS (SELECT FROM resolutions r WHERE r.tenant_id = :tenant_id AND r.contradiction_id = c.contradiction_id)
), chosen AS (
  SELECT contradiction_id, existing, incoming FROM conflicts
  WHERE existing IN (SELECT memory_id FROM seen WHERE wanted) OR incoming IN (SELECT memory_id FROM seen WHERE wanted)
), placed AS (
  SELECT s.memory_id, s.class = 'correction' AS correction, s.confidence < :confidence AS low,
    coalesce(best.priority, s.priority) AS priority, coalesce(best.born_seq, s.born_seq) AS born_seq
  FROM seen s
  LEFT JOIN LATERAL (
    SELECT o.priority, o.born_seq FROM seen o
    WHERE s.class = 'correction' AND o.entity = s.entity AND o.predicate = s.predicate
    ORDER BY o.priority DESC, o.born_seq DESC LIMIT 1) best ON s.class = 'correction'
  WHERE s.wanted AND s.memory_id NOT IN (SELECT existing FROM conflicts UNION ALL SELECT incoming FROM conflicts)
)
(SELECT 0 AS part, memory_id, NULL AS contradiction_id, count(*) OVER () AS total
 FROM placed WHERE NOT low ORDER BY priority DESC, born_seq DESC, correction DESC, memory_id LIMIT :count)
UNION ALL
(SELECT 1, memory_id, NULL, count(*) OVER ()
 FROM placed WHERE low ORDER BY priority DESC, born_seq DESC, correction DESC, memory_id LIMIT :count)
UNION ALL
(SELECT 2, side, contradiction_id, 0
 FROM chosen, LATERAL (VALUES (existing), (incoming)) AS sides (side) ORDER BY contradiction_id, side)

-- name: bodies
-- The papers and the sealed content of the few that are returned.
SELECT m.memory_id, m.candidate_id, m.proposal_id, m.verdict_id, m.capture_id, m.promoted_at,
  nullif(m.expires_at, 'infinity') AS ends_at, m.class, m.entity, m.predicate, m.classification, m.tier, m.priority,
  m.confidence, m.holder, m.subject, m.user_id, m.session_id, m.workflow_id, m.intent_id, m.qualifiers,
  m.consent_id, m.pack, m.kind, m.origin, m.source, m.author, m.approver, m.captured_at, m.observed_at,
  b.content, s.wrapped_key, s.key_version, {required m}
FROM memories m
JOIN memory_bodies b ON b.tenant_id = :tenant_id AND b.memory_id = m.memory_id
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = m.holder
WHERE m.tenant_id = :tenant_id AND m.memory_id = ANY (:memory_ids)

-- name: record
-- Beside the answer, without waiting for the disk (the recall login commits asynchronously).
INSERT INTO recalls (tenant_id, recall_id, at, seq, agent_id, run_id, user_id, pack, request, result_ids, omitted)
VALUES (:tenant_id, :recall_id, :now, coalesce((SELECT seq FROM tenant_clock WHERE tenant_id = :tenant_id), 0),
  :agent_id, :run_id, :user_id, :pack, :request, :result_ids, :omitted)
RETURNING seq
