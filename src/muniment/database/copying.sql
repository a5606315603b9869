-- Copying a tenant: which tables there are, in which order, and the record that it was restored.

-- name: columns
-- The columns of every table with a tenant, without those that the database computes.
SELECT c.relname AS place, a.attname AS name
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = 'muniment'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
  AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
  AND EXISTS (SELECT FROM pg_attribute t WHERE t.attrelid = c.oid AND t.attname = 'tenant_id')
ORDER BY c.relname, a.attnum

-- name: references
-- Which table refers to which, by keys that are checked at once; a table's references to itself are checked with its statement.
SELECT DISTINCT p.relname AS place, r.relname AS parent
FROM pg_constraint k
JOIN pg_class p ON p.oid = coalesce(nullif(pg_partition_root(k.conrelid)::oid, 0), k.conrelid)
JOIN pg_class r ON r.oid = coalesce(nullif(pg_partition_root(k.confrelid)::oid, 0), k.confrelid)
WHERE k.contype = 'f' AND NOT k.condeferrable AND k.connamespace = 'muniment'::regnamespace AND p.oid <> r.oid
ORDER BY 1, 2

-- name: there
SELECT FROM tenant_clock WHERE tenant_id = :tenant_id

-- name: begin_restore
INSERT INTO tenant_restores (tenant_id, backup_id, restored_at, restored_by, digest, txid)
VALUES (:tenant_id, :backup_id, :at, :by, :digest, muniment.transaction_mark())

-- name: shards
-- Only on a node of a cluster: the shard of each table that holds the tenant's rows, and whether it is on this node.
SELECT c.relname AS place, pg_catalog.shard_name(d.logicalrelid, p.shardid) AS shard, p.groupid = l.groupid AS here
FROM pg_catalog.pg_dist_partition d
JOIN pg_class c ON c.oid = d.logicalrelid
JOIN pg_catalog.pg_dist_placement p
  ON p.shardid = pg_catalog.get_shard_id_for_distribution_column(d.logicalrelid, :tenant_id::text)
CROSS JOIN pg_catalog.pg_dist_local_group l
WHERE c.relnamespace = 'muniment'::regnamespace AND NOT c.relispartition AND d.partmethod = 'h'

-- name: add_key
INSERT INTO tenant_keys (tenant_id, version, wrapped, created_at) VALUES (:tenant_id, :version, :wrapped, :created_at)

-- name: keys
SELECT version, wrapped, created_at FROM tenant_keys WHERE tenant_id = :tenant_id ORDER BY version

-- name: data_keys
-- The wrapped data keys of all holders, after one of them.
SELECT holder, wrapped_key, key_version FROM subjects
WHERE tenant_id = :tenant_id AND wrapped_key IS NOT NULL AND holder > :after
ORDER BY holder LIMIT :count

-- name: archive_files
-- The archive files that should be there: the last revision of each that was not dropped.
SELECT DISTINCT ON (f.archive_id) f.archive_id, f.revision, f.digest, f.dropped FROM archive_files f
WHERE f.tenant_id = :tenant_id ORDER BY f.archive_id, f.revision DESC
