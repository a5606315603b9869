-- A capture can be consolidated again: each consolidation has a number, and from the second on somebody who asked for it.
-- The gates that a candidate must have passed are read from a function that the program keeps up to date.

-- Who asked for which consolidation, and why. The key settles who is first; a row is written once.
CREATE TABLE reruns (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  capture_id text COLLATE "C" NOT NULL,
  number     int NOT NULL CHECK (number > 1),
  seq        bigint NOT NULL,
  ordered_at timestamptz NOT NULL,
  txid       xid8 NOT NULL,
  by         text COLLATE "C" NOT NULL,
  reason     text NOT NULL CHECK (reason IN ('consent_changed', 'extractor_changed', 'pack_changed', 'requested')),
  PRIMARY KEY (tenant_id, capture_id, number),
  FOREIGN KEY (tenant_id, seq, ordered_at, txid) REFERENCES ticks (tenant_id, seq, at, txid)
);
ALTER TABLE reruns ENABLE ROW LEVEL SECURITY;
ALTER TABLE reruns FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON reruns FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_rerun ON reruns FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = muniment.transaction_mark());
GRANT SELECT, INSERT ON reruns TO muniment_writer;
GRANT SELECT ON reruns TO muniment_auditor;

-- Each consolidation of a capture happens once. All but the first need a row in `reruns` (`ordered` is null for the first).
ALTER TABLE consolidations ADD COLUMN number int NOT NULL DEFAULT 1;
ALTER TABLE consolidations ADD COLUMN ordered int GENERATED ALWAYS AS (nullif(number, 1)) STORED;
ALTER TABLE consolidations ADD CONSTRAINT consolidations_number CHECK (number >= 1);
ALTER TABLE consolidations DROP CONSTRAINT consolidations_pkey;
ALTER TABLE consolidations ADD PRIMARY KEY (tenant_id, capture_id, number);
ALTER TABLE consolidations ADD CONSTRAINT consolidations_ordered
  FOREIGN KEY (tenant_id, capture_id, ordered) REFERENCES reruns (tenant_id, capture_id, number);

-- The consolidation that waits.
ALTER TABLE retries ADD COLUMN number int NOT NULL DEFAULT 1;

-- The consolidation that a candidate or a refusal comes from.
ALTER TABLE candidates ADD COLUMN consolidation int NOT NULL DEFAULT 1;
ALTER TABLE candidates DROP CONSTRAINT candidates_tenant_id_capture_id_extractor_ordinal_key;
ALTER TABLE candidates ADD CONSTRAINT candidates_one_of_a_consolidation
  UNIQUE (tenant_id, capture_id, consolidation, extractor, ordinal);
ALTER TABLE refusals ADD COLUMN consolidation int NOT NULL DEFAULT 1;
ALTER TABLE refusals DROP CONSTRAINT refusals_pkey;
ALTER TABLE refusals ADD PRIMARY KEY (tenant_id, capture_id, consolidation, extractor, ordinal);
CREATE INDEX refusals_by_time ON refusals (tenant_id, seq, capture_id, ordinal);

-- What a candidate stated before the gates changed anything, as a digest under the key of its holder that includes the
-- capture: a fact is proposed once from a capture, however often that is consolidated. Null for edits and copies.
ALTER TABLE candidates ADD COLUMN fact bytea;
CREATE UNIQUE INDEX candidates_one_fact ON candidates (tenant_id, fact) WHERE fact IS NOT NULL;

-- The gates that every new candidate must have passed, in order. `migrate` replaces the body with the program's own list,
-- so a new gate needs no change of the schema; until it has, no candidate can be written.
CREATE FUNCTION required_gates() RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE RETURN '["none"]'::jsonb;

-- Checked when a candidate is written and never later: those from before had other gates, and an erasure blanks them.
ALTER TABLE candidates DROP CONSTRAINT candidates_passed_every_gate;
DROP POLICY tenant_insert ON candidates;
CREATE POLICY tenant_insert ON candidates FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND live_capture_id = capture_id
    AND jsonb_path_query_array(gates, '$[*].gate') = required_gates());

-- No samples of digests, as of nothing that is made from content.
DO $$
BEGIN
  FOR n IN 0..7 LOOP
    EXECUTE format('ALTER TABLE %I ALTER COLUMN fact SET STATISTICS 0', 'candidates_' || n);
  END LOOP;
END $$;
ALTER TABLE candidates ALTER COLUMN fact SET STATISTICS 0;
