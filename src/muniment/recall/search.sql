-- Searching opened texts for a name: the sealed rows of one table after the other, each in the order of its ids.

-- name: name
-- What people call a subject; the id is the subject's.
SELECT holder AS row_id, holder, NULL AS capture_id, NULL AS memory_id, display_name AS content, wrapped_key, key_version
FROM subjects
WHERE tenant_id = :tenant_id AND display_name IS NOT NULL AND holder > :after ORDER BY holder LIMIT :count

-- name: memory
SELECT m.memory_id AS row_id, m.holder, m.capture_id, m.memory_id, b.content, s.wrapped_key, s.key_version
FROM memories m
JOIN memory_bodies b ON b.tenant_id = :tenant_id AND b.memory_id = m.memory_id
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = m.holder
WHERE m.tenant_id = :tenant_id AND m.memory_id > :after ORDER BY m.memory_id LIMIT :count

-- name: candidate
SELECT c.candidate_id AS row_id, c.holder, c.capture_id, NULL AS memory_id, c.content, s.wrapped_key, s.key_version
FROM candidates c
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = c.holder
WHERE c.tenant_id = :tenant_id AND c.content <> '' AND c.candidate_id > :after ORDER BY c.candidate_id LIMIT :count

-- name: capture
SELECT c.capture_id AS row_id, c.holder, c.capture_id, NULL AS memory_id, c.content, s.wrapped_key, s.key_version
FROM captures c
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = c.holder
WHERE c.tenant_id = :tenant_id AND c.content <> '' AND c.capture_id > :after ORDER BY c.capture_id LIMIT :count

-- name: archived
-- By id alone: their content is in files.
SELECT capture_id FROM archived_captures WHERE tenant_id = :tenant_id AND capture_id > :after ORDER BY capture_id LIMIT :count

-- name: note
SELECT v.verdict_id AS row_id, v.holder, c.capture_id, NULL AS memory_id, v.remark AS content, s.wrapped_key, s.key_version
FROM verdicts v
JOIN proposals p ON p.tenant_id = :tenant_id AND p.proposal_id = v.proposal_id
JOIN candidates c ON c.tenant_id = :tenant_id AND c.candidate_id = p.candidate_id
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = v.holder
WHERE v.tenant_id = :tenant_id AND v.remark IS NOT NULL AND v.verdict_id > :after ORDER BY v.verdict_id LIMIT :count

-- name: recall
SELECT r.recall_id AS row_id, r.holder, NULL AS capture_id, NULL AS memory_id, r.query AS content, s.wrapped_key, s.key_version
FROM recalls r
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = r.holder
WHERE r.tenant_id = :tenant_id AND r.query IS NOT NULL AND r.recall_id > :after ORDER BY r.recall_id LIMIT :count

-- name: consent
SELECT c.consent_id AS row_id, c.subject AS holder, NULL AS capture_id, NULL AS memory_id, c.evidence AS content, s.wrapped_key, s.key_version
FROM consents c
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = c.subject
WHERE c.tenant_id = :tenant_id AND c.evidence <> '' AND c.consent_id > :after ORDER BY c.consent_id LIMIT :count

-- name: facts
-- The first proposal that stands for each of these candidates, captures and verdicts: what `erase_fact` takes for a hit in one.
SELECT DISTINCT ON (found.id) found.id, found.proposal_id
FROM (
  SELECT c.candidate_id AS id, p.proposal_id FROM candidates c
  JOIN proposals p ON p.tenant_id = :tenant_id AND p.candidate_id = c.candidate_id
  WHERE c.tenant_id = :tenant_id AND c.candidate_id = ANY (:ids::text[])
  UNION ALL
  SELECT c.capture_id, p.proposal_id FROM candidates c
  JOIN proposals p ON p.tenant_id = :tenant_id AND p.candidate_id = c.candidate_id
  WHERE c.tenant_id = :tenant_id AND c.capture_id = ANY (:ids::text[])
  UNION ALL
  SELECT v.verdict_id, v.proposal_id FROM verdicts v WHERE v.tenant_id = :tenant_id AND v.verdict_id = ANY (:ids::text[])) found
ORDER BY found.id, found.proposal_id

-- name: total
-- How many texts there are to search.
SELECT
  (SELECT count(*) FROM subjects WHERE tenant_id = :tenant_id AND display_name IS NOT NULL) AS name,
  (SELECT count(*) FROM memory_bodies WHERE tenant_id = :tenant_id) AS memory,
  (SELECT count(*) FROM candidates WHERE tenant_id = :tenant_id AND content <> '') AS candidate,
  (SELECT count(*) FROM captures WHERE tenant_id = :tenant_id AND content <> '') AS capture,
  (SELECT count(*) FROM archived_captures WHERE tenant_id = :tenant_id) AS archived,
  (SELECT count(*) FROM verdicts WHERE tenant_id = :tenant_id AND remark IS NOT NULL) AS note,
  (SELECT count(*) FROM recalls WHERE tenant_id = :tenant_id AND query IS NOT NULL) AS recall,
  (SELECT count(*) FROM consents WHERE tenant_id = :tenant_id AND evidence <> '') AS consent

-- name: page
-- The last page of a search, with how many texts all its pages searched.
SELECT n.page, n.mark, n.erasure_id, n.place, n.row_id, n.finished,
  (SELECT sum(o.searched) FROM name_searches o WHERE o.tenant_id = :tenant_id AND o.search_id = n.search_id) AS searched
FROM name_searches n
WHERE n.tenant_id = :tenant_id AND n.search_id = :search_id ORDER BY n.page DESC LIMIT 1

-- name: record
INSERT INTO name_searches (tenant_id, search_id, page, prev, seq, at, txid, by, mark, erasure_id, place, row_id, searched, hits, finished)
VALUES (:tenant_id, :search_id, :page, :prev, :seq, :at, :txid, :by, :mark, :erasure_id, :place, :row_id, :searched, :hits, :finished)
