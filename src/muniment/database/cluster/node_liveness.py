"""Which nodes of a cluster are away, as far as this process knows.

While a node is away the coordinator answers, and only the tenants whose rows are on that node cannot be served. Once a
node is known to be away, calls for its tenants fail without being tried, and a single task tests the node until it
answers again. While all nodes answer, nothing here costs anything.
"""

import asyncio
import time
from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg import AsyncConnection

from muniment.database.cluster.errors import NodeAway
from muniment.database.cluster.nodes import COORDINATOR, answers, group_of, is_divided, nodes

# The tenant of transactions that belong to no tenant and may read from every node.
EVERY_TENANT = "*"
# How long a node may take to answer, and the pause before it is looked at again.
ANSWER_SECONDS = 1.0
AGAIN_SECONDS = 0.25
# How long the coordinator may take to say where a tenant is.
LOOKUP_SECONDS = 1.0
# How long it is remembered where a tenant is, and that a server is no cluster.
REMEMBERED_SECONDS = 10.0
_MOST_REMEMBERED = 100_000


class NodeLiveness:
    """Knows the nodes that are away, by their groups; `conninfo` is the coordinator's address for a task's login."""

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._watches: dict[int, asyncio.Task[None]] = {}
        self._looks: dict[int, asyncio.Task[bool]] = {}
        self._background: set[asyncio.Task[bool]] = set()
        # The group of each tenant that was asked for, and until when it is believed.
        self._groups: dict[str, tuple[float, int | None]] = {}
        self._plain_until = 0.0
        # One connection for questions about tenants, open while a node is away.
        self._lookup: AsyncConnection | None = None
        self._lookup_lock = asyncio.Lock()
        self._closed = False

    @property
    def away(self) -> list[int]:
        """The groups of the nodes that are away."""
        return sorted(self._watches)

    async def require(self, tenant_id: str) -> None:
        """Raise `NodeAway` if the tenant's node is known to be away."""
        if self._watches and await self.is_away(tenant_id):
            raise NodeAway

    async def is_away(self, tenant_id: str) -> bool:
        """Whether the tenant's node is known to be away."""
        return bool(self._watches) and await self._group(tenant_id) in self._watches

    def suspect(self, tenant_id: str) -> None:
        """Test the tenant's node in the background, after a statement failed because of it."""
        if self._closed:
            return
        look = asyncio.get_running_loop().create_task(self.look(tenant_id))
        self._background.add(look)
        look.add_done_callback(self._background.discard)

    async def look(self, tenant_id: str) -> bool:
        """Look whether the tenant's node answers, or every node for `EVERY_TENANT`; return whether one is away."""
        try:
            if tenant_id == EVERY_TENANT:
                return await self.look_at_all()
            group = await self._group(tenant_id)
            return group is not None and await self._look_at(group)
        except (psycopg.Error, OSError, TimeoutError):
            # The coordinator itself does not answer: then nothing is known about the node.
            return False

    async def look_at_all(self) -> bool:
        """Look whether every node answers; return whether one is away."""
        if time.monotonic() < self._plain_until:
            return False
        async with asyncio.timeout(LOOKUP_SECONDS), await self._connect() as connection:
            groups = [one.group for one in await nodes(connection)] if await self._is_cluster(connection) else []
        return any(await asyncio.gather(*(self._look_at(group) for group in groups)))

    async def among(self, tenants: Iterable[str]) -> set[str]:
        """Look at the nodes of these tenants; return the tenants whose node is away."""
        wanted = list(dict.fromkeys(tenants))
        found = await asyncio.gather(*(self.look(tenant_id) for tenant_id in wanted))
        return {tenant_id for tenant_id, away in zip(wanted, found, strict=True) if away}

    async def close(self) -> None:
        """Stop looking, for good."""
        self._closed = True
        tasks: list[asyncio.Task[Any]] = [*self._watches.values(), *self._looks.values(), *self._background]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._watches.clear()
        await self._close_lookup()

    async def _look_at(self, group: int) -> bool:
        """Test one node, once for all who ask at the same time; return whether it is away."""
        if group == COORDINATOR or group in self._watches:
            return group in self._watches
        look = self._looks.get(group)
        if look is None:
            look = self._looks[group] = asyncio.get_running_loop().create_task(self._first_look(group))
            look.add_done_callback(lambda _: self._looks.pop(group, None))
        return await asyncio.shield(look)

    async def _first_look(self, group: int) -> bool:
        if await self._answers(group) is not False:
            return False
        self._watches[group] = asyncio.get_running_loop().create_task(self._watch(group))
        return True

    async def _watch(self, group: int) -> None:
        """Look at a node that is away until it answers."""
        while await self._answers(group) is not True:  # noqa: ASYNC110  there is no notice of a node that is back
            await asyncio.sleep(AGAIN_SECONDS)
        self._watches.pop(group, None)
        if not self._watches:
            self._groups.clear()
            await self._close_lookup()

    async def _answers(self, group: int) -> bool | None:
        """Whether a node answers; None if the coordinator does not say."""
        # A connection of its own each time: an existing session would use the connection to the node that it has open.
        try:
            async with asyncio.timeout(LOOKUP_SECONDS):
                connection = await self._connect()
        except (psycopg.Error, OSError, TimeoutError):
            return None
        try:
            async with asyncio.timeout(2 * ANSWER_SECONDS):
                return await answers(connection, group, ANSWER_SECONDS)
        except TimeoutError:
            return False
        except (psycopg.Error, OSError):
            return None
        finally:
            connection.pgconn.finish()

    async def _group(self, tenant_id: str) -> int | None:
        """The group of the tenant's node; None on one server, and for no tenant in particular."""
        now = time.monotonic()
        if tenant_id == EVERY_TENANT or now < self._plain_until:
            return None
        until, group = self._groups.get(tenant_id, (0.0, None))
        if now < until:
            return group
        async with self._lookup_lock:
            try:
                async with asyncio.timeout(LOOKUP_SECONDS):
                    if self._lookup is None or self._lookup.closed:
                        self._lookup = await self._connect()
                    found = await group_of(self._lookup, tenant_id) if await self._is_cluster(self._lookup) else None
            except (psycopg.Error, OSError, TimeoutError):
                await self._close_lookup()
                return None
            if not self._watches and not self._looks:
                await self._close_lookup()
        if len(self._groups) >= _MOST_REMEMBERED:
            self._groups.clear()
        self._groups[tenant_id] = (now + REMEMBERED_SECONDS, found)
        return found

    async def _is_cluster(self, connection: AsyncConnection) -> bool:
        if await is_divided(connection):
            return True
        self._plain_until = time.monotonic() + REMEMBERED_SECONDS
        return False

    async def _connect(self) -> AsyncConnection:
        return await AsyncConnection.connect(self._conninfo, autocommit=True)

    async def _close_lookup(self) -> None:
        connection, self._lookup = self._lookup, None
        if connection is not None:
            await connection.close()
