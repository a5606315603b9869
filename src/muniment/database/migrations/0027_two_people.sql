-- Two people by the look of their names (REV-15): who registered a pack and who puts it in force, where that takes two; and
-- who said a thing and who approves it.
ALTER TABLE pack_activations DROP CONSTRAINT pack_activations_second_person;
ALTER TABLE pack_activations ADD CONSTRAINT pack_activations_second_person CHECK (
  NOT second_person OR (by_kind = 'operator' AND NOT muniment.is_among(activated_by, ARRAY[registered_by])));

-- Whoever said a thing counts as its author, whoever wrote it down (REV-4).
ALTER TABLE memories ADD CONSTRAINT memories_not_by_who_said_it CHECK (
  NOT (sensitive OR tier = 'durable' OR tier_derived = 'durable')
  OR vouched IS DISTINCT FROM 'user' OR NOT muniment.is_among(approver, ARRAY[user_id])) NOT VALID;
