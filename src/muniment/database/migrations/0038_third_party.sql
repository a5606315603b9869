-- A fact of a special category about somebody else than its speaker is for the runs of one user alone, rests on a consent and is
-- promoted by a second person; an edit stays confined to that user (CAN-16). No candidate or memory was marked before.

ALTER TABLE candidates ADD COLUMN confined_to text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE candidates ADD COLUMN prior_confined_to text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE candidates ADD CONSTRAINT candidates_third_party CHECK (
  confined_to = CASE WHEN third_party THEN coalesce(user_id, '') ELSE '' END
  AND (NOT third_party OR (confined_to <> '' AND subject IS NOT NULL AND consent_id IS NOT NULL)));
ALTER TABLE candidates ADD CONSTRAINT candidates_stay_confined CHECK (
  prior_confined_to = '' OR (edits IS NOT NULL AND prior_confined_to = confined_to));

DO $$
BEGIN
  FOR n IN 0..7 LOOP
    EXECUTE format('ALTER TABLE candidates_%s DROP CONSTRAINT candidates_tenant_id_edits_prior_editors_fkey', n);
  END LOOP;
END $$;
ALTER TABLE candidates DROP CONSTRAINT candidates_tenant_id_candidate_id_editors_key;
ALTER TABLE candidates ADD CONSTRAINT candidates_to_edit UNIQUE (tenant_id, candidate_id, editors, confined_to);
DO $$
BEGIN
  FOR n IN 0..7 LOOP
    -- The owner sees the rows meanwhile that the foreign key is checked against.
    EXECUTE format('ALTER TABLE candidates_%s NO FORCE ROW LEVEL SECURITY', n);
    EXECUTE format('ALTER TABLE candidates_%s ADD CONSTRAINT candidates_tenant_id_edits_prior_editors_prior_confined_to_fkey'
      ' FOREIGN KEY (tenant_id, edits, prior_editors, prior_confined_to)'
      ' REFERENCES candidates_%s (tenant_id, candidate_id, editors, confined_to)', n, n);
    EXECUTE format('ALTER TABLE candidates_%s FORCE ROW LEVEL SECURITY', n);
  END LOOP;
END $$;

ALTER TABLE memories DROP CONSTRAINT memories_third_party;
ALTER TABLE memories ADD CONSTRAINT memories_third_party CHECK (NOT third_party OR (
  approver_kind = 'operator' AND user_id <> '' AND consent_id IS NOT NULL
  AND NOT muniment.is_among(approver, array_prepend(author, editors))
  AND (vouched IS DISTINCT FROM 'user' OR NOT muniment.is_among(approver, ARRAY[user_id]))));
