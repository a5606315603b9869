-- What is of one person is found by an index: of their own runs, or about them. So are corrections, and what was
-- promoted is counted from an index.
-- oldest program: 0051

CREATE INDEX captures_by_user ON captures (tenant_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX captures_by_subject ON captures (tenant_id, subject) WHERE subject IS NOT NULL;
CREATE INDEX captures_by_entity ON captures (tenant_id, entity) WHERE entity IS NOT NULL;

CREATE INDEX candidates_by_user ON candidates (tenant_id, user_id) WHERE user_id IS NOT NULL;
CREATE INDEX candidates_by_subject ON candidates (tenant_id, subject) WHERE subject IS NOT NULL;
CREATE INDEX candidates_by_entity ON candidates (tenant_id, entity) WHERE entity IS NOT NULL;

CREATE INDEX memories_by_user ON memories (tenant_id, user_id) WHERE user_id <> '';
CREATE INDEX memories_by_subject ON memories (tenant_id, subject) WHERE subject IS NOT NULL;
CREATE INDEX memories_of_corrections ON memories (tenant_id, born_seq, memory_id) WHERE class = 'correction';
DROP INDEX memories_by_number;
CREATE INDEX memories_by_number ON memories (tenant_id, born_seq, memory_id) INCLUDE (tier, class, approver_kind);
