-- The key from a candidate to its capture has no action any more: a cluster refuses SET NULL in a key with the tenant (ADR 47).
-- The function that archives captures unbinds their candidates itself.

DO $$
DECLARE name CONSTANT text := 'candidates_tenant_id_capture_seq_live_capture_id_author_fkey'; part text; parent_part text;
BEGIN
  FOR n IN 0..7 LOOP
    part := 'candidates_' || n;
    parent_part := 'captures_' || n;
    -- The owner sees the rows meanwhile that the foreign key is checked against.
    EXECUTE format('ALTER TABLE %I NO FORCE ROW LEVEL SECURITY', part);
    EXECUTE format('ALTER TABLE %I NO FORCE ROW LEVEL SECURITY', parent_part);
    EXECUTE format('ALTER TABLE %I DROP CONSTRAINT %I', part, name);
    EXECUTE format('ALTER TABLE %I ADD CONSTRAINT %I FOREIGN KEY (tenant_id, capture_seq, live_capture_id, author)'
      ' REFERENCES %I (tenant_id, seq, capture_id, author)', part, name, parent_part);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', part);
    EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', parent_part);
  END LOOP;
END $$;

CREATE OR REPLACE FUNCTION collect_captures(wanted text) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = muniment, pg_temp AS $$
DECLARE
  here text := current_setting('muniment.tenant');
  held int;
  gone bigint;
BEGIN
  SELECT a.captures INTO held FROM archives a JOIN archive_files f ON f.tenant_id = here AND f.archive_id = a.archive_id
  WHERE a.tenant_id = here AND a.archive_id = wanted AND a.txid = muniment.transaction_mark();
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no archive of this transaction' USING ERRCODE = 'insufficient_privilege';
  END IF;
  UPDATE extractions x SET answer = '' FROM archived_captures a
  WHERE x.tenant_id = here AND a.tenant_id = here AND a.archive_id = wanted AND a.capture_id = x.capture_id;
  UPDATE candidates k SET live_capture_id = NULL FROM archived_captures a
  WHERE k.tenant_id = here AND a.tenant_id = here AND a.archive_id = wanted
    AND a.capture_id = k.live_capture_id AND a.seq = k.capture_seq;
  DELETE FROM captures c USING archived_captures a
  WHERE c.tenant_id = here AND a.tenant_id = here AND a.archive_id = wanted AND a.capture_id = c.capture_id AND a.seq = c.seq;
  GET DIAGNOSTICS gone = ROW_COUNT;
  IF gone <> held THEN
    RAISE EXCEPTION 'the archive says it holds other captures' USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN gone;
END $$;
