-- What is held about a person: how much, who read it, and what an erasure of them would remove. Ids and numbers, no content.
-- What the condition `concerned` selects is found by the indexes of users, subjects and entities (`memories_of_person` and so on).

-- name: memories
-- plan: each time
-- How many memories there are of the person that an erasure reaches, by what became of them; and those about others that name them.
WITH e AS MATERIALIZED (SELECT :names::text[] AS names, '{}'::text[] AS facts, '{}'::text[] AS captures),
named AS MATERIALIZED (SELECT DISTINCT capture_id FROM capture_names WHERE tenant_id = :tenant_id AND name = ANY (:names)),
own AS MATERIALIZED ({memories_of_person o}),
theirs AS MATERIALIZED (
  SELECT memory_id FROM own
  UNION
  SELECT m.memory_id FROM named n
  JOIN candidates c ON c.tenant_id = :tenant_id AND c.capture_id = n.capture_id
  JOIN proposals p ON p.tenant_id = :tenant_id AND p.candidate_id = c.candidate_id
  JOIN memories m ON m.tenant_id = :tenant_id AND m.proposal_id = p.proposal_id
  CROSS JOIN e
  WHERE {covered_fact m})
SELECT count(*) FILTER (WHERE f.tomb_seq IS NULL AND f.dead_seq IS NULL AND f.expires_at > :now) AS live,
  count(*) FILTER (WHERE f.tomb_seq IS NULL AND (f.dead_seq IS NOT NULL OR f.expires_at <= :now)) AS ended,
  count(*) FILTER (WHERE f.tomb_seq IS NOT NULL) AS removed,
  count(*) FILTER (WHERE f.tomb_seq IS NULL AND NOT f.memory_id = ANY (ARRAY(SELECT memory_id FROM own))) AS naming,
  (array_agg(f.memory_id ORDER BY f.memory_id DESC)
    FILTER (WHERE f.tomb_seq IS NULL AND NOT f.memory_id = ANY (ARRAY(SELECT memory_id FROM own))))[1:100] AS named_in
FROM memory_scope f
WHERE f.tenant_id = :tenant_id AND f.memory_id = ANY (ARRAY(SELECT memory_id FROM theirs))

-- name: captures
-- plan: each time
-- The captures of the person by kind and by who wrote them down, archived ones too; `kept` still have their content.
WITH e AS MATERIALIZED (SELECT :names::text[] AS names, '{}'::text[] AS facts, '{}'::text[] AS captures),
named AS MATERIALIZED (SELECT DISTINCT capture_id FROM capture_names WHERE tenant_id = :tenant_id AND name = ANY (:names))
SELECT found.kind, found.source, count(*) AS captures, count(*) FILTER (WHERE found.archived) AS archived,
  count(*) FILTER (WHERE found.kept) AS kept
FROM (
  SELECT c.kind, c.source, false AS archived, c.content <> '' AS kept FROM captures c
  WHERE c.tenant_id = :tenant_id AND c.capture_id = ANY (ARRAY({captures_of_person o} UNION SELECT capture_id FROM named))
  UNION ALL
  SELECT 'archived', 'archived', true, false FROM archived_captures c CROSS JOIN e
  WHERE c.tenant_id = :tenant_id AND ({concerned c} OR c.capture_id IN (SELECT capture_id FROM named)) AND {covered_capture c}
) found
GROUP BY found.kind, found.source ORDER BY found.kind, found.source

-- name: facts
-- plan: each time
-- The candidates of the person that still have content, and how many rows hang on them.
WITH e AS MATERIALIZED (SELECT :names::text[] AS names, '{}'::text[] AS facts, '{}'::text[] AS captures),
named AS MATERIALIZED (SELECT DISTINCT capture_id FROM capture_names WHERE tenant_id = :tenant_id AND name = ANY (:names)),
theirs AS MATERIALIZED (
  SELECT c.candidate_id, c.content <> '' AS kept FROM candidates c
  WHERE c.tenant_id = :tenant_id AND c.candidate_id = ANY (ARRAY({candidates_of_person o}))
  UNION
  SELECT c.candidate_id, c.content <> '' FROM candidates c CROSS JOIN e
  WHERE c.tenant_id = :tenant_id AND c.capture_id = ANY (ARRAY(SELECT capture_id FROM named)) AND {covered_fact c}),
proposed AS MATERIALIZED (
  SELECT p.proposal_id, {undecided p} AS waits FROM proposals p
  WHERE p.tenant_id = :tenant_id AND p.candidate_id = ANY (ARRAY(SELECT candidate_id FROM theirs)))
SELECT (SELECT count(*) FROM theirs WHERE kept) AS candidates,
  (SELECT count(*) FROM proposed WHERE waits) AS waiting,
  (SELECT count(*) FROM verdicts v WHERE v.tenant_id = :tenant_id AND v.remark IS NOT NULL
    AND v.proposal_id = ANY (ARRAY(SELECT proposal_id FROM proposed))) AS notes,
  (SELECT count(*) FROM rejection_marks k WHERE k.tenant_id = :tenant_id
    AND k.proposal_id = ANY (ARRAY(SELECT proposal_id FROM proposed))) AS rejection_marks

-- name: others
-- plan: each time
-- Keys, model answers, questions of recalls and evidence of consents that an erasure of the person would remove.
WITH e AS MATERIALIZED (SELECT :names::text[] AS names, '{}'::text[] AS facts, '{}'::text[] AS captures),
named AS MATERIALIZED (SELECT DISTINCT capture_id FROM capture_names WHERE tenant_id = :tenant_id AND name = ANY (:names))
SELECT (SELECT count(*) FROM subjects WHERE tenant_id = :tenant_id AND holder = ANY (:holders) AND wrapped_key IS NOT NULL) AS keys,
  (SELECT count(*) FROM extractions x WHERE x.tenant_id = :tenant_id AND x.capture_id = ANY (ARRAY(
    {captures_of_person o}
    UNION SELECT c.capture_id FROM captures c JOIN named n ON c.tenant_id = :tenant_id AND c.capture_id = n.capture_id))) AS extractions,
  (SELECT count(*) FROM recalls r CROSS JOIN e
    WHERE r.tenant_id = :tenant_id AND r.query IS NOT NULL AND {covered_recall r}) AS recall_queries,
  (SELECT count(*) FROM consents WHERE tenant_id = :tenant_id AND evidence <> '' AND subject = ANY (:names)) AS evidence,
  (SELECT count(*) FROM consents c WHERE c.tenant_id = :tenant_id AND c.subject = ANY (:names) AND c.action = 'grant'
    AND NOT EXISTS (SELECT FROM consents n WHERE n.tenant_id = :tenant_id AND n.supersedes = c.consent_id)) AS consents,
  (SELECT max(d.erased_at) FROM erasures d WHERE d.tenant_id = :tenant_id AND d.names && :names::text[]) AS erased_at

-- name: reads
-- plan: each time
-- The recalls of the person's own runs, and those among the latest :most of the tenant that returned something about them to
-- others, the latest first.
WITH e AS MATERIALIZED (SELECT :names::text[] AS names, '{}'::text[] AS facts, '{}'::text[] AS captures),
named AS MATERIALIZED (SELECT DISTINCT capture_id FROM capture_names WHERE tenant_id = :tenant_id AND name = ANY (:names)),
theirs AS MATERIALIZED (
  {memories_of_person o}
  UNION
  SELECT m.memory_id FROM named n
  JOIN candidates c ON c.tenant_id = :tenant_id AND c.capture_id = n.capture_id
  JOIN proposals p ON p.tenant_id = :tenant_id AND p.candidate_id = c.candidate_id
  JOIN memories m ON m.tenant_id = :tenant_id AND m.proposal_id = p.proposal_id
  CROSS JOIN e
  WHERE {covered_fact m}),
own AS MATERIALIZED (
  SELECT r.recall_id FROM recalls r
  WHERE r.tenant_id = :tenant_id AND r.user_id = :user_id AND (:after::text IS NULL OR r.recall_id < :after)
  ORDER BY r.recall_id DESC LIMIT :count),
others AS MATERIALIZED (
  SELECT DISTINCT late.recall_id
  FROM (SELECT r.recall_id, r.result_ids FROM recalls r WHERE r.tenant_id = :tenant_id ORDER BY r.recall_id DESC LIMIT :most) late
  CROSS JOIN LATERAL unnest(late.result_ids) AS given (memory_id)
  JOIN theirs t ON t.memory_id = given.memory_id
  WHERE :after::text IS NULL OR late.recall_id < :after
  ORDER BY late.recall_id DESC LIMIT :count)
SELECT r.recall_id, r.at, r.agent_id, r.run_id, coalesce(r.user_id = :user_id, false) AS own_run,
  ARRAY(SELECT given.memory_id FROM unnest(r.result_ids) AS given (memory_id) JOIN theirs t ON t.memory_id = given.memory_id) AS memory_ids
FROM recalls r
WHERE r.tenant_id = :tenant_id AND r.recall_id IN (SELECT recall_id FROM own UNION SELECT recall_id FROM others)
ORDER BY r.recall_id DESC LIMIT :count
