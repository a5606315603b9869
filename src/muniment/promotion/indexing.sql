-- The index of promoted memories: words, vectors, links. All of it can be rebuilt from their bodies.

-- name: add_vector
-- rank: 5
-- each: memory_id, embedder, vector
INSERT INTO memory_vectors (tenant_id, memory_id, embedder, vector) VALUES (:tenant_id, :memory_id, :embedder, :vector::halfvec)
ON CONFLICT DO NOTHING

-- name: add_words
-- rank: 5
-- each: memory_id, words, terms
INSERT INTO memory_words (tenant_id, memory_id, words, terms) VALUES (:tenant_id, :memory_id, :words, :terms)
ON CONFLICT DO NOTHING

-- name: add_link
-- rank: 5
-- each: memory_id, entity, links_to
INSERT INTO memory_links (tenant_id, memory_id, entity, links_to) VALUES (:tenant_id, :memory_id, :entity, :links_to)
ON CONFLICT DO NOTHING

-- name: embedders
-- The embedders that made vectors in this tenant, the latest first; and whether the tenant has a vector index.
SELECT e.embedder, e.dimensions, e.since, e.completed_at, (
  SELECT count(*) > 0 FROM pg_class c WHERE c.relnamespace = 'muniment'::regnamespace AND c.relname = :index) AS by_index
FROM embedders e WHERE e.tenant_id = :tenant_id ORDER BY e.since DESC, e.embedder

-- name: add_embedder
-- The first embedder of a tenant has nothing to catch up with. Whoever writes vectors has opened the tenant: it has a clock.
INSERT INTO embedders (tenant_id, embedder, dimensions, since, completed_at)
SELECT k.tenant_id, :embedder, :dimensions, :now,
  CASE WHEN NOT EXISTS (SELECT FROM embedders e WHERE e.tenant_id = :tenant_id) THEN :now::timestamptz END
FROM tenant_clock k WHERE k.tenant_id = :tenant_id
ON CONFLICT DO NOTHING

-- name: complete_embedder
UPDATE embedders SET completed_at = :now WHERE tenant_id = :tenant_id AND embedder = :embedder AND completed_at IS NULL

-- name: record_rebuild
INSERT INTO index_rebuilds (tenant_id, seq, at, txid) VALUES (:tenant_id, :seq, :at, :txid)

-- name: unindexed
-- Memories with a body that lack words, or a vector of that embedder, after an id; evidence links have neither.
SELECT {memory m}, NOT EXISTS (SELECT FROM memory_words w WHERE w.tenant_id = :tenant_id AND w.memory_id = m.memory_id) AS lacks_words
FROM memories m
JOIN memory_bodies b ON b.tenant_id = :tenant_id AND b.memory_id = m.memory_id
JOIN subjects s ON s.tenant_id = :tenant_id AND s.holder = m.holder
WHERE m.tenant_id = :tenant_id AND m.memory_id > :after AND m.class <> 'evidence_link'
  AND (NOT EXISTS (SELECT FROM memory_words w WHERE w.tenant_id = :tenant_id AND w.memory_id = m.memory_id)
    OR NOT EXISTS (SELECT FROM memory_vectors v WHERE v.tenant_id = :tenant_id AND v.memory_id = m.memory_id AND v.embedder = :embedder))
ORDER BY m.memory_id LIMIT :count

-- name: vector_index
-- How many vectors of that embedder there are, counted up to a number; and whether the tenant's index is whole: null if there
-- is none, false if its build did not come to its end or the planner may sample it.
SELECT (
    SELECT count(*) FROM (
      SELECT v.memory_id FROM memory_vectors v WHERE v.tenant_id = :tenant_id AND v.embedder = :embedder LIMIT :most) counted) AS vectors, (
    SELECT i.indisvalid AND coalesce(a.attstattarget, -1) = 0
    FROM pg_class c
    JOIN pg_index i ON i.indexrelid = c.oid
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = 1
    WHERE c.relnamespace = 'muniment'::regnamespace AND c.relname = :index) AS whole

-- name: postings
-- How many memories with words there are, counted up to a number; and whether the tenant has postings.
SELECT (
    SELECT count(*) FROM (SELECT FROM memory_words w WHERE w.tenant_id = :tenant_id LIMIT :most) counted) AS memories,
  EXISTS (SELECT FROM cursors u WHERE u.tenant_id = :tenant_id AND u.name = 'terms') AS made

-- name: next_unposted
-- The sequence up to which the next memories are: a transaction's memories are not divided.
SELECT max(upto.born_seq) AS seq
FROM (
  SELECT m.born_seq FROM memories m WHERE m.tenant_id = :tenant_id AND m.born_seq > :seq
  ORDER BY m.born_seq FETCH FIRST :count ROWS WITH TIES) upto

-- name: unposted
-- results: binary
-- The words of the memories between two sequences. Until the commit no erasure removes what they are the words of.
SELECT m.memory_id, m.user_id, w.terms
FROM memories m
JOIN memory_words w ON w.tenant_id = :tenant_id AND w.memory_id = m.memory_id
JOIN memory_bodies b ON b.tenant_id = :tenant_id AND b.memory_id = m.memory_id
WHERE m.tenant_id = :tenant_id AND m.born_seq > :seq AND m.born_seq <= :until
FOR KEY SHARE OF b

-- name: add_postings
-- each: user_id, memory_id, term
INSERT INTO memory_terms (tenant_id, user_id, memory_id, term) VALUES (:tenant_id, :user_id, :memory_id, :term)
ON CONFLICT DO NOTHING

-- name: reopen_postings
-- An old memory gets words: its postings are written again from there on.
UPDATE cursors SET seq = :seq WHERE tenant_id = :tenant_id AND name = 'terms' AND seq > :seq

-- name: drop_postings
DELETE FROM memory_terms WHERE tenant_id = :tenant_id

-- name: close_postings
DELETE FROM cursors WHERE tenant_id = :tenant_id AND name = 'terms'
