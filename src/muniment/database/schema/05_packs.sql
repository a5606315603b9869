-- Packs: every version that was registered, and which one is in force in a tenant since when.

-- A version is never changed. It can only be retired, once and for good.
CREATE TABLE packs (
  tenant_id        text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  pack             text COLLATE "C" NOT NULL,
  pack_id          text COLLATE "C" NOT NULL,
  version          text COLLATE "C" NOT NULL,
  ontology_version text COLLATE "C" NOT NULL,
  digest           text NOT NULL,
  document         jsonb NOT NULL,
  seq              bigint NOT NULL,
  registered_at    timestamptz NOT NULL,
  registered_by    text COLLATE "C" NOT NULL,
  retired_at       timestamptz,
  retired_by       text COLLATE "C",
  usable           boolean GENERATED ALWAYS AS (retired_at IS NULL) STORED,
  PRIMARY KEY (tenant_id, pack),
  UNIQUE (tenant_id, pack, usable),
  UNIQUE (tenant_id, pack, registered_by),
  CHECK (pack = pack_id || '@' || version),
  CHECK ((retired_at IS NULL) = (retired_by IS NULL))
);

-- The labels of a pack stand beside it, so that a memory's `sensitive` is what the pack says of its label, by foreign key.
CREATE TABLE pack_labels (
  tenant_id text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  pack      text COLLATE "C" NOT NULL,
  label     text COLLATE "C" NOT NULL,
  rank      smallint NOT NULL,
  sensitive boolean NOT NULL,
  PRIMARY KEY (tenant_id, pack, label),
  UNIQUE (tenant_id, pack, label, sensitive),
  FOREIGN KEY (tenant_id, pack) REFERENCES packs (tenant_id, pack)
);

-- That a pack lets end users confirm facts about themselves (SUB-2), and the trust that such a fact must have: the pack's floor.
CREATE TABLE pack_confirmations (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  pack        text COLLATE "C" NOT NULL,
  trust_floor float8 NOT NULL CHECK (trust_floor BETWEEN 0 AND 1),
  PRIMARY KEY (tenant_id, pack),
  UNIQUE (tenant_id, pack, trust_floor),
  FOREIGN KEY (tenant_id, pack) REFERENCES packs (tenant_id, pack)
);

-- Every activation. Each follows the one before it: `previous_seq` is unique, so that of two activations at once one
-- wins, the first one of a tenant included. `second_person` says that PAC-5 requires somebody other than who registered
-- the pack, by the look of their names (REV-15); who registered it is taken from `packs` by foreign key.
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
  FOREIGN KEY (tenant_id, seq, activated_at, txid) REFERENCES ticks (tenant_id, visible_seq, at, txid),
  FOREIGN KEY (tenant_id, pack, registered_by) REFERENCES packs (tenant_id, pack, registered_by),
  FOREIGN KEY (tenant_id, previous_seq, previous_pack) REFERENCES pack_activations (tenant_id, seq, pack),
  CHECK ((previous_seq IS NULL) = (previous_pack IS NULL)),
  CONSTRAINT pack_activations_second_person CHECK (
    NOT second_person OR (by_kind = 'operator' AND NOT muniment.is_among(activated_by, ARRAY[registered_by])))
);

-- The activation in force: one row for each tenant. What decides under a pack reads it in share mode, `activate` takes
-- it exclusively (PAC-9). It can only be moved to an activation of the same transaction, and a retired pack cannot
-- stand in it: `usable` is always true here and the pack's own by foreign key.
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

-- Which rows a transaction sees and writes.
SELECT rows_of_tenant('pack_labels', 'pack_confirmations');
SELECT add_policy('packs', 'tenant_read', 'SELECT');
SELECT add_policy('packs', 'tenant_register', 'INSERT', writes => 'retired_at IS NULL');
SELECT add_policy('packs', 'tenant_retire', 'UPDATE', sees => 'retired_at IS NULL', writes => 'retired_at IS NOT NULL', login => 'writer');
SELECT rows_of_transaction('pack_activations', 'tenant_activate');
SELECT rows_of_transaction('packs_in_force', 'tenant_first');
SELECT add_policy('packs_in_force', 'tenant_move', 'UPDATE', writes => 'txid = muniment.transaction_mark()', login => 'writer');
-- The jobs and the officer may lock the row and not change it.
CREATE POLICY tenant_hold ON packs_in_force FOR UPDATE TO muniment_jobs, muniment_privacy
  USING (tenant_id = current_setting('muniment.tenant', true)) WITH CHECK (false);

-- Who may do what.
GRANT SELECT, INSERT ON pack_labels, pack_confirmations, pack_activations TO muniment_writer;
GRANT SELECT ON packs, pack_labels, pack_activations, packs_in_force TO muniment_recall, muniment_auditor;
GRANT SELECT ON pack_confirmations TO muniment_auditor;
GRANT SELECT ON packs, pack_activations TO muniment_privacy, muniment_jobs;
GRANT SELECT, INSERT, UPDATE (retired_at, retired_by) ON packs TO muniment_writer;
GRANT SELECT, INSERT, UPDATE (seq, pack, txid) ON packs_in_force TO muniment_writer;
GRANT SELECT, UPDATE (lock) ON packs_in_force TO muniment_privacy, muniment_jobs;
