-- A capture is consolidated without a language model that fails, and waits for its answer alone (CAN-14).

ALTER TABLE retries ADD COLUMN late text COLLATE "C" CONSTRAINT retries_late CHECK (late IS NULL OR (late IN ('answer', 'model') AND number > 1));
GRANT UPDATE (number, late) ON retries TO muniment_writer;

ALTER TABLE reruns DROP CONSTRAINT reruns_reason_check;
ALTER TABLE reruns ADD CONSTRAINT reruns_reason_check
  CHECK (reason IN ('consent_changed', 'extractor_changed', 'pack_changed', 'requested', 'late_answer'));
