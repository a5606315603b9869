-- Which version of the language package reads a tenant's texts, and which one read a candidate or a refused fact (CAN-15).

CREATE TABLE language_versions (
  tenant_id  text COLLATE "C" NOT NULL CHECK (tenant_id <> ''),
  seq        bigint NOT NULL,
  version    text COLLATE "C" NOT NULL CHECK (version <> ''),
  adopted_at timestamptz NOT NULL,
  adopted_by text COLLATE "C" NOT NULL,
  txid       xid8 NOT NULL,
  PRIMARY KEY (tenant_id, seq),
  FOREIGN KEY (tenant_id, seq, adopted_at, txid) REFERENCES ticks (tenant_id, seq, at, txid)
);
ALTER TABLE language_versions ENABLE ROW LEVEL SECURITY;
ALTER TABLE language_versions FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_read ON language_versions FOR SELECT USING (tenant_id = current_setting('muniment.tenant', true));
CREATE POLICY tenant_adopt ON language_versions FOR INSERT
  WITH CHECK (tenant_id = current_setting('muniment.tenant', true) AND txid = muniment.transaction_mark());
GRANT SELECT, INSERT ON language_versions TO muniment_writer;
GRANT SELECT ON language_versions TO muniment_recall, muniment_auditor;

ALTER TABLE candidates ADD COLUMN language text COLLATE "C";
ALTER TABLE refusals ADD COLUMN language text COLLATE "C";
