"""The purge on every node of a cluster (ERA-3, SCL-6); on one server, the purge there.

Each node has a log, snapshots and files of its own, and a shard that was moved stays on its old node for a while. The
receipt says `purged_at` only if every node was reached and cleared. The nodes' addresses are those that the
coordinator's catalogue names; the owner's login, password and database are the same on all of them.

INVARIANT: the tenant's shards are where they were when they were rewritten. A shard that was moved meanwhile has rows
on its new node that were deleted while it was copied, and no rewrite has removed those.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import anyio
import psycopg
from psycopg import AsyncConnection

from muniment.database.address import Address
from muniment.database.cluster.nodes import COORDINATOR, Node, Shard, nodes, shard_of
from muniment.erasure import purge
from muniment.errors import PurgeIncomplete

# Distributed tables of which the coordinator still holds rows from before they were distributed.
_OWN_ROWS = """
SELECT c.relname FROM pg_catalog.pg_dist_partition d JOIN pg_class c ON c.oid = d.logicalrelid
WHERE d.partmethod = 'h' AND c.relkind = 'r' AND pg_relation_size(c.oid) > 0 ORDER BY c.relname
"""
_LEFT_OVER = "SELECT object_name FROM pg_catalog.pg_dist_cleanup ORDER BY object_name"
# How often to have Citus remove moved shards, and the seconds between.
_CLEANUPS, _CLEANUP_PAUSE = 10, 0.5


@dataclass(frozen=True)
class Servers:
    """The servers that a purge has to clear: the one of the address, and the other nodes of its cluster."""

    conninfo: str
    nodes: tuple[Node, ...] = ()

    @classmethod
    async def of(cls, conninfo: str) -> "Servers":
        """Find the nodes of the server's cluster, if it has any."""
        async with await AsyncConnection.connect(conninfo, autocommit=True) as connection:
            return cls(conninfo, await nodes(connection))

    async def each(self, step: Callable[[str], Awaitable[object]]) -> None:
        """Call `step` with each server's address; raises `PurgeIncomplete` that names the node where it failed."""
        try:
            await step(self.conninfo)
        except PurgeIncomplete as error:
            if not self.nodes:
                raise
            raise PurgeIncomplete(f"the coordinator: {error.message}") from error
        for node in self.nodes:
            try:
                await step(node.conninfo(self.conninfo))
            except PurgeIncomplete as error:
                raise PurgeIncomplete(f"node {node.name}: {error.message}") from error
            except psycopg.OperationalError as error:
                raise _unreached(node) from error

    async def clear_logs(self, named: tuple[str, ...]) -> None:
        """Clear the write-ahead log of every server; `named` are standbys of the server of the address alone."""
        await self.each(lambda place: purge.clear_log(place, named=named if place == self.conninfo else ()))

    async def problems(self) -> list[str]:
        """What makes a complete purge impossible: settings and missing rights of a node, nodes that do not answer."""
        found = await purge.purge_problems(self.conninfo)
        if self.nodes:
            found = [f"the coordinator: {problem}" for problem in found]
        for node in self.nodes:
            try:
                there = await purge.purge_problems(node.conninfo(self.conninfo))
            except psycopg.OperationalError:
                found.append(_unreached(node).message)
            else:
                found += [f"node {node.name}: {problem}" for problem in there]
        return found

    async def require_nothing_left_behind(self) -> None:
        """Have Citus remove moved shards from their old nodes.

        Raises `PurgeIncomplete` if one is left, or if the coordinator holds rows from before they were distributed.
        """
        if not self.nodes:
            return
        async with await AsyncConnection.connect(self.conninfo, autocommit=True) as connection:
            if kept := await (await connection.execute(_OWN_ROWS)).fetchall():
                tables = ", ".join(str(table) for (table,) in kept)
                raise PurgeIncomplete(
                    "the coordinator still has rows from before the tables were distributed: run "
                    f"truncate_local_data_after_distributing_table() on each of {tables}"
                )
            left: list[tuple[object, ...]] = []
            for _ in range(_CLEANUPS):
                await connection.execute("CALL pg_catalog.citus_cleanup_orphaned_resources()")
                left = await (await connection.execute(_LEFT_OVER)).fetchall()
                if not left:
                    return
                # Citus leaves out what its own maintenance removes at this moment, or what somebody still reads.
                await anyio.sleep(_CLEANUP_PAUSE)
            raise PurgeIncomplete(f"{len(left)} shards are not removed yet from the node that they were moved from")

    async def rewrite(self, address: Address, tenant_id: str) -> dict[str, Shard]:
        """Rewrite the tables or shards that held content or keys of the tenant; return the shards by table.

        Raises `PurgeIncomplete` if the owner cannot connect to the node.
        """
        if not self.nodes:
            await purge.rewrite(address, tenant_id)
            return {}
        shards = await self._shards(address, tenant_id)
        for node in self.nodes:
            here = [shard.name for shard in shards.values() if shard.group == node.group]
            if not here:
                continue
            try:
                place = node.conninfo(address.for_owner())
                async with await AsyncConnection.connect(place, autocommit=True) as connection:
                    await purge.rewrite_tables(connection, here)
            except psycopg.OperationalError as error:
                raise _unreached(node) from error
        async with await AsyncConnection.connect(address.for_owner(), autocommit=True) as connection:
            # Tables that are not divided, and shards on the coordinator.
            own = [table for table in await purge.tables_of(connection, tenant_id) if table not in shards]
            own += [shard.name for shard in shards.values() if shard.group == COORDINATOR]
            await purge.rewrite_tables(connection, own)
        return shards

    async def require_unmoved(self, address: Address, tenant_id: str, shards: dict[str, Shard]) -> None:
        """Raise `PurgeIncomplete` if the nodes, or where the tenant's shards are, changed since the rewrite."""
        if not self.nodes and not shards:
            return
        if await Servers.of(self.conninfo) != self:
            raise PurgeIncomplete("the nodes of the cluster changed during the purge")
        if await self._shards(address, tenant_id) != shards:
            raise PurgeIncomplete("the tenant was moved to another node during the purge")

    async def _shards(self, address: Address, tenant_id: str) -> dict[str, Shard]:
        async with await AsyncConnection.connect(address.for_owner(), autocommit=True) as connection:
            found = {
                table: await shard_of(connection, f"muniment.{table}", tenant_id)
                for table in await purge.tables_of(connection, tenant_id)
            }
        return {table: shard for table, shard in found.items() if shard is not None}


def _unreached(node: Node) -> PurgeIncomplete:
    return PurgeIncomplete(
        f"node {node.name} does not answer, or refuses the owner's login: its log is not cleared; a purge connects "
        "from here to every node, at the host and port that pg_dist_node names, with the owner's password"
    )
