-- The processes that hold an index of the tenant's memories, each with the number up to which it has dropped what ended, and
-- the end of its lease (ADR 56).

CREATE TABLE index_holders (
  tenant_id     text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  holder_id     text COLLATE "C" NOT NULL,
  confirmed_seq bigint NOT NULL,
  leased_until  timestamptz NOT NULL,
  PRIMARY KEY (tenant_id, holder_id)
);
ALTER TABLE index_holders ENABLE ROW LEVEL SECURITY;
ALTER TABLE index_holders FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant ON index_holders USING (tenant_id = current_setting('muniment.tenant', true));
GRANT SELECT, INSERT, UPDATE (confirmed_seq, leased_until), DELETE ON index_holders TO muniment_recall;
GRANT SELECT, DELETE ON index_holders TO muniment_jobs;
