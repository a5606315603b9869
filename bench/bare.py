"""The bare statements of a recall: what ours sent, said again by the driver alone, in the same round trips."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg.sql import quote

from muniment.database.statements import Statement
from muniment.database.storage import Transaction
from muniment.model.ids import make_id


@dataclass
class Script:
    """One recall's statements with their arguments, by round trip; its own record gets a new id each time."""

    tenant_id: str
    trips: list[list[tuple[Statement, list[Any]]]] = field(default_factory=list)

    async def say(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Begin, the statements, commit; what comes back is read and thrown away."""
        tenant = quote(self.tenant_id)
        await connection.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL muniment.tenant = {tenant}")
        for place, trip in enumerate(self.trips, 1):
            cursors: list[psycopg.AsyncRawCursor[Any]] = []
            async with connection.pipeline():
                for one, arguments in trip:
                    cursor = psycopg.AsyncRawCursor(connection)
                    given = _renewed(one, arguments)
                    await cursor.execute(one.sql, given, prepare=one.planned_once, binary=one.binary)
                    cursors.append(cursor)
                if place == len(self.trips):
                    await connection.execute("COMMIT")
            for cursor in cursors:
                await cursor.fetchall()


def _renewed(one: Statement, arguments: list[Any]) -> list[Any]:
    if one.name != "recall.record":
        return arguments
    now = arguments[one.parameters.index("now")]
    return [make_id("rcl", now) if name == "recall_id" else arguments[n] for n, name in enumerate(one.parameters)]


@contextmanager
def listening(scripts: list[Script]) -> Generator[None]:
    """Write down what every transaction sends meanwhile, one script each."""
    send = Transaction._send

    async def heard(self: Transaction, bound: Statement, arguments: list[Any]) -> Any:
        script: Script | None = getattr(self, "script", None)
        if script is None:
            script = self.script = Script(self.tenant_id)  # pyright: ignore[reportAttributeAccessIssue]  for us alone
            scripts.append(script)
        while len(script.trips) < self.round_trips - 1:
            script.trips.append([])
        script.trips[-1].append((bound, arguments))
        return await send(self, bound, arguments)

    Transaction._send = heard
    try:
        yield
    finally:
        Transaction._send = send


async def connected(login: str) -> psycopg.AsyncConnection[Any]:
    """A connection as the given login."""
    return await psycopg.AsyncConnection.connect(login, autocommit=True, row_factory=dict_row)
