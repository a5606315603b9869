-- What asks to forget or to correct a memory waits for a person, who picks which one is meant (CAN-12).
ALTER TABLE proposals ADD CONSTRAINT proposals_ask_a_person CHECK (action = 'promote' OR NOT auto_eligible);
