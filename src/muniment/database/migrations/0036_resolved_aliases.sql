-- A backfill also moves memories whose entity or subject has a namespace that became an alias (PAC-7).

ALTER TABLE backfill_items DROP CONSTRAINT backfill_items_change_check;
ALTER TABLE backfill_items ADD CONSTRAINT backfill_items_change_check CHECK (change IN ('renamed', 'retyped', 'alias_resolved', 'dropped'));
