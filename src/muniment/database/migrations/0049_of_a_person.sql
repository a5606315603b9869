-- What is of one person is found by an index: sealed under their key, about them, or of their own runs.
-- oldest program: 0045

CREATE INDEX captures_of_person ON captures USING gin ((ARRAY[holder, subject, entity, '@' || user_id]));
CREATE INDEX candidates_of_person ON candidates USING gin ((ARRAY[holder, subject, entity, '@' || user_id]));
CREATE INDEX memories_of_person ON memories USING gin ((ARRAY[holder, subject, entity, '@' || user_id]));
