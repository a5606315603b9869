"""Concurrent calls, and the proof that they ran at the same time: all wait at a lock until the last has arrived."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg

from muniment.testing import TestServer


class Calls:
    """Calls in threads; `outcomes` has what each returned or raised, in their order."""

    def __init__(self, calls: list[Callable[[], Any]]) -> None:
        self.outcomes: list[Any] = [None] * len(calls)
        self._threads = [threading.Thread(target=self._run, args=(n, call)) for n, call in enumerate(calls)]
        for thread in self._threads:
            thread.start()

    def _run(self, n: int, call: Callable[[], Any]) -> None:
        try:
            self.outcomes[n] = call()
        except Exception as error:
            self.outcomes[n] = error

    def wait(self) -> list[Any]:
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive()
        return self.outcomes


@contextmanager
def hold_clock(server: TestServer, database: str, tenant: str) -> Generator["LockWaits"]:
    """Lock the tenant's clock, the last lock of every change, so that no change can commit until the block ends."""
    with server.connect(database) as holder, lock_waits(server, database) as waits, holder.transaction():
        holder.execute("SELECT FROM tenant_clock WHERE tenant_id = %s FOR UPDATE", [tenant])
        yield waits


@contextmanager
def lock_waits(server: TestServer, database: str) -> Generator["LockWaits"]:
    """Tell how many sessions wait for a lock, on every node of a cluster."""
    with ExitStack() as stack:
        watchers = [stack.enter_context(psycopg.connect(node, autocommit=True)) for node in server.nodes]
        yield LockWaits(watchers, database)


class LockWaits:
    """The sessions of a database that wait for a lock."""

    def __init__(self, watchers: "list[psycopg.Connection[tuple[object, ...]]]", database: str) -> None:
        self._watchers = watchers
        self._database = database

    def until_waiting(self, count: int) -> None:
        """Return once that many sessions of the database wait for a lock."""
        deadline = time.monotonic() + 60
        while self.waiting() < count:
            assert time.monotonic() < deadline, f"only {self.waiting()} of {count} arrived"
            time.sleep(0.005)

    def waiting(self) -> int:
        statement = "SELECT FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'"
        return sum(watcher.execute(statement, [self._database]).rowcount for watcher in self._watchers)
