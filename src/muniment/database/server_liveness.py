"""Whether the server still answers: asked by those who wait long for it, once for all of them.

A server that died says so: its connections end and new ones are refused. One that hangs, or is cut off, says nothing.
A statement may rightly take long, so nobody's patience ends by itself: who has waited a second has a fresh connection
tried, and gives up only if that gets no answer either.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, Self, TypeVar

import psycopg
from psycopg import AsyncConnection
from psycopg.abc import PQGen

from muniment.errors import StorageUnavailable

Row = dict[str, Any]
Answer = TypeVar("Answer")

PATIENCE_SECONDS = 1.0
ANSWER_SECONDS = 2.0


class Wait:
    """While it is entered somebody waits for the server; `give_up` is called once the server is found silent."""

    __slots__ = ("_presence", "_timer", "give_up")

    def __init__(self, presence: "ServerLiveness", give_up: Callable[[], None]) -> None:
        self._presence = presence
        self.give_up = give_up
        self._timer: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        self.go_on()
        return self

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._presence.no_longer(self)

    def go_on(self) -> None:
        """Be patient for a while more."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(PATIENCE_SECONDS, self._presence.doubted, self)


class ServerLiveness:
    """Asks a server whether it is there.

    INVARIANT: one asks at a time, however many doubt; while answers come fast nobody asks.
    """

    def __init__(self, conninfo: str) -> None:
        self._conninfo = conninfo
        self._doubting: set[Wait] = set()
        self._asking: asyncio.Task[None] | None = None

    def waiting(self, give_up: Callable[[], None]) -> Wait:
        """For the time of a wait: `give_up` is called if the server falls silent, within three seconds."""
        return Wait(self, give_up)

    def doubted(self, wait: Wait) -> None:
        """Somebody has waited long."""
        self._doubting.add(wait)
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._ask())

    def no_longer(self, wait: Wait) -> None:
        """Somebody waits no longer."""
        self._doubting.discard(wait)

    def close(self) -> None:
        """Stop asking."""
        if self._asking is not None:
            self._asking.cancel()

    async def _ask(self) -> None:
        try:
            silent = await self._is_silent()
        finally:
            self._asking = None
        doubting, self._doubting = self._doubting, set()
        for wait in doubting:
            if silent:
                wait.give_up()
            else:
                wait.go_on()

    async def _is_silent(self) -> bool:
        # A refusal is an answer: a server that went away or is full tells those it serves by itself.
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await (await AsyncConnection.connect(self._conninfo)).close()
        except (TimeoutError, psycopg.errors.ConnectionTimeout):
            return True
        except (psycopg.Error, OSError):
            return False
        return False


class Connection(AsyncConnection[Row]):
    """A connection on which no wait outlives a server that fell silent: it ends with `OperationalError`."""

    presence: ServerLiveness | None = None
    hung_up: bool = False

    async def wait(self, gen: PQGen[Answer], *how: Any, **more: Any) -> Answer:
        """As the driver's own, which all its statements wait in."""
        if self.presence is None:
            return await super().wait(gen, *how, **more)
        with self.presence.waiting(self._hang_up):
            return await super().wait(gen, *how, **more)

    def _hang_up(self) -> None:
        # The driver reads it as the server's goodbye. Closing the file itself would pull it from under the event loop.
        self.hung_up = True
        with suppress(psycopg.Error, OSError), socket.socket(fileno=os.dup(self.pgconn.socket)) as line:
            line.shutdown(socket.SHUT_RDWR)


DISK_FULL = "the disk of the database is full"


def no_answer() -> str:
    """All that is known of a server that is not ours to start."""
    return "the database does not answer"


def unavailable(error: BaseException, explain: Callable[[], str] = no_answer) -> StorageUnavailable:
    """The error to raise in place of the driver's; `explain` says why there is no answer."""
    return StorageUnavailable(DISK_FULL if isinstance(error, psycopg.errors.DiskFull) else explain())


@contextmanager
def answering(explain: Callable[[], str] = no_answer) -> Generator[None]:
    """For connections without a pool: raises `StorageUnavailable` when the server goes away, or is away already."""
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise unavailable(error, explain) from error
