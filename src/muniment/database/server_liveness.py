"""Whether the database server still answers, and the errors for when it does not.

A server that died ends its connections and refuses new ones. One that hangs, or is cut off, says nothing. A statement
may rightly take long, so no wait has a time limit of its own: after a second of waiting a fresh connection is tried,
and the wait is given up only if that gets no answer either.
"""

import asyncio
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any, Self

import psycopg
from psycopg import AsyncConnection

from muniment.errors import StorageUnavailable

Row = dict[str, Any]

PATIENCE_SECONDS = 1.0
ANSWER_SECONDS = 2.0


class Wait:
    """A wait for the server, as a context; `give_up` is called if the server is found silent."""

    __slots__ = ("_liveness", "give_up")

    def __init__(self, liveness: "ServerLiveness", give_up: Callable[[], None]) -> None:
        self._liveness = liveness
        self.give_up = give_up

    def __enter__(self) -> Self:
        self._liveness.add(self)
        return self

    def __exit__(self, *_: object) -> None:
        self._liveness.remove(self)


class ServerLiveness:
    """Tests whether a server answers.

    INVARIANT: one test at a time, however many wait; none while answers come fast.
    """

    def __init__(self, conninfo: str, hosts: int = 1) -> None:
        self._conninfo = conninfo
        # Of several servers those before the primary may be silent.
        self._answer_seconds = ANSWER_SECONDS * hosts
        # When each wait will have taken long, by the event loop's clock, the earliest first; and one timer for all.
        self._waits: dict[Wait, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._timers_loop: asyncio.AbstractEventLoop | None = None
        self._slow: set[Wait] = set()
        self._test: asyncio.Task[None] | None = None

    def waiting(self, give_up: Callable[[], None]) -> Wait:
        """The context of a wait; `give_up` is called within three seconds if the server falls silent."""
        return Wait(self, give_up)

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
        finally:
            self._test = None
        slow, self._slow = self._slow, set()
        for wait in slow:
            if silent:
                wait.give_up()
            else:
                self.add(wait)

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


def no_answer() -> str:
    """The explanation for a server that this program does not run itself."""
    return "the database does not answer"


def unavailable(error: BaseException, explain: Callable[[], str] = no_answer) -> StorageUnavailable:
    """The error to raise in place of the driver's; `explain` says why there is no answer."""
    return StorageUnavailable(DISK_FULL if isinstance(error, psycopg.errors.DiskFull) else explain())


@contextmanager
def answering(explain: Callable[[], str] = no_answer) -> Generator[None]:
    """For connections without a pool: raise `StorageUnavailable` if the server is away or goes away."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise unavailable(error, explain) from error
