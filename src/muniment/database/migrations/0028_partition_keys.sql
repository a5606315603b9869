-- Foreign keys between partitions of the same remainder, and no vector index but for large tenants (ADR 47).

-- A check against a partitioned table plans and locks all its partitions, a check against one partition only that. Both
-- tables have eight partitions by the hash of the tenant, which is the first column of the key: the row that a key points
-- at can only be in the partition of the same remainder. The names stay, and so do the actions.
DO $$
DECLARE key record; part text; parent_part text;
BEGIN
  FOR key IN SELECT * FROM (VALUES
    ('candidates', 'candidates_tenant_id_capture_seq_live_capture_id_author_fkey', 'tenant_id, capture_seq, live_capture_id, author',
      'captures', 'tenant_id, seq, capture_id, author', 'ON DELETE SET NULL (live_capture_id)'),
    ('candidates', 'candidates_tenant_id_edits_prior_editors_fkey', 'tenant_id, edits, prior_editors',
      'candidates', 'tenant_id, candidate_id, editors', ''),
    ('memory_vectors', 'memory_vectors_tenant_id_memory_id_fkey', 'tenant_id, memory_id',
      'memory_bodies', 'tenant_id, memory_id', 'ON DELETE CASCADE'),
    ('memory_terms', 'memory_terms_tenant_id_memory_id_fkey', 'tenant_id, memory_id',
      'memory_bodies', 'tenant_id, memory_id', 'ON DELETE CASCADE')
  ) AS keys (child, name, columns, parent, parent_columns, action) LOOP
    EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', key.child, key.name);
    FOR n IN 0..7 LOOP
      part := key.child || '_' || n;
      parent_part := key.parent || '_' || n;
      -- The owner sees the rows meanwhile that the foreign key is checked against.
      EXECUTE format('ALTER TABLE %I NO FORCE ROW LEVEL SECURITY', part);
      EXECUTE format('ALTER TABLE %I NO FORCE ROW LEVEL SECURITY', parent_part);
      EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I FOREIGN KEY (%s) REFERENCES %I (%s) %s',
        part, key.name, key.columns, parent_part, key.parent_columns, key.action);
      EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', part);
      EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', parent_part);
    END LOOP;
  END LOOP;
END $$;

-- The embed job makes an index of a large tenant's own vectors (database/vector_index.py); smaller tenants are compared
-- exactly, and pay for no index.
DROP INDEX memory_vectors_near;
