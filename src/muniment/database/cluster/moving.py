"""Gives a large tenant a shard of its own, and moves a tenant to another node, by functions of Citus, as a superuser.

While rows are copied, calls for the tenants of that shard wait, recalls too because each is recorded. Nothing is lost.
Afterwards the settings that a new shard has lost are restored.
"""

from dataclasses import dataclass

from psycopg import AsyncConnection, sql

from muniment.database.address import Address
from muniment.database.cluster import checks
from muniment.database.cluster.catalogue import NodeUse, use_of_nodes
from muniment.database.cluster.guard import weakened
from muniment.database.cluster.nodes import is_divided
from muniment.database.migrate import holding_the_schema
from muniment.errors import InvalidInput, NotFound, StorageUnavailable

_MAY_MOVE = "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
_ANSWERS = "SELECT citus_check_connection_to_node(%s, %s::int)"
_KNOWN = "SELECT FROM muniment.tenants WHERE tenant_id = %s"
_SHARD = """
SELECT s.shardid, n.nodename, n.nodeport, s.shardminvalue = s.shardmaxvalue
FROM pg_dist_shard s JOIN pg_dist_placement p USING (shardid)
JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary'
WHERE s.shardid = get_shard_id_for_distribution_column('muniment.tenants', %s::text)
"""
# Writers wait while rows are copied. With logical replication they would not have to, but that refuses to write into
# tables with row security: a move would never end once somebody writes.
_MODE = "shard_transfer_mode => 'block_writes'"


@dataclass(frozen=True)
class Placement:
    """Where a tenant's rows are: node and shard, and whether the shard is the tenant's `alone`.

    `repaired` is the number of columns whose samples were switched off after a move.
    """

    tenant_id: str
    node: str
    shard: int
    alone: bool
    repaired: int = 0


async def isolate(address: Address, tenant_id: str) -> Placement:
    """Give a tenant a shard of its own, on the node where it is; returns where its rows are then.

    Raises `NotFound` for an unknown tenant, and `InvalidInput` where there is no cluster, or for another user than a
    superuser.
    """
    async with holding_the_schema(address) as connection:
        if not (await _place(connection, tenant_id)).alone:
            call = f"SELECT isolate_tenant_to_new_shard('muniment.tenants', {{}}::text, 'CASCADE', {_MODE})"
            await connection.execute(sql.SQL(call).format(tenant_id))
        return await _repair_and_find(connection, tenant_id)


async def move(address: Address, tenant_id: str, node: str) -> Placement:
    """Move the shard that holds a tenant, with every tenant in it, to another active node; returns where it is then.

    Raises as `isolate` does, `InvalidInput` for a node that is not one of the active ones, and `StorageUnavailable` for
    one that does not answer.
    """
    async with holding_the_schema(address) as connection:
        place = await _place(connection, tenant_id)
        known = {one.name: one for one in await use_of_nodes(connection)}
        active = sorted(name for name, one in known.items() if one.active)
        if node not in active:
            raise InvalidInput(f"expected one of {', '.join(active)}", field="to")
        if place.node != node:
            source, target = known[place.node], known[node]
            for one in (source, target):
                await _require_answer(connection, one)
            call = f"SELECT citus_move_shard_placement({{}}, {{}}, {{}}, {{}}, {{}}, {_MODE})"
            places = (source.host, source.port, target.host, target.port)
            await connection.execute(sql.SQL(call).format(place.shard, *places))
        return await _repair_and_find(connection, tenant_id)


async def _require_answer(connection: AsyncConnection, node: NodeUse) -> None:
    found = await connection.execute(_ANSWERS, [node.host, node.port])
    row = await found.fetchone()
    if row is None or not row[0]:
        raise StorageUnavailable(f"the node {node.name} does not answer")


async def _place(connection: AsyncConnection, tenant_id: str) -> Placement:
    if not await is_divided(connection):
        raise InvalidInput("this database is on one server; to distribute it, run: muniment db distribute")
    row = await (await connection.execute(_MAY_MOVE)).fetchone()
    if row is None or not row[0]:
        # The owner would copy only what row security shows it, which is nothing: the rows would be lost.
        raise InvalidInput("only a superuser moves tenants: give the coordinator's address with one", field="url")
    row = await (await connection.execute(_SHARD, [tenant_id])).fetchone()
    async with connection.transaction():
        known = await (await connection.execute(_KNOWN, [tenant_id])).fetchone()
    if row is None or known is None:
        raise NotFound("there is no such tenant", field="tenant")
    return Placement(tenant_id, f"{row[1]}:{row[2]}", int(row[0]), bool(row[3]))


async def _repair_and_find(connection: AsyncConnection, tenant_id: str) -> Placement:
    """Restore the settings that a new shard has lost, check the cluster, and return where the tenant is."""
    repaired = await checks.repair(connection)
    if problems := await checks.problems(connection):
        raise weakened(problems)
    place = await _place(connection, tenant_id)
    return Placement(place.tenant_id, place.node, place.shard, place.alone, repaired)
