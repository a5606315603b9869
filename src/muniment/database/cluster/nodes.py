"""The nodes of a cluster, as the coordinator's catalogue names them, and which of them holds a tenant.

A node is known by its group: when a standby takes its place, the group gets another address.
"""

from dataclasses import dataclass
from typing import Any

from psycopg import AsyncConnection
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from muniment.errors import StorageUnavailable

# All tables are divided by tenant in the same way, so one of them says where a tenant's rows are.
DIVIDED = "muniment.tenant_clock"
COORDINATOR = 0

_DIVIDED = """
SELECT EXISTS (SELECT FROM pg_catalog.pg_dist_partition WHERE logicalrelid = to_regclass(%s) AND partmethod = 'h')
"""
_GROUP = """
SELECT p.groupid FROM pg_catalog.pg_dist_placement p
WHERE p.shardid = pg_catalog.get_shard_id_for_distribution_column(%s::regclass, %s::text)
"""
_SHARD = """
SELECT p.groupid, pg_catalog.shard_name(%s::regclass, p.shardid) FROM pg_catalog.pg_dist_placement p
WHERE p.shardid = pg_catalog.get_shard_id_for_distribution_column(%s::regclass, %s::text)
"""
_SERVERS = """
SELECT groupid, nodename, nodeport FROM pg_catalog.pg_dist_node WHERE groupid <> 0
ORDER BY groupid, noderole <> 'primary', nodename, nodeport
"""
# So that a node that no longer answers is given up within seconds.
_TIMEOUTS = {"connect_timeout": 5, "keepalives_idle": 10, "keepalives_interval": 5, "tcp_user_timeout": 30_000}


@dataclass(frozen=True)
class Node:
    """A node beside the coordinator: its primary, and the standbys that the catalogue knows."""

    group: int
    servers: tuple[tuple[str, int], ...]

    @property
    def name(self) -> str:
        """The primary's host and port."""
        return "{}:{}".format(*self.servers[0])

    def conninfo(self, coordinator: str) -> str:
        """The address of its servers, with the login, the database and all else of the coordinator's address."""
        place: dict[str, Any] = {
            key: value
            for key, value in conninfo_to_dict(coordinator).items()
            if key not in ("host", "hostaddr", "port", "target_session_attrs")
        }
        place["host"] = ",".join(host for host, _ in self.servers)
        place["port"] = ",".join(str(port) for _, port in self.servers)
        place |= _TIMEOUTS
        if len(self.servers) > 1:
            place["target_session_attrs"] = "read-write"
        return make_conninfo(**place)


@dataclass(frozen=True)
class Shard:
    """The part of a table that holds a tenant's rows: the node's group, and the name of the table there."""

    group: int
    name: str


async def is_divided(connection: AsyncConnection) -> bool:
    """Whether the tables are divided over a cluster: False on one server, and before `db distribute`."""
    return await _is_divided(connection, DIVIDED)


async def nodes(connection: AsyncConnection) -> tuple[Node, ...]:
    """The nodes beside the coordinator, active or not; none on one server."""
    if await _value(connection, "SELECT to_regclass('pg_catalog.pg_dist_node')") is None:
        return ()
    by_group: dict[int, list[tuple[str, int]]] = {}
    for group, host, port in await (await connection.execute(_SERVERS)).fetchall():
        by_group.setdefault(int(group), []).append((str(host), int(port)))
    return tuple(Node(group, tuple(servers)) for group, servers in by_group.items())


async def conninfo_of(connection: AsyncConnection, group: int, coordinator: str) -> str:
    """The address of the node of that group, with all else of the coordinator's; the coordinator's own for itself."""
    if group == COORDINATOR:
        return coordinator
    found = [node.conninfo(coordinator) for node in await nodes(connection) if node.group == group]
    if not found:
        raise StorageUnavailable("the node was just removed from the cluster")
    return found[0]


async def node_of(coordinator: str, tenant_id: str) -> str:
    """The address of the server that holds a tenant's rows, also of a tenant without any: the same on one server."""
    async with await AsyncConnection.connect(coordinator, autocommit=True) as connection:
        if not await is_divided(connection):
            return coordinator
        group = await group_of(connection, tenant_id)
        return coordinator if group is None else await conninfo_of(connection, group, coordinator)


async def group_of(connection: AsyncConnection, tenant_id: str) -> int | None:
    """The group of the node that holds a tenant's rows, also of a tenant without any."""
    found = await _value(connection, _GROUP, DIVIDED, tenant_id)
    return int(str(found)) if found is not None else None


async def shard_of(connection: AsyncConnection, table: str, tenant_id: str) -> Shard | None:
    """The shard of that table which holds a tenant's rows; None if the table is not divided over a cluster."""
    if not await _is_divided(connection, table):
        return None
    row = await (await connection.execute(_SHARD, [table, table, tenant_id])).fetchone()
    return Shard(int(row[0]), str(row[1]).removeprefix("muniment.")) if row is not None else None


async def answers(connection: AsyncConnection, group: int, seconds: float) -> bool:
    """Have the coordinator connect to a node; False if that takes longer, or the node is not to be used."""
    await connection.execute(f"SET citus.node_connection_timeout = {int(seconds * 1000)}".encode())
    query = (
        "SELECT isactive AND pg_catalog.citus_check_connection_to_node(nodename, nodeport) FROM pg_catalog.pg_dist_node"
        " WHERE groupid = %s AND noderole = 'primary'"
    )
    found = await _value(connection, query, group)
    # A node that was removed from the cluster holds no tenant any more.
    return found is None or bool(found)


async def _is_divided(connection: AsyncConnection, table: str) -> bool:
    if await _value(connection, "SELECT to_regclass('pg_catalog.pg_dist_partition')") is None:
        return False
    return bool(await _value(connection, _DIVIDED, table))


async def _value(connection: AsyncConnection, query: str, *arguments: object) -> object:
    row = await (await connection.execute(query.encode(), arguments or None)).fetchone()
    return row[0] if row is not None else None
