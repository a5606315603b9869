-- How often a candidate holds values that its pack excepts from redaction, by kind; null: never (RED-5).

ALTER TABLE candidates ADD COLUMN exceptions jsonb;
