"""The bare statements of a recall: what ours sent, said again by the driver alone, in the same round trips."""

from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from psycopg.rows import dict_row
from psycopg.sql import quote

from muniment.database.connection import Command, Connection
from muniment.database.statements import Statement
from muniment.database.storage import Transaction
from muniment.model.ids import make_id


@dataclass
class Script:
    """One recall's statements with their arguments, by round trip; its own record gets a new id each time."""

    tenant_id: str
    trips: list[list[Command]] = field(default_factory=list)

    @property
    def is_a_call(self) -> bool:
        """Whether it is a recall or a capture, and not what a process does in the background for its index."""
        recorded = {"recall.record", "scopes.record", "tenant.record_tick"}
        return any(one.name in recorded for trip in self.trips for one, _ in trip)

    async def say(self, connection: Connection) -> None:
        """Begin, the statements, commit; what comes back is thrown away."""
        begin = [
            (Statement("begin", "BEGIN ISOLATION LEVEL REPEATABLE READ"), []),
            (Statement("tenant", f"SET LOCAL muniment.tenant = {quote(self.tenant_id)}", planned_once=False), []),
        ]
        for trip in self.trips:
            await connection.exchange(begin + [(one, _renewed(one, arguments)) for one, arguments in trip])
            begin = []


def _renewed(one: Statement, arguments: Sequence[Any]) -> Sequence[Any]:
    if one.name not in ("recall.record", "scopes.record"):
        return arguments
    now = arguments[one.parameters.index("now")]
    return [make_id("rcl", now) if name == "recall_id" else arguments[n] for n, name in enumerate(one.parameters)]


@contextmanager
def listening(scripts: list[Script]) -> Generator[None]:
    """Write down what every transaction sends meanwhile, one script each."""
    round_trip = Transaction._round_trip

    async def heard(self: Transaction, commands: Iterable[Command]) -> Any:
        script: Script | None = getattr(self, "script", None)
        if script is None:
            script = self.script = Script(self.tenant_id)  # pyright: ignore[reportAttributeAccessIssue]  for us alone
            scripts.append(script)
        sent = list(commands)
        script.trips.append(sent)
        return await round_trip(self, sent)

    Transaction._round_trip = heard
    try:
        yield
    finally:
        Transaction._round_trip = round_trip


async def connected(login: str) -> Connection:
    """A connection as the given login."""
    return await Connection.connect(login, autocommit=True, row_factory=dict_row)
