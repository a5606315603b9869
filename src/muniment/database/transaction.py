"""A transaction of one tenant: statements sent together, the tenant's next number, events, and the commit."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Literal, LiteralString, Protocol, cast

from psycopg import AsyncConnection, AsyncRawCursor
from pydantic_core import to_json

from muniment.database.event_rows import EventRows
from muniment.database.row_digests import insert_plan
from muniment.database.row_lists import RowKey
from muniment.database.server_liveness import Row
from muniment.database.statements import Statement, chunks, many, statement
from muniment.errors import ClockAhead, PackChanged
from muniment.model.events import EventType
from muniment.model.fields import LATEST as LATEST
from muniment.model.ids import make_ids
from muniment.tracing import span

Task = Literal["writer", "recall", "auditor", "privacy", "jobs"]
TASKS: tuple[Task, ...] = ("writer", "recall", "auditor", "privacy", "jobs")
Named = tuple[str, dict[str, Any]]


# What an event says that only lists rows.
ROWS_TOLD = "rows"


class RowKeys(Protocol):
    """Gives the key that rows are digested with."""

    def knows_row_key(self, tenant_id: str) -> bool:
        """Whether it has been read before."""
        ...

    async def row_key(self, tx: "Transaction") -> RowKey | None:
        """The key; None where rows of the tenant are not digested yet."""
        ...


@dataclass(frozen=True)
class Tick:
    """The tenant's number and time of one transaction."""

    seq: int
    at: datetime


@dataclass
class Transaction:
    """An open transaction of one tenant at one moment."""

    tenant_id: str
    now: datetime
    _connection: AsyncConnection[Row]
    writes: bool = True
    task: Task | None = None
    _row_keys: RowKeys | None = None
    # Each with the number of rows that were told of before it.
    _events: list[tuple[EventType, str, dict[str, Any], int]] = field(default_factory=list)
    # The rows that its events list.
    told: EventRows = field(default_factory=EventRows)
    _tick: Tick | None = None
    _txid: str | None = None
    _committed: bool = False
    # None stands for all that was added.
    _pending: list[tuple[Statement, list[Any]] | None] = field(default_factory=list)
    _added: dict[str, list[Row]] = field(default_factory=dict)
    _prefetched: list[tuple[Named, list[Row]]] = field(default_factory=list)
    # Keys opened in this transaction, by holder; for the vault alone.
    opened_keys: dict[str, Any] = field(default_factory=dict)
    # The same by holder and wrapping, as statements brought them along.
    brought_keys: dict[tuple[str, bytes], Any] = field(default_factory=dict)
    # Whether a key was made in it: it may be rolled back yet, so that no key it reads is kept; for the vault alone.
    made_keys: bool = False
    round_trips: int = 1  # its BEGIN
    # The pack that this transaction decides under, until it was found to be the one in force.
    _unchecked_pack: str | None = None

    @property
    def committed(self) -> bool:
        """Whether it is over: nothing can be asked any more."""
        return self._committed

    def decide_under(self, pack: str) -> None:
        """Check that this pack is in force: with the next read, or, in a transaction that writes, with the tick.

        From the tick on the pack stays in force until the commit (PAC-9). Raises `PackChanged` there.
        """
        self._unchecked_pack = pack

    async def rows(self, name: str, **parameters: Any) -> list[Row]:
        """Run a named statement and give its rows; `tenant_id`, `now` and `txid` are always there to be used."""
        for place, (asked, found) in enumerate(self._prefetched):
            if asked == (name, parameters):
                del self._prefetched[place]
                return found
        (found,) = await self.gather((name, parameters))
        return found

    async def row(self, name: str, **parameters: Any) -> Row | None:
        """Run a named statement and give its first row."""
        found = await self.rows(name, **parameters)
        return found[0] if found else None

    async def do(self, name: str, **parameters: Any) -> int:
        """Run a named statement and give the number of rows it touched."""
        cursors = await self._exchange([self._stated(name, parameters)])
        if touched := cursors[-1].rowcount:
            self.told.inserted(name, parameters | self._always())
        return touched

    async def gather(self, *statements: Named) -> list[list[Row]]:
        """Run several statements in one round trip, and give the rows of each."""
        if not statements:
            return []
        for name, _ in statements:
            assert insert_plan(statement(name).text) is None, f"{name} inserts rows that an event tells of: use do"
        cursors = await self._exchange([self._stated(name, parameters) for name, parameters in statements])
        return [await cursor.fetchall() for cursor in cursors[-len(statements) :]]

    async def prefetch(self, *statements: Named) -> None:
        """Ask in one round trip what will be asked one by one: the next `rows` with the same words has it there."""
        self._prefetched.extend(zip(statements, await self.gather(*statements), strict=True))

    def defer(self, name: str, **parameters: Any) -> None:
        """Run a statement whose outcome nobody waits for: it goes out with the next that somebody does, or the commit.

        INVARIANT: in the order given; what it meets (a constraint) is raised there.
        """
        self._pending.append(self._stated(name, parameters))
        self.told.inserted(name, parameters | self._always())

    def defer_row(self, name: str, **row: Any) -> None:
        """Insert a row, as `defer`: all that is added goes out where the first of it stood, statement by statement in
        the order of their ranks.

        INVARIANT: what an added row refers to was there before, or was added too, by a statement of lower rank.
        """
        if not self._added:
            self._pending.append(None)
        self._added.setdefault(name, []).append(row)
        self.told.inserted(name, row | self._always())

    def defer_many(
        self, name: str, rows: Iterable[Sequence[Any]], *, each: tuple[str, ...] | None = None, **shared: Any
    ) -> None:
        """Insert many rows, as `insert_many`, with the next statement somebody waits for."""
        noted = self.told.passing(name, rows, each, shared | self._always())
        self._pending.extend(self._inserts(name, noted, each, shared))

    async def insert_many(
        self, name: str, rows: Iterable[Sequence[Any]], *, each: tuple[str, ...] | None = None, **shared: Any
    ) -> None:
        """Insert many rows, given as sequences in the order of `each` (by default the statement's own).

        The rows may be a generator: while the server inserts a chunk the next is being made.
        """
        self.round_trips += 1
        with span(f"sql {name}"):
            async with self._connection.pipeline():
                await self._send_pending()
                noted = self.told.passing(name, rows, each, shared | self._always())
                for insert in self._inserts(name, noted, each, shared):
                    await self._send(*insert)

    def _inserts(
        self, name: str, rows: Iterable[Sequence[Any]], each: tuple[str, ...] | None, shared: dict[str, Any]
    ) -> Iterator[tuple[Statement, list[Any]]]:
        each = each or statement(name).each
        shared |= self._always()
        for chunk in chunks(rows):
            insert = many(name, each, len(chunk))
            yield insert, [*insert.arguments(shared), *chain.from_iterable(chunk)]

    async def commit_with(self, *statements: tuple[str, dict[str, Any]]) -> list[list[Row]]:
        """Run these last statements and the commit in one round trip, and give the rows of each."""
        self.round_trips += 1
        with span("sql commit", statements=len(statements) + len(self._pending)):
            async with self._connection.pipeline():
                await self._send_pending()
                cursors = [await self._send(*self._stated(name, parameters)) for name, parameters in statements]
                await self._connection.execute("COMMIT")
        self._committed = True
        return [await cursor.fetchall() for cursor in cursors]

    async def tick(self) -> Tick:
        """Take the tenant's next number, once per transaction.

        INVARIANT: this is the transaction's last lock: whatever else it locks or may wait for comes before. Raises
        `ClockAhead` where it would be dated further ahead of the database's clock than that allows.
        """
        if self._tick is None:
            pack, self._unchecked_pack = self._unchecked_pack, None
            held = [] if pack is None else [("pack.hold_in_force", dict[str, Any]())]
            asked = self._row_key_asked()
            number, clock, *found = await self.gather(("tenant.transaction_id", {}), ("tenant.tick", {}), *held, *asked)
            self._in_force(pack, *found[: len(held)])
            self._prefetched.extend(zip(asked, found[len(held) :], strict=True))
            assert number, "the tenant was not opened"
            if not clock:
                raise await self._clock_ahead()
            self._txid, now = number[0]["txid"], clock[0]
            self._tick = Tick(now["seq"], now["at"])
            self.defer("tenant.record_tick", seq=now["seq"], at=now["at"], prev_at=now["prev_at"])
        return self._tick

    async def set_back(self, by: str, reason: str) -> tuple[Tick, datetime] | None:
        """Take the next number at `now`, which is earlier than the tenant's clock; with it, what that was before.

        None where the clock is not ahead of `now`. Raises `ClockAhead` where `now` itself is.
        """
        assert self._tick is None, "the step back is the transaction's only tick"
        number, clock = await self.gather(("tenant.transaction_id", {}), ("tenant.set_back", {}))
        if not number or not clock:
            state = await self.row("tenant.clock_state")
            if state is not None and state["bound"] is not None and self.now > state["database_now"] + state["bound"]:
                raise await self._clock_ahead()
            return None
        self._txid, now = number[0]["txid"], clock[0]
        self._tick = Tick(now["seq"], now["at"])
        step = {name: now[name] for name in ("seq", "at", "prev_at")}
        self.defer("tenant.record_set_back", **step)
        self.defer("tenant.record_reset", **step, by=by, reason=reason)
        return self._tick, now["prev_at"]

    async def _clock_ahead(self) -> ClockAhead:
        """What is wrong with the clocks: the program's, or the tenant's from an earlier time."""
        state = await self.row("tenant.clock_state")
        assert state is not None and state["bound"] is not None
        real, bound = state["database_now"], state["bound"]
        if self.now > real + bound:
            return ClockAhead(f"this program's clock is {_told(self.now - real)} ahead of the database's: set it right")
        return ClockAhead(
            f"the tenant's clock is {_told(state['at'] - real)} ahead of the database's, from a time when a clock was: "
            "an admin brings it back with muniment work reset-clock"
        )

    def _row_key_asked(self) -> list[Named]:
        """What asks for the audit key, where this process does not know it: in the round trip of the clock."""
        if self._row_keys is None or self._row_keys.knows_row_key(self.tenant_id):
            return []
        return [("tenant.audited" if self.task == "jobs" else "tenant.audit_key", {})]

    def emit(self, type_: EventType, actor: str, /, **data: Any) -> None:
        """Note an event of this transaction; it is written with the tick, before the commit."""
        self._events.append((type_, actor, data, len(self.told)))

    def emitted(self, type_: EventType) -> list[dict[str, Any]]:
        """What the events of that type say that were noted so far."""
        return [data for noted, _, data, _ in self._events if noted == type_]

    async def complete(self) -> None:
        """Write what was emitted and commit; called by the session at the end."""
        if self._committed:
            return
        if self._events or self.told:
            await self._write_events()
        await self.commit_with()

    async def _write_events(self) -> None:
        if self._events:
            await self.tick()
        # INVARIANT: asked under the tenant's clock, so that nobody begins to digest its rows meanwhile.
        key = await self._row_keys.row_key(self) if self.told and self._row_keys is not None else None
        lists: list[bytes | None] = [None] * len(self._events)
        if key is not None:
            lists, more = self.told.lists(key, [told for *_, told in self._events])
            for size, packed in more:
                self.emit("memory.note", "auto", about=ROWS_TOLD, rows=size)
                lists.append(packed)
        if not self._events:
            return
        tick = await self.tick()
        ids = make_ids("evt", len(self._events), tick.at)
        written = zip(ids, self._events, lists, strict=True)
        rows = [
            (n, event_id, type_, actor, to_json(data), listed)
            for n, (event_id, (type_, actor, data, _), listed) in enumerate(written)
        ]
        self._events.clear()
        self.told = EventRows()
        self.defer_many("tenant.events", rows, seq=tick.seq, at=tick.at)

    def _in_force(self, pack: str | None, *found: list[Row]) -> None:
        """Raises `PackChanged` unless that pack is in force; a tenant that nothing was written in has none."""
        for rows in found:
            if rows and rows[0]["pack"] != pack:
                raise PackChanged("another pack was put in force at this moment; try again")

    def _stated(self, name: str, parameters: dict[str, Any]) -> tuple[Statement, list[Any]]:
        found = statement(name)
        return found, found.arguments(parameters | self._always())

    async def _exchange(self, statements: list[tuple[Statement, list[Any]]]) -> list[AsyncRawCursor[Row]]:
        """One round trip: what waits to be sent, then these."""
        if self._unchecked_pack is not None and not self.writes:
            pack, self._unchecked_pack = self._unchecked_pack, None
            first, *rest = await self._exchange([self._stated("pack.in_force", {}), *statements])
            self._in_force(pack, await first.fetchall())
            return rest
        self.round_trips += 1
        with span(f"sql {statements[-1][0].name}", statements=len(statements) + len(self._pending)):
            if len(statements) == 1 and not self._pending:
                return [await self._send(*statements[0])]
            async with self._connection.pipeline():
                await self._send_pending()
                return [await self._send(*one) for one in statements]

    async def _send_pending(self) -> None:
        pending, self._pending = self._pending, []
        added, self._added = self._added, {}
        for one in pending:
            for statement_, arguments in [one] if one is not None else self._together(added):
                await self._send(statement_, arguments)

    def _together(self, added: dict[str, list[Row]]) -> Iterator[tuple[Statement, list[Any]]]:
        for name in sorted(added, key=lambda name: statement(name).rank):
            each = statement(name).each
            yield from self._inserts(name, [[row[column] for column in each] for row in added[name]], each, {})

    async def _send(self, one: Statement, arguments: list[Any]) -> AsyncRawCursor[Row]:
        cursor = AsyncRawCursor(self._connection)
        await cursor.execute(cast("LiteralString", one.sql), arguments, prepare=one.planned_once, binary=one.binary)
        return cursor

    def _always(self) -> dict[str, Any]:
        return {"tenant_id": self.tenant_id, "now": self.now, "txid": self._txid}


def _told(distance: timedelta) -> str:
    """A length of time in words, to the second."""
    return str(timedelta(seconds=round(distance.total_seconds())))
