-- Who registered a pack and who puts it in force, where that takes two, are two people by the look of their names (REV-15).
ALTER TABLE pack_activations DROP CONSTRAINT pack_activations_second_person;
ALTER TABLE pack_activations ADD CONSTRAINT pack_activations_second_person CHECK (
  NOT second_person OR (by_kind = 'operator' AND NOT muniment.is_among(activated_by, ARRAY[registered_by])));
