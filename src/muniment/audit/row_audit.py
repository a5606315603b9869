"""Rows compared with the log: the digests that events list are computed again from the tables (AUD-4).

Rows that come without an event (recalls, compiled prompts) are listed by a sweep when the chain is sealed; the rows of
a database from before this audit are listed once.
"""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from anyio import Event, create_task_group

from muniment.audit.rules import HASH_BYTES
from muniment.database.row_forms import BY_NAME, FORMS, SEPARATOR, Form
from muniment.database.row_lists import (
    DIGEST_BYTES,
    LASTING,
    LOSING,
    EventRow,
    ListedRows,
    RowKey,
    RowLists,
    pack,
    unpack,
)
from muniment.database.storage import Row, Transaction
from muniment.loops import give_way
from muniment.model.chain import Break
from muniment.model.ids import first_id, made_at

# Rows read by one statement; rows that a sweep lists in one batch of the chain.
AT_ONCE = 4096
# Rows that do not match and are checked again at the end; beyond these, single rows are not reported.
SUSPECTS = 1000
# Rows of one table that are looked for in the log at once.
_UNLISTED_AT_ONCE = 50_000
# A list has some 30 KB.
_LISTS_AT_ONCE = 256
# How long after the time in its id a row may be committed, and how far two clocks may be apart.
LATE = timedelta(hours=1)
SWEPT = tuple(form for form in FORMS if form.id_prefix is not None)

OpenTransaction = Callable[[], AbstractAsyncContextManager[Transaction]]
# Packed lists of rows, each with the sequence number of its event.
Lists = Sequence[tuple[int, bytes]]


class Expected(NamedTuple):
    """The digests that a row should have, and the sequence number of the event that lists them."""

    version: int
    lasting: bytes
    losing: bytes | None
    seq: int


@dataclass
class RowCheck:
    """A comparison in pages: how many rows were listed and removed so far, and which did not match."""

    key: RowKey
    until: dict[str, str] = field(default_factory=dict[str, str])
    listed: Counter[str] = field(default_factory=Counter[str])
    left: Counter[str] = field(default_factory=Counter[str])
    suspects: dict[tuple[str, str], Expected] = field(default_factory=dict[tuple[str, str], Expected])
    rows: int = 0
    more: bool = False

    async def compare(self, tx: Transaction, lists: Lists) -> None:
        """Compare the rows of these lists with the tables; rows that do not match are checked again at the end."""
        content = RowLists()
        for number, (seq, packed) in enumerate(lists, 1):
            with suppress(ValueError):  # The list was changed: the chain reports its event.
                content.add(packed, seq)
            if number % AT_ONCE == 0:
                await give_way()
        for (name, version), listed in content.rows.items():
            self.listed[name] += self._count(name, listed)
            self.rows += len(listed.ids)
            blanked = content.blanked.get(name, set())
            for first in range(0, len(listed.ids), AT_ONCE):
                await self._compare_some(tx, BY_NAME[name], version, listed, first, blanked)
                await give_way()
        for name, ids in content.blanked.items():
            await self._clear_blanked(tx, name, ids)

    async def _compare_some(
        self, tx: Transaction, form: Form, version: int, listed: ListedRows, first: int, blanked: set[str]
    ) -> None:
        name, ids = form.name, listed.ids[first : first + AT_ONCE]
        for row_id in [one for form_name, one in self.suspects if form_name == name]:
            if row_id in ids:
                del self.suspects[name, row_id]  # The later list of a row counts.
        if await _all_match(tx, self.key, form, version, listed, first):
            return
        expected = dict(_expected(form, version, listed, first))
        for row_id in await self._unexplained(tx, form, expected, blanked):
            if len(self.suspects) < SUSPECTS:
                self.suspects[name, row_id] = expected[row_id]
            else:
                self.more = True

    async def _unexplained(
        self, tx: Transaction, form: Form, expected: dict[str, Expected], blanked: set[str]
    ) -> dict[str, str]:
        """The rows that do not match, each with the reason, without those that were removed lawfully."""
        mismatched = await _mismatched(tx, self.key, form, expected, blanked)
        lawful = await _removed_lawfully(tx, form, [one for one, why in mismatched.items() if why == _REMOVED])
        self.left[form.name] += len(lawful)
        return {row_id: why for row_id, why in mismatched.items() if row_id not in lawful}

    async def _clear_blanked(self, tx: Transaction, name: str, ids: set[str]) -> None:
        """Drop suspects that match apart from the columns that an erasure blanked."""
        suspected = {one: self.suspects[name, one] for one in ids if (name, one) in self.suspects}
        if not suspected:
            return
        mismatched = await _mismatched(tx, self.key, BY_NAME[name], suspected, ids)
        for row_id in suspected.keys() - mismatched.keys():
            del self.suspects[name, row_id]

    def _count(self, name: str, listed: ListedRows) -> int:
        until = self.until.get(name)
        return len(listed.ids) if until is None else sum(one < until for one in listed.ids)

    async def breaks(self, tx: Transaction, count: int) -> list[Break]:
        """The breaks, once all lists were compared in this or an earlier transaction."""
        found: list[Break] = []
        missing: Counter[str] = Counter()
        by_form: dict[str, dict[str, Expected]] = {}
        for (name, row_id), expected in self.suspects.items():
            by_form.setdefault(name, {})[row_id] = expected
        for name, expected in by_form.items():
            form = BY_NAME[name]
            for row_id, why in sorted((await self._unexplained(tx, form, expected, set())).items()):
                missing[name] += why == _REMOVED
                kind = "row_removed" if why == _REMOVED else "row_changed"
                found.append(_break(kind, form, row_id, why, expected[row_id].seq))
        for form in FORMS:
            found += await self._added(tx, form, missing[form.name], count)
        for row in await tx.rows("rows.odd_scopes", count=count):
            kind, why = _scope_break(row)
            found.append(_break(kind, "memory_scope", row["memory_id"], why))
        for row in await tx.rows("rows.odd_pack_in_force"):
            found.append(_break("row_changed", "packs_in_force", row["pack"] or "", "is not the latest activation"))
        return found

    async def _added(self, tx: Transaction, form: Form, missing: int, count: int) -> list[Break]:
        """Rows that no list names, looked for only if the table does not have as many rows as were listed."""
        until = self.until.get(form.name)
        if form.id_prefix is not None and until is None:
            return []
        (row,) = await tx.rows(f"form.{form.name} count", until=until)
        if self.more or row["rows"] != self.listed[form.name] - self.left[form.name] - missing:
            ids = await _unlisted(tx, form, until, count)
            return [_break("row_added", form, one, "no event of the log lists it") for one in ids]
        return []


class BackgroundCheck:
    """Compares lists in the background, one page at a time, while the next page is read."""

    def __init__(self, open_transaction: OpenTransaction, rows: RowCheck | None) -> None:
        self._opening, self._rows = open_transaction, rows
        self._tasks = create_task_group()
        self._done = Event()
        self._done.set()

    async def __aenter__(self) -> None:
        await self._tasks.__aenter__()

    async def __aexit__(self, type_: Any, error: BaseException | None, trace: Any) -> None:
        try:
            await self._tasks.__aexit__(type_, error, trace)
        except BaseExceptionGroup as group:
            # Raise the error as if the comparison ran in the foreground.
            raise group.exceptions[0] from None

    async def start(self, lists: Lists) -> None:
        """Start comparing these lists, after the previous page is done."""
        await self._done.wait()
        if self._rows is not None and lists:
            self._done = Event()
            self._tasks.start_soon(self._compare, self._rows, lists)

    async def _compare(self, rows: RowCheck, lists: Lists) -> None:
        async with self._opening() as tx:
            await rows.compare(tx, lists)
        self._done.set()


_REMOVED = "it was written and is not there"
_CHANGED = "it is not what was written"
_BLANKED = "it lost its content, and no erasure took it"


async def _all_match(tx: Transaction, key: RowKey, form: Form, version: int, listed: ListedRows, first: int) -> bool:
    """Whether the next `AT_ONCE` rows are all there and match, in one statement: the usual case."""
    ids = listed.ids[first : first + AT_ONCE]
    if len(form.keys) > 1:
        return False
    row = await tx.row(f"form.{form.name} together {version}", ids=SEPARATOR.join(ids))
    if row is None or row["rows"] != len(ids):
        return False
    order = sorted(range(len(ids)), key=ids.__getitem__)
    for part, digests in ((LASTING, listed.lasting), (LOSING, listed.losing)):
        if not digests:
            continue
        digest, hashes = key.digester(form.name, version, part), row[part.decode()]
        now = [digest(hashes[at : at + HASH_BYTES]) for at in range(0, len(hashes), HASH_BYTES)]
        if now != [_digest(digests, first + index) for index in order]:
            return False
    return True


def _digest(digests: bytearray, index: int) -> bytes:
    return bytes(digests[index * DIGEST_BYTES : (index + 1) * DIGEST_BYTES])


def _expected(form: Form, version: int, listed: ListedRows, first: int) -> Iterator[tuple[str, Expected]]:
    for index in range(first, min(first + AT_ONCE, len(listed.ids))):
        losing = _digest(listed.losing, index) if form.losing else None
        yield listed.ids[index], Expected(version, _digest(listed.lasting, index), losing, listed.seqs[index])


async def _mismatched(
    tx: Transaction, key: RowKey, form: Form, expected: dict[str, Expected], blanked: set[str]
) -> dict[str, str]:
    """The rows that are not as expected, each with the reason."""
    odd: dict[str, str] = {}
    for version in {one.version for one in expected.values()}:
        wanted = {row_id: one for row_id, one in expected.items() if one.version == version}
        found: dict[str, Row] = {row["id"]: row for row in await _rows(tx, form, version, wanted)}
        lasting, losing = (key.digester(form.name, version, part) for part in (LASTING, LOSING))
        for row_id, one in wanted.items():
            row = found.get(row_id)
            if row is None:
                odd[row_id] = _REMOVED
            elif lasting(row["lasting"]) != one.lasting:
                odd[row_id] = _CHANGED
            elif one.losing is not None and row_id not in blanked and losing(row["losing"]) != one.losing:
                odd[row_id] = _BLANKED
    return odd


async def _rows(tx: Transaction, form: Form, version: int, ids: Iterable[str]) -> list[Row]:
    if len(form.keys) == 1:
        keys: dict[str, Any] = {f"key_{form.key}": list(ids)}
    else:
        parts = [form.parts(one) for one in ids]
        keys = {f"key_{key.name}": sorted({part[index] for part in parts}) for index, key in enumerate(form.keys)}
    return await tx.rows(f"form.{form.name} some {version}", **keys)


async def _removed_lawfully(tx: Transaction, form: Form, ids: list[str]) -> set[str]:
    if form.lost_by is None or form.lost_of is None or not ids:
        return set()
    index = [key.name for key in form.keys].index(form.lost_of)
    parts = {one: form.parts(one)[index] for one in ids}
    found = {row["part"] for row in await tx.rows(form.lost_by, parts=sorted(set(parts.values())))}
    return {one for one, part in parts.items() if part in found}


async def _unlisted(tx: Transaction, form: Form, until: str | None, count: int) -> list[str]:
    """The ids of rows that no list names, at most `count`."""
    found: list[str] = []
    async for rows in _pages(tx, form, _UNLISTED_AT_ONCE):
        ids = {row["id"] for row in rows if until is None or row["id"] < until}
        async for _, packed in every_row_list(tx):
            with suppress(ValueError):
                for (name, _), listed in unpack(packed).rows.items():
                    if name == form.name:
                        ids.difference_update(listed.ids)
            if not ids:
                break
        found += sorted(ids)
        if len(found) >= count:
            break
    return found[:count]


async def _pages(tx: Transaction, form: Form, count: int, after: str = "") -> AsyncGenerator[list[Row]]:
    """The hashes of a form's rows in the order of their keys, in pages; `after` is a key of a single text column."""
    keys = {f"key_{key.name}": -(2**63) if key.kind == "int" else after for key in form.keys}
    while True:
        rows = await tx.rows(f"form.{form.name} walk", count=count, **keys)
        yield rows
        if len(rows) < count:
            return
        keys = {f"key_{key.name}": rows[-1][key.name] for key in form.keys}


async def every_row_list(
    tx: Transaction, seq: int = 0, n: int = -1, *, batches: bool = True
) -> AsyncGenerator[tuple[int, bytes]]:
    """Every packed list of the events after (seq, n), and of the batches, with the event's sequence number or 0."""
    while rows := await tx.rows("rows.lists_after", seq=seq, n=n, count=_LISTS_AT_ONCE):
        for row in rows:
            yield row["seq"], row["rows"]
        seq, n = rows[-1]["seq"], rows[-1]["n"]
    number = 0
    while batches and (rows := await tx.rows("rows.batch_lists", after=number, count=16)):
        for row in rows:
            yield 0, row["rows"]
        number = rows[-1]["number"]


def _scope_break(row: Row) -> tuple[str, str]:
    if not row["here"]:
        return "row_removed", "the memory is promoted, but the row that recall finds it by is missing"
    if not row["promoted"]:
        return "row_added", "no such memory was promoted"
    return "row_changed", "it does not match the memory, its retraction or its tombstone"


def _break(kind: str, form: Form | str, row_id: str, why: str, seq: int | None = None) -> Break:
    table = form if isinstance(form, str) else form.table
    shown = row_id.replace("\x1f", " ")
    return Break.model_validate({"kind": kind, "table": table, "row_id": shown, "seq": seq or None, "why": why})


class Sweep(NamedTuple):
    """Rows without an event, packed, for the batch after the number `after`; all rows up to `until` are listed."""

    after: int
    rows: bytes
    until: datetime


async def sweep(tx: Transaction, key: RowKey) -> Sweep | None:
    """List the rows that came without an event since the last sweep; None if there are none."""
    last = await tx.row("chain.last")
    if last is None:
        return None  # The first batch of a chain needs an event.
    row = await tx.row("rows.swept_until")
    since: datetime | None = row["at"] if row is not None else None
    known: dict[str, set[str]] = {}
    if since is not None:
        for listed in await tx.rows("rows.lists_since", since=since - 2 * LATE):
            for (name, _), rows in unpack(listed["rows"]).rows.items():
                known.setdefault(name, set()).update(rows.ids)
    swept: list[EventRow] = []
    until = tx.now
    for form in SWEPT:
        found, last_id = await _unknown(tx, form, since, known.get(form.name, set()), AT_ONCE - len(swept))
        swept += found
        if last_id is not None:
            # There are more: the next sweep goes on here.
            until = min(until, made_at(last_id) or until)
    return Sweep(last["number"], pack(key, swept, AT_ONCE), until) if swept else None


async def _unknown(
    tx: Transaction, form: Form, since: datetime | None, known: set[str], count: int
) -> tuple[list[EventRow], str | None]:
    """At most `count` rows that are not in `known`, and the id of the last one if there may be more."""
    assert form.id_prefix is not None
    after = first_id(form.id_prefix, since - LATE) if since is not None else ""
    found: list[EventRow] = []
    async for rows in _pages(tx, form, AT_ONCE, after):
        for row in rows:
            if row["id"] in known:
                continue
            if len(found) == count:
                return found, found[-1].row_id if found else after
            found.append(_event_row(form, row))
        after = rows[-1]["id"] if rows else after
    return found, None


def swept_before(until: datetime | None) -> dict[str, str]:
    """For each form that is swept, the id before which every row is listed."""
    if until is None:
        return {}
    return {form.name: first_id(form.id_prefix, until - LATE) for form in SWEPT if form.id_prefix is not None}


async def every_row(tx: Transaction) -> list[EventRow]:
    """Hash all rows that events would have listed, for a tenant whose log lists none yet."""
    return [
        _event_row(form, row)
        for form in FORMS
        if form.id_prefix is None
        async for rows in _pages(tx, form, AT_ONCE)
        for row in rows
    ]


def _event_row(form: Form, row: Row) -> EventRow:
    return EventRow(form.name, form.version, row["id"], row["lasting"], row.get("losing"))
