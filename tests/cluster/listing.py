"""Catches statements of the jobs' login that go to several shards (SCL-1).

The other logins have an error instead, which reaches processes that a test starts too. This one lists the tenants, so it
is told of each such statement by a notice, and its connections in this process compare the statement with the list.
"""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from psycopg.errors import Diagnostic

from muniment.database.connection import Command, Connection, Reply

# The statements that list the tenants: all that may go to several shards.
LISTING = frozenset({"jobs.known", "jobs.clocks"})
_AROUND = frozenset({"begin", "tenant", "setting", "person", "commit"})
_NOTICE = "multi-task query about to be executed"


@contextmanager
def many_shards(found: list[str]) -> Generator[None]:
    """Note in that list the statements of this process that go to several shards, and list no tenants."""
    exchange = Connection.exchange

    async def watched(self: Connection, commands: Iterable[Command]) -> list[Reply]:
        names: list[str] = []
        told: list[str] = []

        def heed(notice: Diagnostic) -> None:
            told.append(notice.message_primary or "")

        def named(given: Iterable[Command]) -> Generator[Command]:
            for command in given:
                names.append(command[0].name)
                yield command

        self.add_notice_handler(heed)
        try:
            given: Any = list(named(commands)) if isinstance(commands, list) else named(commands)
            return await exchange(self, given)
        finally:
            self.remove_notice_handler(heed)
            # A notice does not say which statement it is about: listing goes alone.
            if _NOTICE in told and (others := [name for name in names if name not in LISTING | _AROUND]):
                found.extend(others)

    with patch.object(Connection, "exchange", watched):
        yield
