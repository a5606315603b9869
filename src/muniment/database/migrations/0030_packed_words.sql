-- The words of a memory in one row instead of one row for each word; postings for large tenants only (ADR 50).

CREATE TABLE memory_words (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  memory_id text COLLATE "C" NOT NULL,
  words     smallint NOT NULL CHECK (words > 0),
  terms     bytea NOT NULL CHECK (octet_length(terms) > 0 AND octet_length(terms) % 10 = 0),
  PRIMARY KEY (tenant_id, memory_id)
) PARTITION BY HASH (tenant_id);
DO $$
BEGIN
  FOR n IN 0..7 LOOP
    EXECUTE format('CREATE TABLE memory_words_%s PARTITION OF memory_words FOR VALUES WITH (MODULUS 8, REMAINDER %s)', n, n);
  END LOOP;
END $$;
-- Before there are rows: the planner keeps no samples of words.
ALTER TABLE memory_words ALTER COLUMN terms SET STATISTICS 0;

-- The same hashes, packed as database/packed_words.py does. The owner sees the rows meanwhile.
ALTER TABLE memory_terms NO FORCE ROW LEVEL SECURITY;
INSERT INTO memory_words (tenant_id, memory_id, words, terms)
SELECT tenant_id, memory_id, max(words), string_agg(int8send(term) || int2send(tf), '' ORDER BY term)
FROM memory_terms GROUP BY tenant_id, memory_id;

-- The job `embed` writes the postings of large tenants anew.
DROP TABLE memory_terms;
CREATE TABLE memory_terms (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  term      bigint NOT NULL,
  user_id   text COLLATE "C" NOT NULL,
  memory_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant_id, term, user_id, memory_id)
) PARTITION BY HASH (tenant_id);
CREATE INDEX memory_terms_by_memory ON memory_terms (tenant_id, memory_id);

DO $$
DECLARE place text;
BEGIN
  FOR n IN 0..7 LOOP
    EXECUTE format('CREATE TABLE memory_terms_%s PARTITION OF memory_terms FOR VALUES WITH (MODULUS 8, REMAINDER %s)', n, n);
    -- A key between partitions is checked against rows that the owner must see.
    EXECUTE format('ALTER TABLE memory_bodies_%s NO FORCE ROW LEVEL SECURITY', n);
    FOREACH place IN ARRAY ARRAY['memory_words', 'memory_terms'] LOOP
      EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I FOREIGN KEY (tenant_id, memory_id)'
        ' REFERENCES memory_bodies_%s (tenant_id, memory_id) ON DELETE CASCADE',
        place || '_' || n, place || '_tenant_id_memory_id_fkey', n);
      EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', place || '_' || n);
    END LOOP;
    EXECUTE format('ALTER TABLE memory_bodies_%s FORCE ROW LEVEL SECURITY', n);
  END LOOP;
  FOREACH place IN ARRAY ARRAY['memory_words', 'memory_terms'] LOOP
    EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', place);
    EXECUTE format('CREATE POLICY tenant ON %I USING (tenant_id = current_setting(''muniment.tenant'', true))', place);
  END LOOP;
END $$;
ALTER TABLE memory_terms ALTER COLUMN term SET STATISTICS 0;
GRANT SELECT, INSERT ON memory_words TO muniment_writer;
GRANT SELECT ON memory_words, memory_terms TO muniment_recall, muniment_auditor;
GRANT SELECT ON cursors TO muniment_recall;
