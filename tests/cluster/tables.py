"""The few tables of the program that tests of nodes need, divided over a cluster."""

from muniment.database.transaction import TASKS
from muniment.opening import OWNER
from tests.cluster.databases import ClusterDatabase

_TABLES = """
CREATE SCHEMA muniment AUTHORIZATION muniment_owner;
CREATE TABLE muniment.tenant_clock (tenant_id text COLLATE "C" PRIMARY KEY, seq bigint NOT NULL DEFAULT 0,
  at timestamptz);
CREATE TABLE muniment.job_runs (tenant_id text COLLATE "C", job text, ran_at timestamptz NOT NULL, seq bigint NOT NULL,
  next_at timestamptz, took double precision, failures int NOT NULL DEFAULT 0, error text, PRIMARY KEY (tenant_id, job));
CREATE TABLE muniment.requests (tenant_id text COLLATE "C", principal text, key text, content bytea,
  CONSTRAINT requests_once PRIMARY KEY (tenant_id, principal, key));
CREATE TABLE muniment.resets (tenant_id text COLLATE "C", id text, key text, principal text DEFAULT 'a',
  PRIMARY KEY (tenant_id, id), CONSTRAINT resets_of_request FOREIGN KEY (tenant_id, principal, key)
  REFERENCES muniment.requests DEFERRABLE INITIALLY DEFERRED);
"""
# By the owner, as migrations make them: another database may have them already.
_LOGIN = """
DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'muniment_{0}') THEN CREATE ROLE muniment_{0} LOGIN; END IF; END $$
"""
_NAMES = ("tenant_clock", "job_runs", "requests", "resets")


def make_tables(cluster: ClusterDatabase) -> None:
    for task in TASKS:
        cluster.execute(_LOGIN.format(task), place=cluster.owner)
    cluster.execute("SET citus.shard_count = 4; " + _TABLES)
    for name in _NAMES:
        cluster.execute(f"ALTER TABLE muniment.{name} OWNER TO {OWNER}")
    for name in _NAMES:
        beside = "default" if name == _NAMES[0] else f"muniment.{_NAMES[0]}"
        cluster.execute(
            "SET citus.shard_count = 4; "
            f"SELECT create_distributed_table('muniment.{name}', 'tenant_id', colocate_with => '{beside}')"
        )
    cluster.execute("GRANT USAGE ON SCHEMA muniment TO muniment_recall, muniment_jobs, muniment_writer")
    cluster.execute(
        "GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA muniment TO muniment_recall, muniment_jobs, muniment_writer"
    )
