-- What people who work in the console need beneath it: who else has a proposal before them, denials in a long log.

-- Who looks at which proposal, since when, and when they were last seen to. No verdict: nothing rests on it, and it is
-- forgotten once they look no more.
CREATE TABLE attendances (
  tenant_id   text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  proposal_id text COLLATE "C" NOT NULL,
  principal   text COLLATE "C" NOT NULL,
  since       timestamptz NOT NULL CHECK (isfinite(since)),
  at          timestamptz NOT NULL CHECK (isfinite(at)),
  PRIMARY KEY (tenant_id, proposal_id, principal),
  FOREIGN KEY (tenant_id, proposal_id) REFERENCES proposals (tenant_id, proposal_id)
);
CREATE INDEX attendances_by_time ON attendances (tenant_id, at);
ALTER TABLE attendances ENABLE ROW LEVEL SECURITY;
ALTER TABLE attendances FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON attendances USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT, UPDATE (since, at) ON attendances TO muniment_writer;
GRANT SELECT (tenant_id, at), DELETE ON attendances TO muniment_jobs;

-- Denied attempts are few among all events, and are what is looked for first.
CREATE INDEX events_of_security ON events (tenant_id, seq, n) WHERE type = 'memory.security';
