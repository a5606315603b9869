"""The connections of one task's login: kept open while used, and no wait for a server that is away."""

import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import psycopg
from anyio import CancelScope
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from muniment.database.server_liveness import Connection, ServerLiveness, no_answer
from muniment.errors import StorageUnavailable

Got = TypeVar("Got")

# For a connection to become free where all are in use.
BUSY_SECONDS = 3
# So long nobody dials again after a server refused.
REFUSED_SECONDS = 0.1


class Pool:
    """At most so many connections; raises `StorageUnavailable` as soon as it is known that there is none to be had."""

    def __init__(
        self,
        conninfo: str,
        presence: ServerLiveness,
        *,
        name: str,
        max_size: int,
        explain: Callable[[], str] = no_answer,
    ) -> None:
        self._presence = presence
        self._explain = explain
        self._max_size = max_size
        self._waiting: set[CancelScope] = set()
        self._refused_until = 0.0
        self._pool = AsyncConnectionPool(
            conninfo=conninfo,
            connection_class=Connection,
            kwargs={"autocommit": True, "row_factory": dict_row},
            configure=self._configure,
            min_size=0,
            max_size=max_size,
            timeout=BUSY_SECONDS,
            max_idle=120,
            # Who needs a connection has it tried; nothing is tried later, nor waited for.
            reconnect_timeout=0,
            reconnect_failed=self._refused,
            open=False,
            name=name,
        )

    @property
    def size(self) -> int:
        """How many connections there are, in use or not."""
        return self._pool.get_stats().get("pool_size", 0)

    @property
    def is_open(self) -> bool:
        """Whether it was opened, and not closed since."""
        return not self._pool.closed

    async def open(self) -> None:
        """Make it ready; one that is open already stays as it is, so two first callers need no lock."""
        await self._pool.open()

    async def close(self) -> None:
        """Close all connections."""
        await self._pool.close()

    async def take(self, opening: bytes) -> Connection:
        """A connection on which that was just executed; give it back by `put`."""
        # A connection that died since its last use is noticed here, where nothing has been done yet.
        for _ in range(self._max_size + 1):
            if time.monotonic() < self._refused_until:
                break
            connection = await self.unless_away(self._pool.getconn)
            try:
                await connection.execute(opening)
            except BaseException as error:
                connection.pgconn.finish()
                with CancelScope(shield=True):
                    await self.put(connection)
                if connection.hung_up or not isinstance(error, psycopg.OperationalError):
                    raise
            else:
                return connection
        raise StorageUnavailable(self._explain())

    async def put(self, connection: Connection) -> None:
        """Give it back, in whatever state."""
        await self._pool.putconn(connection)

    async def unless_away(self, awaited: Callable[[], Awaitable[Got]]) -> Got:
        """What is waited for; raises `StorageUnavailable` when the server turns out to be away meanwhile."""
        with CancelScope() as scope:
            self._waiting.add(scope)
            try:
                with self._presence.waiting(scope.cancel):
                    return await awaited()
            finally:
                self._waiting.discard(scope)
        raise StorageUnavailable(self._explain())

    def _refused(self, _: object) -> None:
        # While others are in use one of them may become free: a server can refuse because it is full.
        if self.size == 0:
            self._refused_until = time.monotonic() + REFUSED_SECONDS
            for scope in list(self._waiting):
                scope.cancel()

    async def _configure(self, connection: Connection) -> None:
        connection.presence = self._presence
        connection.prepared_max = 200
