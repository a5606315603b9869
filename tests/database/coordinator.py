"""One server whose catalogue says that it is the coordinator of a cluster with two other nodes.

The catalogue and the functions that Citus has are made in PostgreSQL's own schema; what they say is up to the test.
`tests/cluster` has a real cluster.
"""

from collections.abc import Callable

import psycopg

# Commands for the node `here` run on this server; the other nodes report no problem. One that is `gone` does not
# answer, one that is `deaf` can be connected to.
CATALOGUE = """
SET allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_node (nodeid int, groupid int, nodename text, nodeport int, noderole text, isactive bool);
CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass, partmethod "char");
CREATE TABLE pg_catalog.pg_dist_placement (shardid bigint, groupid int);
CREATE TABLE pg_catalog.pg_dist_shard (logicalrelid regclass, shardid bigint);
CREATE SEQUENCE pg_catalog.test_looks;
INSERT INTO pg_catalog.pg_dist_node VALUES (1, 0, 'here', 1, 'primary', true), (2, 1, 'near', 2, 'primary', true),
  (3, 2, 'far', 3, 'primary', true);
INSERT INTO pg_catalog.pg_dist_partition VALUES ('muniment.tenant_clock', 'h');
INSERT INTO pg_catalog.pg_dist_placement VALUES (101, 1), (102, 2);
CREATE FUNCTION pg_catalog.get_shard_id_for_distribution_column(regclass, text) RETURNS bigint LANGUAGE sql
  RETURN CASE WHEN $2 LIKE 'far%' THEN 102 ELSE 101 END;
CREATE FUNCTION pg_catalog.citus_check_connection_to_node(host text, port int) RETURNS bool LANGUAGE plpgsql AS $$
BEGIN PERFORM nextval('pg_catalog.test_looks'); RETURN host NOT LIKE 'gone%'; END $$;
CREATE FUNCTION pg_catalog.master_run_on_worker(hosts text[], ports int[], commands text[], parallel bool,
  OUT node_name text, OUT node_port int, OUT success bool, OUT result text)
RETURNS SETOF record LANGUAGE plpgsql AS $$
BEGIN
  FOR n IN 1..cardinality(hosts) LOOP
    node_name := hosts[n]; node_port := ports[n]; success := hosts[n] NOT IN ('gone', 'deaf');
    IF NOT success THEN result := 'it failed';
    ELSIF hosts[n] <> 'here' THEN result := '{"restrictive": 0, "unforced": 0, "policies": 0, "unheld": [], "logged": [], "sampled": []}';
    ELSIF commands[n] LIKE 'DO %' THEN EXECUTE commands[n]; result := 'DO';
    ELSE EXECUTE commands[n] INTO result; END IF;
    RETURN NEXT;
  END LOOP;
END $$;
GRANT SELECT ON pg_catalog.pg_dist_node, pg_catalog.pg_dist_partition, pg_catalog.pg_dist_placement,
  pg_catalog.pg_dist_shard TO PUBLIC;
GRANT USAGE ON SEQUENCE pg_catalog.test_looks TO PUBLIC;
"""
Change = Callable[[str], list[tuple[object, ...]]]


def changes(conninfo: str) -> Change:
    """A function that runs statements at that address of a superuser, in the catalogue too."""

    def execute(statement: str) -> list[tuple[object, ...]]:
        with psycopg.connect(conninfo, autocommit=True) as connection:
            connection.execute("SET allow_system_table_mods = on")
            found = connection.execute(statement.encode())
            return found.fetchall() if found.description else []

    return execute
