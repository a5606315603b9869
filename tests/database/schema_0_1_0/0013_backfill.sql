-- Changing a pack: history tried against another one, and memories that follow a new ontology.

-- A backtest asks, as the auditor, whether a candidate was rejected before: keyed hashes, and no text.
GRANT SELECT ON rejection_marks TO muniment_auditor;

-- Orders to bring live memories under the ontology of a pack: who gave it is the approver of every record it makes. `seq`
-- bounds what it is about; `place_seq` and `place` are how far it has come, in the order of promotion. One at a time: what
-- is not finished stands alone in its tenant, and what is finished stays so.
CREATE TABLE backfills (
  tenant_id        text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  backfill_id      text COLLATE "C" NOT NULL,
  seq              bigint NOT NULL,
  ordered_at       timestamptz NOT NULL,
  txid             xid8 NOT NULL,
  ordered_by       text COLLATE "C" NOT NULL CHECK (ordered_by <> 'muniment:backfill'),
  pack             text COLLATE "C" NOT NULL,
  ontology_version text COLLATE "C" NOT NULL,
  from_versions    text[] COLLATE "C" NOT NULL,
  place_seq        bigint NOT NULL DEFAULT 0,
  place            text COLLATE "C" NOT NULL DEFAULT '',
  finished_at      timestamptz,
  PRIMARY KEY (tenant_id, backfill_id),
  FOREIGN KEY (tenant_id, pack) REFERENCES packs (tenant_id, pack),
  FOREIGN KEY (tenant_id, seq, ordered_at, txid) REFERENCES ticks (tenant_id, seq, at, txid)
);
CREATE UNIQUE INDEX backfills_one_at_a_time ON backfills (tenant_id) WHERE finished_at IS NULL;
ALTER TABLE backfills ENABLE ROW LEVEL SECURITY;
ALTER TABLE backfills FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON backfills FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_order ON backfills FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = pg_current_xact_id() AND finished_at IS NULL);
CREATE POLICY until_finished ON backfills FOR UPDATE
  USING (tenant_id = current_setting('muniment.tenant', true) AND finished_at IS NULL)
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT, UPDATE (place_seq, place, finished_at) ON backfills TO muniment_writer;
GRANT SELECT ON backfills TO muniment_auditor;

-- What became of each memory that an order is about; none twice. `reason` is a code, no content.
CREATE TABLE backfill_items (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  backfill_id text COLLATE "C" NOT NULL,
  memory_id   text COLLATE "C" NOT NULL,
  change      text NOT NULL CHECK (change IN ('renamed', 'retyped', 'dropped')),
  outcome     text NOT NULL CHECK (outcome IN ('migrated', 'merged', 'dropped', 'left', 'refused', 'held')),
  reason      text COLLATE "C",
  proposal_id text COLLATE "C",
  became      text COLLATE "C",
  at          timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, backfill_id, memory_id),
  FOREIGN KEY (tenant_id, backfill_id) REFERENCES backfills (tenant_id, backfill_id),
  FOREIGN KEY (tenant_id, memory_id) REFERENCES memories (tenant_id, memory_id),
  FOREIGN KEY (tenant_id, became) REFERENCES memories (tenant_id, memory_id),
  FOREIGN KEY (tenant_id, proposal_id) REFERENCES proposals (tenant_id, proposal_id),
  CHECK ((outcome IN ('migrated', 'merged')) = (became IS NOT NULL))
);
ALTER TABLE backfill_items ENABLE ROW LEVEL SECURITY;
ALTER TABLE backfill_items FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON backfill_items USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT ON backfill_items TO muniment_writer;
GRANT SELECT ON backfill_items TO muniment_auditor;
