-- The tenant's visibility number: ticks that may change what a recall sees are marked as such, and the rows that do so
-- refer to those ticks only (ADR 55). All earlier ticks count as such.

ALTER TABLE ticks NO FORCE ROW LEVEL SECURITY;
ALTER TABLE ticks ADD COLUMN visible_seq bigint;
ALTER TABLE ticks ADD COLUMN mark uuid NOT NULL DEFAULT gen_random_uuid();
UPDATE ticks SET visible_seq = seq;
ALTER TABLE ticks ADD CONSTRAINT ticks_visible UNIQUE (tenant_id, visible_seq, at, txid);
ALTER TABLE ticks ADD CONSTRAINT ticks_visible_is_its_number CHECK (visible_seq = seq);

DO $$
DECLARE key record;
BEGIN
  FOR key IN SELECT * FROM (VALUES
    ('memories', 'born_seq, promoted_at, born_txid'), ('retractions', 'seq, retracted_at, txid'),
    ('tombstones', 'seq, tombstoned_at, txid'), ('contradictions', 'seq, opened_at, txid'),
    ('resolutions', 'seq, resolved_at, txid'), ('qualifications', 'seq, qualified_at, txid'),
    ('consents', 'seq, captured_at, txid'), ('pack_activations', 'seq, activated_at, txid'),
    ('erasures', 'seq, erased_at, txid')) AS keys (child, columns) LOOP
    EXECUTE format('ALTER TABLE %I NO FORCE ROW LEVEL SECURITY', key.child);
    EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', key.child,
      key.child || '_tenant_id_' || replace(key.columns, ', ', '_') || '_fkey');
    EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I FOREIGN KEY (tenant_id, %s) REFERENCES ticks (tenant_id, visible_seq, at, txid)',
      key.child, key.child || '_tenant_id_' || replace(key.columns, ', ', '_') || '_fkey', key.columns);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', key.child);
  END LOOP;
END $$;
ALTER TABLE ticks FORCE ROW LEVEL SECURITY;

CREATE INDEX retractions_by_number ON retractions (tenant_id, seq);
CREATE INDEX tombstones_by_number ON tombstones (tenant_id, seq);

-- That words or vectors of memories were made anew: an index in a process that was read before is read again.
CREATE TABLE index_rebuilds (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  seq       bigint NOT NULL,
  at        timestamptz NOT NULL,
  txid      xid8 NOT NULL,
  PRIMARY KEY (tenant_id, seq),
  FOREIGN KEY (tenant_id, seq, at, txid) REFERENCES ticks (tenant_id, visible_seq, at, txid)
);
ALTER TABLE index_rebuilds ENABLE ROW LEVEL SECURITY;
ALTER TABLE index_rebuilds FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON index_rebuilds FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_rebuild ON index_rebuilds FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = muniment.transaction_mark());
GRANT SELECT, INSERT ON index_rebuilds TO muniment_writer;
GRANT SELECT ON index_rebuilds TO muniment_recall, muniment_auditor;
