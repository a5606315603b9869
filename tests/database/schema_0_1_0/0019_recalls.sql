-- The recalls of one user or one run, the latest first: their ids begin with the time. Those of the tenant are found by
-- the primary key.
CREATE INDEX recalls_by_user ON recalls (tenant_id, user_id, recall_id) WHERE user_id IS NOT NULL;
CREATE INDEX recalls_by_run ON recalls (tenant_id, run_id, recall_id);
