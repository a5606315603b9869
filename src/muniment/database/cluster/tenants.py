"""The tenants of a database, without those whose node of a cluster does not answer."""

import json
from dataclasses import dataclass

from psycopg import AsyncConnection

from muniment.database.address import Address
from muniment.database.cluster.nodes import is_divided

# A statement on the table itself fails if one node does not answer, so each node is asked for its own shards.
_OF_NODES = """
SELECT r.node_name || ':' || r.node_port, r.success, r.result
FROM (
  SELECT array_agg(name) AS names, array_agg(port) AS ports, array_agg(command) AS commands
  FROM (
    SELECT n.nodename AS name, n.nodeport AS port, format('SELECT json_agg(tenant_id) FROM (%s) t',
      string_agg(format('SELECT tenant_id FROM muniment.%I', 'tenants_' || s.shardid), ' UNION ALL ')) AS command
    FROM pg_catalog.pg_dist_shard s
    JOIN pg_catalog.pg_dist_placement p ON p.shardid = s.shardid
    JOIN pg_catalog.pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'
    WHERE s.logicalrelid = 'muniment.tenants'::regclass
    GROUP BY n.nodename, n.nodeport) each) all_nodes
CROSS JOIN LATERAL pg_catalog.master_run_on_worker(names, ports, commands, true) r
WHERE names IS NOT NULL
"""
# How long connecting to a node may take.
_CONNECT_MS = 2000


@dataclass(frozen=True)
class ReachedTenants:
    """The tenants that were found, and the nodes whose tenants were not, by host and port."""

    tenants: tuple[str, ...]
    away: tuple[str, ...] = ()


async def reached_tenants(address: Address) -> ReachedTenants:
    """List every tenant whose rows can be read now; the schema has to be current."""
    async with await AsyncConnection.connect(address.direct().for_task("jobs"), autocommit=True) as jobs:
        if not await is_divided(jobs):
            rows = await (await jobs.execute("SELECT tenant_id FROM tenants ORDER BY tenant_id")).fetchall()
            return ReachedTenants(tuple(str(row[0]) for row in rows))
        await jobs.execute(f"SET citus.node_connection_timeout = {_CONNECT_MS}".encode())
        return from_answers(await (await jobs.execute(_OF_NODES)).fetchall())


def from_answers(rows: list[tuple[str, bool, str | None]]) -> ReachedTenants:
    """Read the answers of the nodes: each one's name, whether it answered, and its tenants as JSON."""
    found = {tenant for _, answered, result in rows if answered and result for tenant in json.loads(result)}
    return ReachedTenants(tuple(sorted(found)), tuple(sorted(node for node, answered, _ in rows if not answered)))
