-- Who looks at which proposal is called presence. What the old table held counts for half a minute only, so it is not copied.

-- include schema/00_helpers.sql

CREATE TABLE presence (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  proposal_id text COLLATE "C" NOT NULL,
  principal   text COLLATE "C" NOT NULL,
  since       timestamptz NOT NULL CHECK (isfinite(since)),
  at          timestamptz NOT NULL CHECK (isfinite(at)),
  PRIMARY KEY (tenant_id, proposal_id, principal),
  FOREIGN KEY (tenant_id, proposal_id) REFERENCES proposals (tenant_id, proposal_id)
);
CREATE INDEX presence_by_time ON presence (tenant_id, at);
SELECT rows_of_tenant('presence');
SELECT add_policy('presence', 'restore', 'INSERT', writes => $$tenant_id = current_setting('muniment.restoring', true)$$, login => 'owner');
ALTER TABLE presence ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE (since, at) ON presence TO muniment_writer;
GRANT SELECT (tenant_id, at), DELETE ON presence TO muniment_jobs;
DROP TABLE attendances;

DROP FUNCTION rows_of_tenant, rows_of_transaction, add_writing_policy, add_policy, divide_by_tenant, key_between_partitions, no_samples;
