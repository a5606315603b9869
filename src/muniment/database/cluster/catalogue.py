"""The catalogue of a cluster: the tables with a tenant, which of them are distributed, and what each node holds."""

from dataclasses import dataclass

from psycopg import AsyncConnection

_TABLES = """
SELECT c.relname FROM pg_class c
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant_id' AND NOT a.attisdropped
WHERE c.relnamespace = 'muniment'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
ORDER BY c.relname
"""
_DISTRIBUTED = """
SELECT c.relname FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid
WHERE c.relnamespace = 'muniment'::regnamespace AND NOT c.relispartition AND p.partmethod = 'h'
"""
# `db distribute` keeps the foreign keys that it has dropped and not made again in this table, until it ends.
_UNFINISHED = """
SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname = 'muniment' AND c.relname = 'keys_to_restore'
"""
_NODES = """
SELECT n.nodename, n.nodeport, n.groupid = 0, n.isactive, count(s.shardid), coalesce(sum(s.shard_size), 0)::bigint
FROM pg_dist_node n
LEFT JOIN citus_shards s ON s.nodename = n.nodename AND s.nodeport = n.nodeport
  AND s.table_name IN (SELECT oid FROM pg_class WHERE relnamespace = 'muniment'::regnamespace)
WHERE n.noderole = 'primary'
GROUP BY n.nodeid ORDER BY n.groupid, n.nodeid
"""


@dataclass(frozen=True)
class NodeUse:
    """A node of a cluster, with the number and the size of our shards on it."""

    host: str
    port: int
    coordinator: bool
    active: bool
    shards: int
    bytes: int

    @property
    def name(self) -> str:
        """Host and port, as messages and commands name a node."""
        return f"{self.host}:{self.port}"


async def is_unfinished(connection: AsyncConnection) -> bool:
    """Whether `db distribute` was begun and has not ended; any login may ask."""
    found = await connection.execute(_UNFINISHED)
    return await found.fetchone() is not None


async def has_citus(connection: AsyncConnection) -> bool:
    """Whether the database has the extension."""
    found = await connection.execute("SELECT FROM pg_extension WHERE extname = 'citus'")
    return await found.fetchone() is not None


async def tenant_tables(connection: AsyncConnection) -> list[str]:
    """The tables with a tenant, without their partitions."""
    return [str(row[0]) for row in await (await connection.execute(_TABLES)).fetchall()]


async def distributed_tables(connection: AsyncConnection) -> set[str]:
    """The tables that are distributed already."""
    return {str(row[0]) for row in await (await connection.execute(_DISTRIBUTED)).fetchall()}


async def use_of_nodes(connection: AsyncConnection) -> list[NodeUse]:
    """The primary of each node, the coordinator first, with the number and size of our shards on it."""
    return [NodeUse(*row) for row in await (await connection.execute(_NODES)).fetchall()]
