"""Whether the database server still answers, and the errors for when it does not.

A server that died ends its connections and refuses new ones. One that hangs, or is cut off, says nothing. A statement
may rightly take long, so no wait has a time limit of its own: after a second of waiting a fresh connection is tried,
and the wait is given up only if that gets no answer either. If the server is the coordinator of a cluster and answers,
the node of the tenant is looked at in the same way.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Self

import psycopg
from psycopg import AsyncConnection

from muniment.database.cluster.errors import NodeAway, NotReplicated, node_lost
from muniment.database.cluster.node_liveness import NodeLiveness
from muniment.errors import StorageUnavailable

Row = dict[str, Any]

PATIENCE_SECONDS = 1.0
ANSWER_SECONDS = 2.0


class Wait:
    """A wait for the server, as a context; `give_up` is called if the server is found silent."""

    __slots__ = ("_liveness", "give_up", "tenant_id")

    def __init__(self, liveness: "ServerLiveness", give_up: Callable[[], None], tenant_id: str | None) -> None:
        self._liveness = liveness
        self.give_up = give_up
        self.tenant_id = tenant_id

    def __enter__(self) -> Self:
        self._liveness.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._liveness.remove(self)


class ServerLiveness:
    """Tests whether a server answers.

    INVARIANT: one test at a time, however many wait; none while answers come fast.
    """

    def __init__(self, conninfo: str, hosts: int = 1, nodes: NodeLiveness | None = None) -> None:
        self._conninfo = conninfo
        self._nodes = nodes
        # Of several servers those before the primary may be silent.
        self._answer_seconds = ANSWER_SECONDS * hosts
        # When each wait will have taken long, by the event loop's clock, the earliest first; and one timer for all.
        self._waits: dict[Wait, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timers_loop: asyncio.AbstractEventLoop | None = None
        self._slow: set[Wait] = set()
        self._test: asyncio.Task[None] | None = None

    def waiting(self, give_up: Callable[[], None], tenant_id: str | None = None) -> Wait:
        """The context of a wait; `give_up` is called within three seconds if the server, or the node, falls silent.

        `tenant_id` is the tenant whose statement is waited for, where there is one.
        """
        return Wait(self, give_up, tenant_id)

    def add(self, wait: Wait) -> None:
        """Called by a wait that begins, or goes on."""
        loop = asyncio.get_running_loop()
        self._waits[wait] = loop.time() + PATIENCE_SECONDS
        if self._timer is None or self._timers_loop is not loop:
            self._timers_loop = loop
            self._timer = loop.call_later(PATIENCE_SECONDS, self._report_slow)

    def remove(self, wait: Wait) -> None:
        """Called by a wait that is over."""
        self._waits.pop(wait, None)
        self._slow.discard(wait)

    def _report_slow(self) -> None:
        """Have the server tested if a wait has taken long; look again when the next one will have."""
        loop = asyncio.get_running_loop()
        self._timer = None
        while self._waits:
            wait, due = next(iter(self._waits.items()))
            if due > loop.time():
                self._timer = loop.call_at(due, self._report_slow)
                break
            del self._waits[wait]
            self._slow.add(wait)
        if self._slow and self._test is None:
            self._test = loop.create_task(self._run_test())

    def close(self) -> None:
        """Stop testing."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._test is not None:
            self._test.cancel()

    async def _run_test(self) -> None:
        try:
            silent = await self._is_silent()
            away = set[str]() if silent else await self._tenants_away()
        finally:
            self._test = None
        slow, self._slow = self._slow, set()
        if away:
            slow |= {wait for wait in self._waits if wait.tenant_id in away}
        for wait in slow:
            if silent or wait.tenant_id in away:
                self._waits.pop(wait, None)
                wait.give_up()
            else:
                self.add(wait)

    async def _tenants_away(self) -> set[str]:
        """The tenants that wait for a node that is away, once one of its statements took long."""
        tenants = {wait.tenant_id for wait in self._slow if wait.tenant_id is not None}
        if self._nodes is None or not tenants:
            return set()
        away = await self._nodes.among(tenants)
        # Those who began to wait meanwhile, and those who have not waited long yet.
        waits = (*self._slow, *self._waits) if away else ()
        others = {wait.tenant_id for wait in waits if wait.tenant_id is not None} - tenants
        return away | {one for one in others if await self._nodes.is_away(one)}

    async def _is_silent(self) -> bool:
        # A refusal is an answer: the connections of a server that died or is full end by themselves.
        try:
            async with asyncio.timeout(self._answer_seconds):
                await (await AsyncConnection.connect(self._conninfo)).close()
        except (TimeoutError, psycopg.errors.ConnectionTimeout):
            return True
        except (psycopg.Error, OSError):
            return False
        return False


DISK_FULL = "the disk of the database is full"
NOT_REPLICATED = "this was written, but the wait for the standby was cancelled: a failover may lose it"


def no_answer() -> str:
    """The explanation for a server that this program does not run itself."""
    return "the database does not answer"


def unavailable(error: BaseException, explain: Callable[[], str] = no_answer) -> StorageUnavailable:
    """The error to raise in place of the driver's; `explain` says why there is no answer."""
    match error:
        case psycopg.errors.DiskFull():
            return StorageUnavailable(DISK_FULL)
        case NotReplicated():
            return StorageUnavailable(NOT_REPLICATED)
        case _:
            return StorageUnavailable(explain())


@contextmanager
def answering(explain: Callable[[], str] = no_answer) -> Generator[None]:
    """For connections without a pool: raise `StorageUnavailable` if the server is away or goes away.

    `NodeAway` if the server is there, but a node of its cluster is not.
    """
    try:
        yield
    except psycopg.Error as error:
        if node_lost(error):
            raise NodeAway from error
        if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            raise unavailable(error, explain) from error
        raise
