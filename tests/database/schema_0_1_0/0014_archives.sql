-- Archives: what the compaction has to see, the number at which each file was written, and a collector that takes only what
-- its own transaction archives.

-- Whether a proposal that is open rests on a capture.
GRANT SELECT (capture_id) ON candidates TO muniment_jobs;
-- By which a capture that leaves lets go of its candidates.
CREATE INDEX candidates_by_live_capture ON candidates (tenant_id, live_capture_id) WHERE live_capture_id IS NOT NULL;

-- Each revision of a file belongs to a number, whose event names its digest: the audit chain proves the files too.
ALTER TABLE archive_files
  ADD COLUMN seq  bigint NOT NULL,
  ADD COLUMN txid xid8 NOT NULL,
  ADD FOREIGN KEY (tenant_id, seq, written_at, txid) REFERENCES ticks (tenant_id, seq, at, txid);
DROP POLICY tenant ON archive_files;
CREATE POLICY tenant_read ON archive_files FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_write ON archive_files FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = pg_current_xact_id());

-- Archived captures by when they came, for figures of that time.
CREATE INDEX archived_captures_by_number ON archived_captures (tenant_id, seq);

-- Only what an archive of this very transaction holds, and all of it. What models answered about a capture is blanked with it:
-- no erasure would find it any more.
CREATE OR REPLACE FUNCTION collect_captures(wanted text) RETURNS bigint LANGUAGE plpgsql SECURITY DEFINER
SET search_path = muniment, pg_temp AS $$
DECLARE
  here text := current_setting('muniment.tenant');
  held int;
  gone bigint;
BEGIN
  SELECT a.captures INTO held FROM archives a JOIN archive_files f ON f.tenant_id = here AND f.archive_id = a.archive_id
  WHERE a.tenant_id = here AND a.archive_id = wanted AND a.txid = pg_current_xact_id();
  IF NOT FOUND THEN
    RAISE EXCEPTION 'no archive of this transaction' USING ERRCODE = 'insufficient_privilege';
  END IF;
  UPDATE extractions x SET answer = '' FROM archived_captures a
  WHERE x.tenant_id = here AND a.tenant_id = here AND a.archive_id = wanted AND a.capture_id = x.capture_id;
  DELETE FROM captures c USING archived_captures a
  WHERE c.tenant_id = here AND a.tenant_id = here AND a.archive_id = wanted AND a.capture_id = c.capture_id AND a.seq = c.seq;
  GET DIAGNOSTICS gone = ROW_COUNT;
  IF gone <> held THEN
    RAISE EXCEPTION 'the archive says it holds other captures' USING ERRCODE = 'insufficient_privilege';
  END IF;
  RETURN gone;
END $$;
