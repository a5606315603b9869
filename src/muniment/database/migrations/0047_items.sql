-- An agent is told what of the items that it put waits for a person: they are found by their entity.
-- oldest program: 0045

CREATE INDEX candidates_items ON candidates (tenant_id, entity) WHERE predicate = 'item';
