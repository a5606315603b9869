"""A transaction of one tenant: batched statements, the tenant's next sequence number, events and the commit."""

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Any, Literal

from psycopg import OperationalError
from psycopg.errors import InFailedSqlTransaction, InvalidTextRepresentation

from muniment.database.begin import ONE_PLAN
from muniment.database.clock import clock_ahead
from muniment.database.connection import Command, Connection, Reply
from muniment.database.event_batches import Item, batched
from muniment.database.event_rows import EventRows
from muniment.database.row_digests import insert_plan
from muniment.database.row_lists import pack
from muniment.database.server_liveness import Row
from muniment.database.statements import Statement, chunks, many, statement
from muniment.database.ticks import RowKeys as RowKeys
from muniment.database.ticks import Tick as Tick
from muniment.errors import ClockAhead, PackChanged
from muniment.model.events import EventType
from muniment.model.fields import LATEST as LATEST
from muniment.model.ids import make_ids
from muniment.tracing import span

Task = Literal["writer", "recall", "auditor", "privacy", "jobs", "subject"]
TASKS: tuple[Task, ...] = ("writer", "recall", "auditor", "privacy", "jobs", "subject")
# The name of a statement and its parameters.
NamedStatement = tuple[str, dict[str, Any]]

_COMMIT = Statement("commit", "COMMIT")
_ROLLBACK = Statement("rollback", "ROLLBACK")
_TRANSACTION_ID: NamedStatement = ("tenant.transaction_id", {})
# How often a transaction's first commands are sent again, and how soon a connection that was dead already fails: one
# that was ended while it ran the commands is not replaced, or nobody could end a statement.
_REPLACEMENTS = 2
_AT_ONCE_SECONDS = 0.1
# An insert by columns of at least so many rows sends what they have in common once.
_COMPARED_FROM = 16


@dataclass
class Transaction:
    """An open transaction of one tenant; `now` is the caller's clock at its start."""

    tenant_id: str
    now: datetime
    _connection: Connection
    # What begins it; sent with the first statements.
    _begin: tuple[Statement, ...]
    # Gives back a connection that ended, and returns another.
    _replace: Callable[[Connection], Awaitable[Connection]] | None = None
    writes: bool = True
    task: Task | None = None
    _row_keys: RowKeys | None = None
    # Whether `ONE_PLAN` is part of how it begins; otherwise it applies from the tick on.
    _one_plan: bool = False
    # What happened, from which the events are made.
    _items: list[Item] = field(default_factory=list)
    # The rows that the events will list.
    event_rows: EventRows = field(default_factory=EventRows)
    _tick: Tick | None = None
    _txid: str | None = None
    _committed: bool = False
    # Statements that go out with the next round trip; None marks the position of the deferred rows.
    _pending: list[Command | None] = field(default_factory=list)
    _deferred_rows: dict[str, list[Sequence[Any]]] = field(default_factory=dict)
    _prefetched: list[tuple[NamedStatement, list[Row]]] = field(default_factory=list)
    # Reads that go out with the tick.
    _with_tick: list[NamedStatement] = field(default_factory=list)
    # For the vault: keys opened in this transaction, by holder, and by holder and wrapped key.
    opened_keys: dict[str, Any] = field(default_factory=dict)
    brought_keys: dict[tuple[str, bytes], Any] = field(default_factory=dict)
    # For the vault: a key was created here. The transaction may still roll back, so no key that it reads is cached.
    made_keys: bool = False
    round_trips: int = 0
    # Whether it reads a standby: no key is opened there.
    lags: bool = False
    # Whether its tick raises the tenant's visibility number.
    _changes_visible: bool = True
    # The pack that this transaction decides under, until it is confirmed to be the one in force.
    _unchecked_pack: str | None = None

    @property
    def connection(self) -> Connection:
        """The connection that it uses now."""
        return self._connection

    @property
    def committed(self) -> bool:
        """Whether the transaction has been committed and accepts no more statements."""
        return self._committed

    def decide_under(self, pack: str) -> None:
        """Require this pack to be in force; a read-only transaction checks it with its next read, others with the tick.

        The check raises `PackChanged`. From the tick until the commit the pack stays in force (PAC-9).
        """
        self._unchecked_pack = pack

    def change_nothing_visible(self) -> None:
        """Declare that nothing written here changes what a recall sees, so that indexes of memories stay up to date.

        It has no effect after the tick. The database refuses a memory, a retraction, a consent and every other row that
        does change it, if the tick was taken under this declaration.
        """
        self._changes_visible = False

    async def rows(self, name: str, **parameters: Any) -> list[Row]:
        """Run a named statement and return its rows; `tenant_id`, `now` and `txid` are always available to it."""
        for index, (prefetched, found) in enumerate(self._prefetched):
            if prefetched == (name, parameters):
                del self._prefetched[index]
                return found
        (found,) = await self.gather((name, parameters))
        return found

    async def row(self, name: str, **parameters: Any) -> Row | None:
        """Run a named statement and return its first row."""
        found = await self.rows(name, **parameters)
        return found[0] if found else None

    async def do(self, name: str, **parameters: Any) -> int:
        """Run a named statement and return the number of rows it changed."""
        (reply,) = await self._exchange([self._bound(name, parameters)])
        if reply.changed:
            self.event_rows.add_insert(name, parameters, self._always())
        return reply.changed

    async def gather(self, *statements: NamedStatement) -> list[list[Row]]:
        """Run several statements in one round trip and return the rows of each."""
        if not statements:
            return []
        for name, _ in statements:
            assert insert_plan(statement(name).text) is None, f"{name} inserts rows that an event lists: use do"
        replies = await self._exchange([self._bound(name, parameters) for name, parameters in statements])
        return [reply.rows for reply in replies]

    async def gather_after(
        self, first: Sequence[NamedStatement], *statements: NamedStatement
    ) -> tuple[list[list[Row]], list[list[Row]]]:
        """Run `first` in a transaction of their own and commit it, then the others in this one, in one round trip.

        Returns the rows of both. It has to be the transaction's first round trip. INVARIANT: the server has committed
        `first` before it begins with the others. They may be sent twice, if the connection turns out to be dead.
        """
        assert self._begin and not self._pending and self._unchecked_pack is None, "it is not the first round trip"
        begin: list[Command] = [(one, []) for one in self._begin]
        before = [*begin, *(self._bound(name, parameters) for name, parameters in first)]
        after = [*begin, *(self._bound(name, parameters) for name, parameters in statements)]
        commands: list[Command] = [*before, (_COMMIT, []), *after]
        self.round_trips += 1
        with span(f"sql {statements[-1][0]}", statements=len(commands)):
            replies = await self._exchange_first(commands)
        if replies[len(before)].command != b"COMMIT":
            raise InFailedSqlTransaction("the first of two transactions was rolled back")
        self._begin = ()
        rows = [reply.rows for reply in replies]
        return rows[len(begin) : len(before)], rows[len(replies) - len(statements) :]

    async def prefetch(self, *statements: NamedStatement) -> None:
        """Prefetch these reads, unless they were before; the next `rows()` with equal arguments returns the result."""
        known = [one for one, _ in self._prefetched]
        wanted = [one for one in statements if one not in known]
        self._prefetched.extend(zip(wanted, await self.gather(*wanted), strict=True))

    def defer(self, name: str, **parameters: Any) -> None:
        """Queue a statement whose result is not needed; it is sent with the next round trip or the commit.

        INVARIANT: deferred statements run in the order of the calls; a violated constraint is raised when they run.
        """
        self._pending.append(self._bound(name, parameters))
        self.event_rows.add_insert(name, parameters, self._always())

    def defer_row(self, name: str, **row: Any) -> None:
        """Queue one row for a many-row insert; all queued rows are sent at the position of the first, by rank.

        INVARIANT: a row may refer only to rows that exist, or that are queued by a statement of lower rank.
        """
        if not self._deferred_rows:
            self._pending.append(None)
        values = tuple([row[column] for column in statement(name).each])
        self._deferred_rows.setdefault(name, []).append(values)
        self.event_rows.add_row(name, values, self._always())

    def defer_many(
        self, name: str, rows: Iterable[Sequence[Any]], *, each: tuple[str, ...] | None = None, **shared: Any
    ) -> None:
        """Queue an `insert_many` for the next round trip or the commit."""
        noted = self.event_rows.add_inserts(name, rows, each, shared | self._always())
        self._pending.extend(self._inserts(name, noted, each, shared))

    def defer_columns(self, name: str, columns: Mapping[str, Sequence[Any]], **shared: Any) -> None:
        """Queue a many-row insert whose rows are given by columns; a value that all rows have is sent once.

        INVARIANT: rows queued before by `defer_row` are sent before these, later ones after them.
        """
        rows = len(next(iter(columns.values())))
        if self._deferred_rows:
            self._pending = list[Command | None](self._take_pending())
        # A few rows are all sent alike, so that few forms of the statement are prepared.
        compared = columns.items() if rows >= _COMPARED_FROM else ()
        equal = {one: column[0] for one, column in compared if column.count(column[0]) == rows}
        varying = {one: column for one, column in columns.items() if one not in equal}
        self.defer_many(name, zip(*varying.values(), strict=True), each=tuple(varying), **shared, **equal)

    async def insert_many(
        self, name: str, rows: Iterable[Sequence[Any]], *, each: tuple[str, ...] | None = None, **shared: Any
    ) -> None:
        """Insert many rows, each a sequence in the order of `each` (by default the statement's own).

        `rows` may be a generator: it produces the next chunk while the server inserts the last one.
        """
        noted = self.event_rows.add_inserts(name, rows, each, shared | self._always())
        with span(f"sql {name}"):
            await self._round_trip(chain(self._take_pending(), self._inserts(name, noted, each, shared)))

    def _inserts(
        self, name: str, rows: Iterable[Sequence[Any]], each: tuple[str, ...] | None, shared: dict[str, Any]
    ) -> Iterator[Command]:
        each = each or statement(name).each
        shared |= self._always()
        for chunk in chunks(rows):
            insert = many(name, each, len(chunk))
            yield insert, [*insert.arguments(shared), *chain.from_iterable(chunk)]

    async def commit_with(self, *statements: NamedStatement) -> list[list[Row]]:
        """Run these last statements and the commit in one round trip, and return the rows of each."""
        assert self._unchecked_pack is None or self.writes or not statements, "a reader checks its pack with `gather`"
        commands = [*self._take_pending(), *(self._bound(name, parameters) for name, parameters in statements)]
        if commands or not self._begin or self._connection.has_begun:
            with span("sql commit", statements=len(commands)):
                replies = await self._round_trip([*commands, (_COMMIT, [])])
            if replies[-1].command != b"COMMIT":
                raise InFailedSqlTransaction("an earlier error of this transaction was ignored: it was rolled back")
        else:
            replies = []
        self._committed = True
        return [reply.rows for reply in replies[-len(statements) - 1 : -1]]

    async def commit_if(self, required: NamedStatement | None, *statements: NamedStatement) -> list[list[Row]] | None:
        """Do as `commit_with`, behind a statement that fails with SQLSTATE 22P02 if the others are not to be run.

        Returns None if it failed: then the transaction was rolled back.
        """
        if required is None:
            return await self.commit_with(*statements)
        try:
            return (await self.commit_with(required, *statements))[1:]
        except InvalidTextRepresentation:
            await self._connection.exchange([(_ROLLBACK, [])])
            self._committed = True
            return None

    async def tick(self, *locks: NamedStatement) -> Tick:
        """Take the tenant's next sequence number, once per transaction.

        `locks` are reads that lock rows: they go first, in the same round trip, and the next `rows()` with equal
        arguments returns what they read.
        INVARIANT: this is the transaction's last lock: whatever else it locks or may wait for, it does first.
        Raises `ClockAhead` if the time would be further ahead of the database's clock than its owner allows.
        """
        assert self._tick is None or not locks, "the tick is the last lock of a transaction"
        if self._tick is None:
            pack, self._unchecked_pack = self._unchecked_pack, None
            in_force = [] if pack is None else [("pack.hold_in_force", dict[str, Any]())]
            reads = [*self._row_key_query(), *self._with_tick]
            clock, *found = await self._advance_clock("tenant.tick", *in_force, *reads, locks=locks)
            self._check_pack(pack, *found[: len(in_force)])
            self._prefetched.extend(zip(reads, found[len(in_force) :], strict=True))
            if self._tick is None:
                raise await self._clock_ahead()
            visible_seq = self._tick.seq if self._changes_visible else None
            if not self._one_plan and not self.connection.of_cluster:
                self._pending += [(one, []) for one in ONE_PLAN]
            self.defer("tenant.record_tick", **clock[0], visible_seq=visible_seq)
        assert self._tick is not None
        return self._tick

    def read_with_tick(self, statement: NamedStatement) -> None:
        """Send this read behind the tick, in its round trip, where it sees all that was committed before this number.

        The next `rows()` with equal arguments returns the result.
        """
        if self._tick is None and statement not in self._with_tick:
            self._with_tick.append(statement)

    async def set_back(self, by: str, reason: str) -> tuple[Tick, datetime] | None:
        """Take the next sequence number at `now`, earlier than the tenant's clock; return it with the clock's old time.

        Returns None if the clock is not ahead of `now`. Raises `ClockAhead` if `now` is ahead of the database's clock.
        """
        assert self._tick is None, "the step back is the transaction's only tick"
        (clock,) = await self._advance_clock("tenant.set_back")
        if self._tick is None:
            state = await self.row("tenant.clock_state")
            if state is not None and state["bound"] is not None and self.now > state["database_now"] + state["bound"]:
                raise await self._clock_ahead()
            return None
        self.defer("tenant.record_set_back", **clock[0])
        self.defer("tenant.record_reset", **clock[0], by=by, reason=reason)
        return self._tick, clock[0]["prev_at"]

    async def _advance_clock(
        self, name: str, *more: NamedStatement, locks: tuple[NamedStatement, ...] = ()
    ) -> list[list[Row]]:
        """Move the tenant's clock by that statement, with `more` in the same round trip; set the tick if it moved.

        The pack in force, if it is among `more`, comes with the transaction's id.
        """
        marked = any(one == "pack.hold_in_force" for one, _ in more)
        replies = await self.gather(*locks, (name, {}), *more, *([] if marked else [_TRANSACTION_ID]))
        self._prefetched.extend(zip(locks, replies, strict=False))
        clock, *found = replies[len(locks) :]
        if clock:
            rows = next((rows for rows in found if rows and "txid" in rows[0]), None)
            if rows is None:  # No pack was ever put in force.
                (rows,) = await self.gather(_TRANSACTION_ID)
            assert rows, "the tenant was not opened"
            self._txid = rows[0]["txid"]
            self._tick = Tick(clock[0]["seq"], clock[0]["at"])
        return [clock, *found[: len(more)]]

    async def _clock_ahead(self) -> ClockAhead:
        """Return the error that says which clock is ahead: this program's, or the tenant's."""
        state = await self.row("tenant.clock_state")
        assert state is not None, "the tenant was not opened"
        return clock_ahead(self.now, state)

    def _row_key_query(self) -> list[NamedStatement]:
        """The read of the tenant's audit key, to be sent with the tick, unless this process has the key."""
        if self._row_keys is None or self._row_keys.knows_row_key(self.tenant_id):
            return []
        return [("tenant.audited" if self.task == "jobs" else "tenant.audit_key", {})]

    def emit(self, type_: EventType, actor: str, /, **data: Any) -> None:
        """Report something that happened: an event, or an item of one with others of its type and actor.

        The events are written under the tick, before the commit; `event_batches` decides which items share one.
        """
        self._items.append(Item(type_, actor, data, len(self.event_rows)))

    def emitted(self, type_: EventType) -> list[dict[str, Any]]:
        """Return the data of what was reported with that type so far."""
        return [item.data for item in self._items if item.type == type_]

    async def complete(self) -> None:
        """Write the events and commit, unless that was done; `Storage` calls it at the end of the transaction."""
        if self._committed:
            return
        await self.write_events()
        await self.commit_with()

    async def write_events(self) -> None:
        """Write the events of what was reported so far; only for a transaction that reads them before its commit."""
        if self._items or self.event_rows:
            await self._write_events()

    async def _write_events(self) -> None:
        if self._items:
            await self.tick()
        # INVARIANT: read under the tenant's tick, so that nobody can begin to digest its rows at the same time.
        key = await self._row_keys.row_key(self) if self.event_rows and self._row_keys is not None else None
        events = list(batched(self._items, self.event_rows.noted() if key is not None else ()))
        self._items.clear()
        self.event_rows = EventRows()
        if not events:
            return
        tick = await self.tick()
        rows = [
            (n, event_id, one.type, one.actor, one.body, pack(key, one.rows) if key is not None and one.rows else None)
            for n, (event_id, one) in enumerate(zip(make_ids("evt", len(events), tick.at), events, strict=True))
        ]
        self.defer_many("tenant.events", rows, seq=tick.seq, at=tick.at)

    def _check_pack(self, pack: str | None, *found: list[Row]) -> None:
        """Raise `PackChanged` unless that pack is in force; a tenant without any write has none."""
        for rows in found:
            if rows and rows[0]["pack"] != pack:
                raise PackChanged("another pack was put in force at this moment; try again")

    def _bound(self, name: str, parameters: dict[str, Any]) -> Command:
        found = statement(name)
        return found, found.arguments(parameters | self._always())

    async def _exchange(self, statements: list[Command]) -> list[Reply]:
        """Send the pending statements and these in one round trip; return the replies to these."""
        if self._unchecked_pack is not None and not self.writes:
            pack, self._unchecked_pack = self._unchecked_pack, None
            first, *rest = await self._exchange([self._bound("pack.in_force", {}), *statements])
            self._check_pack(pack, first.rows)
            return rest
        commands = [*self._take_pending(), *statements]
        with span(f"sql {statements[-1][0].name}", statements=len(commands)):
            return (await self._round_trip(commands))[-len(statements) :]

    async def _round_trip(self, commands: Iterable[Command]) -> list[Reply]:
        """Send these commands, after the beginning of the transaction if it has not been sent; return their replies."""
        self.round_trips += 1
        if not self._begin:
            return await self._connection.exchange(commands)
        begin: list[Command] = [(statement, []) for statement in self._begin]
        if isinstance(commands, list):
            replies = await self._exchange_first([*begin, *commands])
        else:
            replies = await self._connection.exchange(chain(begin, commands))
        # INVARIANT: only here. Nothing is sent outside the transaction and its tenant, even if an error was caught.
        self._begin = ()
        return replies[len(begin) :]

    async def _exchange_first(self, commands: list[Command]) -> list[Reply]:
        """Send the transaction's first commands; if the connection turns out to be dead, send them on another one.

        INVARIANT: commands that include the COMMIT are not sent again: they may have been committed.
        """
        for _ in range(_REPLACEMENTS):
            began = time.monotonic()
            try:
                return await self._connection.exchange(commands)
            except OperationalError:
                dead = self._connection.closed and not self._connection.hung_up
                at_once = time.monotonic() - began < _AT_ONCE_SECONDS
                if not (dead and at_once) or self._replace is None or commands[-1][0] is _COMMIT:
                    raise
            self._connection = await self._replace(self._connection)
        return await self._connection.exchange(commands)

    def _take_pending(self) -> list[Command]:
        pending, self._pending = self._pending, []
        deferred, self._deferred_rows = self._deferred_rows, {}
        commands: list[Command] = []
        for item in pending:
            commands.extend([item] if item is not None else self._ranked_inserts(deferred))
        return commands

    def _ranked_inserts(self, deferred: dict[str, list[Sequence[Any]]]) -> Iterator[Command]:
        for name in sorted(deferred, key=lambda name: statement(name).rank):
            yield from self._inserts(name, deferred[name], statement(name).each, {})

    def _always(self) -> dict[str, Any]:
        return {"tenant_id": self.tenant_id, "now": self.now, "txid": self._txid}
