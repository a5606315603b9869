"""The connections of one task's login; nobody waits for a server that is away."""

import logging
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from anyio import CancelScope
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool

from muniment.database.connection import Connection
from muniment.database.primaries import Primaries
from muniment.database.server_liveness import ServerLiveness, no_answer
from muniment.errors import StorageUnavailable

# A program without a log of its own would see on stderr that a connection was closed: calls say so themselves.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())

Result = TypeVar("Result")

CLOSED = "the fabric was closed"
# How long to wait for a connection to become free if all are in use.
BUSY_SECONDS = 3
# How long no new connection is tried after the server refused one.
REFUSED_SECONDS = 0.1


class Pool:
    """A bounded pool; raises `StorageUnavailable` as soon as it is known that no connection can be had."""

    def __init__(
        self,
        conninfo: str,
        liveness: ServerLiveness,
        *,
        name: str,
        max_size: int,
        explain: Callable[[], str] = no_answer,
        names_statements: bool = True,
        kind: type[Connection] = Connection,
        primaries: Primaries | None = None,
    ) -> None:
        self._primaries = primaries
        self._names_statements = names_statements
        self._liveness = liveness
        self._explain = explain
        self._max_size = max_size
        self._waiting: set[CancelScope] = set()
        self._refused_until = 0.0
        self._lent: set[Connection] = set()
        self._closed = False
        self._pool = AsyncConnectionPool(
            conninfo=conninfo,
            connection_class=kind,
            kwargs={"autocommit": True, "row_factory": dict_row, "primaries": primaries},
            configure=self._configure,
            min_size=0,
            max_size=max_size,
            timeout=BUSY_SECONDS,
            max_idle=120,
            # A connection is tried when one is needed, never again in the background.
            reconnect_timeout=0,
            reconnect_failed=self._refused,
            open=False,
            name=name,
        )

    @property
    def size(self) -> int:
        """How many connections there are, in use or idle."""
        return self._pool.get_stats().get("pool_size", 0)

    @property
    def is_open(self) -> bool:
        """Whether the pool is open."""
        return not self._pool.closed

    async def open(self) -> None:
        """Open the pool; does nothing if it is open, so two first callers need no lock.

        Raises `StorageUnavailable` once it was closed: nobody would close it again, and the process would not end.
        """
        if self._closed:
            raise StorageUnavailable(CLOSED)
        await self._pool.open()

    async def close(self) -> None:
        """Close all connections, for good."""
        self._closed = True
        await self._pool.close()

    async def take(self, tenant_id: str | None = None) -> Connection:
        """A connection that the server has not closed, for statements of that tenant; return it with `put`."""
        if self._closed:
            raise StorageUnavailable(CLOSED)
        # A connection that died since its last use is noticed here, where nothing has been done yet.
        for _ in range(self._max_size + 1):
            if time.monotonic() < self._refused_until:
                break
            connection = await self.unless_away(self._pool.getconn)
            self._lent.add(connection)
            if not connection.has_ended() and not self._leads_to_former(connection):
                connection.tenant_id = tenant_id
                return connection
            connection.pgconn.finish()
            with CancelScope(shield=True):
                await self.put(connection)
        raise StorageUnavailable(self._explain())

    async def replace(self, connection: Connection) -> Connection:
        """Return a connection that has ended, and take another; raises `StorageUnavailable`."""
        with CancelScope(shield=True):
            await self.put(connection)
        return await self.take(connection.tenant_id)

    async def put(self, connection: Connection) -> None:
        """Return a connection, in whatever state it is; does nothing with one that was returned already."""
        if connection in self._lent:
            self._lent.discard(connection)
            await self._pool.putconn(connection)

    async def unless_away(self, operation: Callable[[], Awaitable[Result]]) -> Result:
        """Await something; raises `StorageUnavailable` if the server turns out to be away meanwhile."""
        with CancelScope() as scope:
            self._waiting.add(scope)
            try:
                with self._liveness.waiting(scope.cancel):
                    return await operation()
            finally:
                self._waiting.discard(scope)
        raise StorageUnavailable(self._explain())

    def _refused(self, _: object) -> None:
        # While others are in use, one of them may become free: a server also refuses when it is full.
        if self.size == 0:
            self._refused_until = time.monotonic() + REFUSED_SECONDS
            for scope in list(self._waiting):
                scope.cancel()

    def _leads_to_former(self, connection: Connection) -> bool:
        """Whether another server has taken over from the connection's since it was opened."""
        return self._primaries is not None and self._primaries.is_former(connection.timeline)

    async def _configure(self, connection: Connection) -> None:
        connection.liveness = self._liveness
        connection.names_statements = self._names_statements
        await connection.ask_whether_of_cluster()
