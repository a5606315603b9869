-- Archives: captures that moved from the database to files, and where to find them.

-- name: hold_off
-- Locked by transactions that make new candidates of old captures: the captures stay until the commit.
SELECT name FROM cursors WHERE tenant_id = :tenant_id AND name = 'archive' FOR SHARE

-- name: next
-- The kind and ontology version of the oldest capture that can be archived.
SELECT c.kind, c.ontology_version
FROM captures c JOIN unnest(:kinds::text[], :befores::timestamptz[]) AS h (kind, before) ON h.kind = c.kind
WHERE c.tenant_id = :tenant_id AND c.captured_at < h.before AND {settled c}
ORDER BY c.seq, c.capture_id LIMIT 1

-- name: page
-- Captures that can be archived together, in the order of their commits.
-- results: binary
SELECT c.* FROM captures c
WHERE c.tenant_id = :tenant_id AND c.kind = :kind AND c.ontology_version = :ontology_version AND c.captured_at < :before
  AND (c.seq, c.capture_id) > (:seq::bigint, :capture_id) AND {settled c}
ORDER BY c.seq, c.capture_id LIMIT :count

-- name: record
INSERT INTO archives (tenant_id, archive_id, seq, archived_at, txid, kind, ontology_version, captures, last_at)
VALUES (:tenant_id, :archive_id, :seq, :at, :txid, :kind, :ontology_version, :captures, :last_at)

-- name: record_file
INSERT INTO archive_files (tenant_id, archive_id, revision, digest, bytes, dropped, written_at, seq, txid)
VALUES (:tenant_id, :archive_id, :revision, :digest, :bytes, :dropped, :at, :seq, :txid)

-- name: record_captures
-- each: capture_id, seq, captured_at, holder, subject, user_id, entity, vouched
INSERT INTO archived_captures (tenant_id, archive_id, capture_id, seq, captured_at, holder, subject, user_id, entity, vouched)
VALUES (:tenant_id, :archive_id, :capture_id, :seq, :captured_at, :holder, :subject, :user_id, :entity, :vouched)

-- name: collect
-- plan: each time
SELECT collect_captures(:tenant_id::text COLLATE "C", :archive_id) AS captures

-- name: unsettled
-- Checked again under the tenant's tick: whether anything depends on an archived capture by now.
SELECT a.capture_id FROM archived_captures a
WHERE a.tenant_id = :tenant_id AND a.archive_id = :archive_id AND NOT ({settled a}) LIMIT 1

-- name: places
-- The archive file of each capture, and whether a later erasure reached the capture.
SELECT a.capture_id, a.archive_id, f.revision, f.digest, f.dropped, {reached a} AS erased
FROM archived_captures a
JOIN LATERAL {last_file a} f ON true
WHERE a.tenant_id = :tenant_id AND a.capture_id = ANY (:capture_ids)
ORDER BY a.archive_id

-- name: list
-- The archives with their current files, the latest first, from a place on.
SELECT a.tenant_id, a.archive_id, a.seq, a.archived_at, a.kind, a.ontology_version, a.captures, a.last_at,
  f.revision, f.digest, f.bytes, f.dropped, f.written_at
FROM archives a
JOIN LATERAL {last_file a} f ON true
WHERE a.tenant_id = :tenant_id AND (a.seq, a.archive_id) < (:seq::bigint, :after)
ORDER BY a.seq DESC, a.archive_id DESC LIMIT :count

-- name: place
SELECT seq FROM archives WHERE tenant_id = :tenant_id AND archive_id = :after

-- name: revisions
-- The current files of archives.
SELECT DISTINCT ON (archive_id) archive_id, revision, dropped FROM archive_files
WHERE tenant_id = :tenant_id AND archive_id = ANY (:archive_ids)
ORDER BY archive_id, revision DESC

-- name: known
-- Which captures are in the database, or in an archive that it knows.
SELECT capture_id FROM captures WHERE tenant_id = :tenant_id AND capture_id = ANY (:capture_ids)
UNION
SELECT capture_id FROM archived_captures WHERE tenant_id = :tenant_id AND capture_id = ANY (:capture_ids)

-- name: index
-- The captures that an archive should hold.
SELECT capture_id FROM archived_captures WHERE tenant_id = :tenant_id AND archive_id = :archive_id

-- name: outlived
-- Archives whose last capture is older than the retention.
SELECT a.archive_id, f.revision, f.digest, a.captures
FROM archives a
JOIN LATERAL {last_file a} f ON NOT f.dropped
WHERE a.tenant_id = :tenant_id AND a.last_at < :before
ORDER BY a.archive_id LIMIT :count

-- name: reached
-- Archives with captures that an erasure reached which is not purged yet.
SELECT DISTINCT a.archive_id
FROM erasures e
JOIN archived_captures a ON a.tenant_id = :tenant_id AND a.seq < e.seq AND {covered_capture a}
WHERE e.tenant_id = :tenant_id AND e.purged_at IS NULL
ORDER BY a.archive_id

-- name: to_blank
-- The captures of an archive that any later erasure reached.
SELECT a.capture_id FROM archived_captures a
WHERE a.tenant_id = :tenant_id AND a.archive_id = :archive_id AND {reached a}

-- name: one
-- An archive with its current file, if that was not dropped.
SELECT a.archive_id, a.kind, a.ontology_version, a.captures, f.revision, f.digest, f.seq AS file_seq
FROM archives a
JOIN LATERAL {last_file a} f ON NOT f.dropped
WHERE a.tenant_id = :tenant_id AND a.archive_id = :archive_id
