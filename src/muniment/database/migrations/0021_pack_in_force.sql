-- One pack is in force in a tenant at any moment; which one, since when, and who put it there.

-- Who may change a pack: nobody. A version can only be retired, once and for good.
ALTER TABLE packs ADD COLUMN retired_at timestamptz;
ALTER TABLE packs ADD COLUMN retired_by text COLLATE "C";
ALTER TABLE packs ADD COLUMN usable boolean GENERATED ALWAYS AS (retired_at IS NULL) STORED;
ALTER TABLE packs ADD CHECK ((retired_at IS NULL) = (retired_by IS NULL));
DROP POLICY tenant ON packs;
CREATE POLICY tenant_read ON packs FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_register ON packs FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND retired_at IS NULL);
ALTER TABLE packs ADD UNIQUE (tenant_id, pack, usable);
ALTER TABLE packs ADD UNIQUE (tenant_id, pack, registered_by);
CREATE POLICY tenant_retire ON packs FOR UPDATE TO muniment_writer
  USING (tenant_id = current_setting('muniment.tenant', true) AND retired_at IS NULL)
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND retired_at IS NOT NULL);
GRANT UPDATE (retired_at, retired_by) ON packs TO muniment_writer;
-- The jobs go by what the pack in force says.
GRANT SELECT ON packs TO muniment_jobs;

-- Every activation. Each follows the one before it: `previous_seq` is unique, so that of two activations at once one
-- wins, the first one of a tenant included. `second_person` says that PAC-5 asked for somebody other than who
-- registered the pack; who that was is the registry's word, by foreign key.
CREATE TABLE pack_activations (
  tenant_id     text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  seq           bigint NOT NULL,
  pack          text COLLATE "C" NOT NULL,
  activated_at  timestamptz NOT NULL,
  activated_by  text COLLATE "C" NOT NULL,
  by_kind       text NOT NULL CHECK (by_kind IN ('operator', 'system')),
  registered_by text COLLATE "C" NOT NULL,
  second_person boolean NOT NULL,
  loosens       text[] NOT NULL,
  reason        text NOT NULL CHECK (reason <> ''),
  previous_seq  bigint CHECK (previous_seq < seq),
  previous_pack text COLLATE "C",
  txid          xid8 NOT NULL,
  PRIMARY KEY (tenant_id, seq),
  UNIQUE (tenant_id, seq, pack),
  UNIQUE (tenant_id, seq, pack, txid),
  UNIQUE NULLS NOT DISTINCT (tenant_id, previous_seq),
  FOREIGN KEY (tenant_id, seq, activated_at, txid) REFERENCES ticks (tenant_id, seq, at, txid),
  FOREIGN KEY (tenant_id, pack, registered_by) REFERENCES packs (tenant_id, pack, registered_by),
  FOREIGN KEY (tenant_id, previous_seq, previous_pack) REFERENCES pack_activations (tenant_id, seq, pack),
  CHECK ((previous_seq IS NULL) = (previous_pack IS NULL)),
  CONSTRAINT pack_activations_second_person CHECK (
    NOT second_person OR (by_kind = 'operator' AND activated_by <> registered_by))
);
ALTER TABLE pack_activations ENABLE ROW LEVEL SECURITY;
ALTER TABLE pack_activations FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON pack_activations FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_activate ON pack_activations FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = pg_current_xact_id());
GRANT SELECT, INSERT ON pack_activations TO muniment_writer;
GRANT SELECT ON pack_activations TO muniment_recall, muniment_auditor, muniment_privacy, muniment_jobs;

-- The activation in force: one row for each tenant. What decides under a pack reads it in share mode, `activate` takes
-- it exclusively (PAC-9). It can only be moved to an activation of the same transaction, and a retired pack cannot
-- stand in it: `usable` is always true here and the registry's by foreign key.
CREATE TABLE packs_in_force (
  tenant_id text COLLATE "C" PRIMARY KEY CHECK (tenant_id <> ''),
  seq       bigint NOT NULL,
  pack      text COLLATE "C" NOT NULL,
  txid      xid8 NOT NULL,
  usable    boolean NOT NULL DEFAULT true CHECK (usable),
  lock      smallint NOT NULL DEFAULT 0 CHECK (lock = 0),
  FOREIGN KEY (tenant_id, seq, pack, txid) REFERENCES pack_activations (tenant_id, seq, pack, txid),
  FOREIGN KEY (tenant_id, pack, usable) REFERENCES packs (tenant_id, pack, usable)
);
ALTER TABLE packs_in_force ENABLE ROW LEVEL SECURITY;
ALTER TABLE packs_in_force FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON packs_in_force FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_first ON packs_in_force FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = pg_current_xact_id());
CREATE POLICY tenant_move ON packs_in_force FOR UPDATE TO muniment_writer
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = pg_current_xact_id());
CREATE POLICY tenant_hold ON packs_in_force FOR UPDATE TO muniment_jobs, muniment_privacy
  USING (tenant_id = current_setting('muniment.tenant', true))
  WITH CHECK (false);
GRANT SELECT, INSERT, UPDATE (seq, pack, txid) ON packs_in_force TO muniment_writer;
GRANT SELECT, UPDATE (lock) ON packs_in_force TO muniment_jobs, muniment_privacy;
GRANT SELECT ON packs_in_force TO muniment_recall, muniment_auditor;

-- A memory is decided under the pack of its verdict, which is the one in force then; the proposal may be older.
ALTER TABLE proposals ADD UNIQUE (tenant_id, proposal_id, candidate_id, tier_derived, class);
ALTER TABLE verdicts ADD UNIQUE (tenant_id, verdict_id, pack);
ALTER TABLE memories DROP CONSTRAINT memories_tenant_id_proposal_id_candidate_id_tier_derived_c_fkey;
ALTER TABLE memories ADD CONSTRAINT memories_of_its_proposal
  FOREIGN KEY (tenant_id, proposal_id, candidate_id, tier_derived, class)
  REFERENCES proposals (tenant_id, proposal_id, candidate_id, tier_derived, class);
ALTER TABLE memories ADD CONSTRAINT memories_under_the_pack_of_its_verdict
  FOREIGN KEY (tenant_id, verdict_id, pack) REFERENCES verdicts (tenant_id, verdict_id, pack);
ALTER TABLE proposals DROP CONSTRAINT proposals_tenant_id_proposal_id_candidate_id_tier_derived_c_key;

-- What is put off or ended because the pack changed.
ALTER TABLE verdicts DROP CONSTRAINT verdicts_cause_check;
ALTER TABLE verdicts ADD CONSTRAINT verdicts_cause_check CHECK (cause IN ('contradiction', 'budget', 'pack'));
