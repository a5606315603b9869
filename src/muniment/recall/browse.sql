-- Browsing: the tenant's memories for people, at the tenant's sequence :seq and the time :at.

-- name: page
-- plan: each time
-- The newest first, after a memory.
SELECT m.memory_id
FROM memories m
JOIN memory_scope s ON s.tenant_id = :tenant_id AND s.memory_id = m.memory_id
WHERE m.tenant_id = :tenant_id AND {chosen m} AND {in_state s} AND (m.born_seq, m.memory_id) < (:born::bigint, :after)
ORDER BY m.born_seq DESC, m.memory_id DESC
LIMIT :count

-- name: place
-- The position of a memory in that order.
SELECT born_seq FROM memories WHERE tenant_id = :tenant_id AND memory_id = :memory_id

-- name: words
-- plan: each time
-- The newest memories with each word of the query, up to a limit, without those whose text is withheld; by the postings, and
-- by the words of what has none, which is little. OFFSET 0 keeps the order: what a posting names is looked at from the newest on,
-- until there are enough.
WITH later AS MATERIALIZED (
  SELECT asked.term, s.memory_id
  FROM (SELECT * FROM memories o WHERE o.tenant_id = :tenant_id AND {after_postings o} OFFSET 0) m
  CROSS JOIN LATERAL (SELECT o.terms FROM memory_words o WHERE o.tenant_id = :tenant_id AND o.memory_id = m.memory_id OFFSET 0) w
  JOIN unnest(:terms::bigint[]) AS asked (term) ON {has_term w}
  CROSS JOIN LATERAL (SELECT * FROM memory_scope o WHERE o.tenant_id = :tenant_id AND o.memory_id = m.memory_id OFFSET 0) s
  WHERE {chosen m} AND {in_state s} AND {has_content s} AND {consent_allows s}
)
SELECT asked.term, ARRAY(
  (SELECT posted.memory_id
   FROM (
     SELECT t.memory_id FROM memory_terms t
     WHERE t.tenant_id = :tenant_id AND t.term = asked.term AND (:user_id::text IS NULL OR t.user_id = :user_id)
     ORDER BY t.memory_id DESC OFFSET 0) posted
   WHERE EXISTS (
     SELECT FROM memory_scope s JOIN memories m ON m.tenant_id = :tenant_id AND m.memory_id = s.memory_id
     WHERE s.tenant_id = :tenant_id AND s.memory_id = posted.memory_id
       AND {chosen m} AND {in_state s} AND {has_content s} AND {consent_allows s} OFFSET 0)
   ORDER BY posted.memory_id DESC LIMIT :count)
  UNION
  SELECT later.memory_id FROM later WHERE later.term = asked.term
  ORDER BY memory_id DESC LIMIT :count) AS memory_ids
FROM unnest(:terms::bigint[]) AS asked (term)

-- name: words_of
-- results: binary
-- The words of those memories.
WITH found AS (SELECT unnest(:memory_ids::text[]) AS memory_id)
SELECT {words_of found}

-- name: some
-- Those memories with how they ended, and whether their text may be shown.
SELECT {memory m}, f.tomb_seq, r.seq AS dead_seq, r.retracted_at, r.reason, r.superseded_by, t.tombstoned_at,
  {consent_allows f} AS allowed, {contradicted m} AS contradiction
FROM memories m
JOIN memory_scope f ON f.tenant_id = :tenant_id AND f.memory_id = m.memory_id
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = m.holder
LEFT JOIN memory_bodies b ON b.tenant_id = :tenant_id AND b.memory_id = m.memory_id
LEFT JOIN retractions r ON r.tenant_id = :tenant_id AND r.memory_id = m.memory_id
LEFT JOIN tombstones t ON t.tenant_id = :tenant_id AND t.memory_id = m.memory_id
WHERE m.tenant_id = :tenant_id AND m.memory_id = ANY (:memory_ids)

-- name: changes
-- plan: each time
-- What began between two points in time (:since_seq, :since and :seq, :at), and what ended of that and of what was live
-- at the first; the totals of both, and of what was live at both points.
WITH seen AS MATERIALIZED (
  SELECT s.memory_id, s.born_seq, s.born_seq > :since_seq AS added, {not_retracted s} AND {not_expired s} AS stands, {ends_at s} AS ended_at
  FROM memory_scope s
  WHERE s.tenant_id = :tenant_id AND {is_promoted s} AND {chosen_scope s}
    AND (s.born_seq > :since_seq OR ({stood s} AND NOT ({not_retracted s} AND {not_expired s}))))
(SELECT 'added' AS kind, memory_id, count(*) OVER () AS total
 FROM seen WHERE added ORDER BY born_seq DESC, memory_id DESC LIMIT :count)
UNION ALL
(SELECT 'ended', memory_id, count(*) OVER ()
 FROM seen WHERE NOT stands ORDER BY ended_at DESC, memory_id DESC LIMIT :count)
UNION ALL
SELECT 'still', NULL, count(*) FROM memory_scope s
WHERE s.tenant_id = :tenant_id AND {stood s} AND {not_retracted s} AND {not_expired s} AND {chosen_scope s}

-- name: turns
-- plan: each time
-- When memories began or ended, the latest first. Sequence numbers follow the tenant's clock: of what began and of what was
-- retracted the last :count numbers are enough.
SELECT turn.at, sum(turn.began)::int AS began, sum(turn.ended)::int AS ended
FROM (
  SELECT (SELECT o.promoted_at FROM memories o WHERE o.tenant_id = :tenant_id AND o.born_seq = born.seq LIMIT 1) AS at, born.count AS began, 0 AS ended
  FROM (
    SELECT m.born_seq AS seq, count(*) AS count FROM memories m
    WHERE m.tenant_id = :tenant_id AND {chosen m}
    GROUP BY m.born_seq ORDER BY m.born_seq DESC LIMIT :count) born
  UNION ALL
  SELECT {ends_at s}, 0, 1
  FROM memory_scope s
  WHERE s.tenant_id = :tenant_id AND (s.dead_seq IS NOT NULL OR s.expires_at <= :now) AND {chosen_scope s}) turn
GROUP BY turn.at
ORDER BY turn.at DESC
LIMIT :count

-- name: links
-- The live facts that link those entities to others, in either direction, the most important first.
SELECT s.memory_id, s.entity, s.predicate, m.holder, b.content, k.wrapped_key, k.key_version
FROM memory_links l
JOIN memory_scope s ON s.tenant_id = :tenant_id AND s.memory_id = l.memory_id
JOIN memories m ON m.tenant_id = :tenant_id AND m.memory_id = l.memory_id
JOIN memory_bodies b ON b.tenant_id = :tenant_id AND b.memory_id = l.memory_id
JOIN subjects k ON k.tenant_id = :tenant_id AND k.holder = m.holder
WHERE l.tenant_id = :tenant_id AND (l.entity = ANY (:around) OR l.links_to = ANY (:around))
  AND {not_retracted s} AND {not_expired s} AND {consent_allows s}
ORDER BY s.priority DESC, s.born_seq DESC, s.memory_id LIMIT :count

-- name: on_entities
-- How many live memories there are on each.
SELECT m.entity, count(*) AS memories
FROM memories m
JOIN memory_scope s ON s.tenant_id = :tenant_id AND s.memory_id = m.memory_id
WHERE m.tenant_id = :tenant_id AND m.entity = ANY (:entities) AND {not_retracted s} AND {not_expired s}
GROUP BY m.entity
