"""Migrations run on tables that are distributed over a cluster; the schema's policies and functions fit one."""

import re
from importlib.resources import files

import pytest

from muniment.database.migrate import migrations
from muniment.testing import TestServer
from tests.architecture.cluster_migrations import BEFORE_CLUSTERS, problems


@pytest.mark.rule("SCL-1", "SCL-2")
def test_no_migration_holds_what_a_cluster_refuses() -> None:
    folder = files("muniment.database") / "migrations"
    later = [step for step in migrations() if step.version > BEFORE_CLUSTERS]
    texts = {step.version: (folder / f"{step.version:04d}_{step.name}.sql").read_text("utf-8") for step in later}
    assert {version: found for version, text in texts.items() if (found := problems(text))} == {}


@pytest.mark.rule("SCL-2")
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE POLICY narrow ON memories AS RESTRICTIVE FOR SELECT USING (true);",
        "CREATE TRIGGER one BEFORE INSERT ON memories FOR EACH ROW EXECUTE FUNCTION one();",
        "ALTER TABLE a ADD FOREIGN KEY (tenant_id, b) REFERENCES b (tenant_id, b) ON DELETE SET NULL;",
        "CREATE EXTENSION IF NOT EXISTS vector;",
        "ALTER TABLE a ALTER COLUMN b SET STATISTICS 0;",
        "ALTER TABLE a ADD COLUMN b text CHECK (b <> '');",
        "ALTER TABLE a ADD b text CHECK (b <> '');",
        "ALTER POLICY p ON a USING (EXISTS (SELECT FROM b));",
        "INSERT INTO a (tenant_id, b) VALUES ('acme', (SELECT max(b) FROM a));",
        "UPDATE a SET b = CASE c WHEN 'x' THEN 'y' END;",
        "ALTER TABLE a ADD COLUMN b text,\n  ADD CONSTRAINT c CHECK (b <> '');",
        "CREATE POLICY p ON a FOR SELECT USING (EXISTS (SELECT FROM b WHERE b.tenant_id = a.tenant_id));",
        "SELECT add_policy('a', 'p', 'SELECT', sees => 'EXISTS (SELECT FROM b)');",
        "CREATE OR REPLACE TRIGGER one AFTER UPDATE ON memories FOR EACH ROW EXECUTE FUNCTION one();",
        "CREATE TABLE a (a_id text PRIMARY KEY);",
        "CREATE UNIQUE INDEX a_once ON a (b);",
        "CREATE UNIQUE INDEX IF NOT EXISTS a_once ON ONLY a USING btree (b, tenant_id) WHERE b <> '';",
        "CREATE UNIQUE INDEX a_once ON a (lower(b));",
        "ALTER TABLE a ADD CONSTRAINT a_once UNIQUE (b, c);",
        "ALTER TABLE a ADD CONSTRAINT a_once UNIQUE NULLS NOT DISTINCT (b, c);",
        "ALTER TABLE a ADD CONSTRAINT c FOREIGN KEY (b_id) REFERENCES b (b_id);",
        "ALTER TABLE a ADD CONSTRAINT c FOREIGN KEY (tenant_id, b_id) REFERENCES b (b_id, tenant_id);",
        "CREATE TABLE a (tenant_id text, b text UNIQUE, PRIMARY KEY (tenant_id, b));",
        "CREATE TABLE a (tenant_id text, b text REFERENCES b, PRIMARY KEY (tenant_id, b));",
        "CREATE TABLE a (tenant_id text, b text, PRIMARY KEY (tenant_id, b), FOREIGN KEY (b) REFERENCES b);",
        "SELECT set_config('muniment.tenant', 'acme', true);",
        "INSERT INTO a (tenant_id, b) SELECT 'acme', b FROM unnest(ARRAY['x', 'y']) b;",
        "CREATE FUNCTION f(whose text) RETURNS text[] LANGUAGE plpgsql AS $$\nDECLARE found text[];\n"
        "BEGIN found := ARRAY(SELECT b FROM a); RETURN found; END $$;",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql BEGIN ATOMIC SELECT 1; END",
    ],
)
def test_what_a_cluster_refuses_is_noticed(statement: str) -> None:
    assert len(problems(f"-- A comment.\n{statement}\nALTER TABLE a ADD COLUMN c text;"))


def test_what_a_cluster_takes_is_not_noticed() -> None:
    assert (
        problems("""
ALTER TABLE a ADD COLUMN b text; -- AS RESTRICTIVE in a comment
ALTER TABLE a ADD CONSTRAINT c CHECK (b <> '' OR b IN ('x', 'y'));
CREATE TABLE d (tenant_id text NOT NULL, d_id text, PRIMARY KEY (tenant_id, d_id));
ALTER TABLE d ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
SELECT add_policy('d', 'tenant', 'ALL');
CREATE TABLE e (tenant_id text REFERENCES tenants, e_id text, d_id text, PRIMARY KEY (tenant_id, e_id),
  UNIQUE (tenant_id, d_id), FOREIGN KEY (tenant_id, d_id) REFERENCES d);
CREATE UNIQUE INDEX e_once ON e USING btree (tenant_id, lower(e_id)) WHERE d_id IS NOT NULL;
CREATE INDEX e_by_d ON e (d_id);
ALTER TABLE e ADD CONSTRAINT e_of_d FOREIGN KEY (tenant_id, d_id) REFERENCES d (tenant_id, d_id);
CREATE FUNCTION f(whose text) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE found text[];
BEGIN SELECT array_agg(b) INTO found FROM a WHERE tenant_id = whose; RETURN found; END $$;
INSERT INTO a (tenant_id, b) SELECT tenant_id, b FROM c;
""")
        == []
    )


@pytest.mark.rule("SCL-2")
def test_no_policy_is_restrictive_or_contains_a_query(server: TestServer, database: str) -> None:
    with server.connect(database) as owner:
        found = owner.execute(
            "SELECT tablename, policyname, permissive, coalesce(qual, ''), coalesce(with_check, '') FROM pg_policies"
            " WHERE schemaname = 'muniment'"
        ).fetchall()
    assert found
    for table, policy, permissive, sees, writes in found:
        assert permissive == "PERMISSIVE", f"{policy} of {table}"
        assert not re.search(r"\bSELECT\b", f"{sees} {writes}"), f"{policy} of {table}"


@pytest.mark.rule("SCL-1")
def test_what_runs_as_the_owner_takes_the_tenant_first(server: TestServer, database: str) -> None:
    with server.connect(database) as owner:
        found = owner.execute(
            "SELECT proname, proargnames[1], prosrc FROM pg_proc WHERE pronamespace = 'muniment'::regnamespace AND prosecdef"
        ).fetchall()
    assert found
    for name, first, body in found:
        assert first == "whose", name
        assert 'here CONSTANT text COLLATE "C" := whose' in str(body), name
