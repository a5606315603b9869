"""Rows held against the log: what events list of them is computed again from the tables (AUD-4)."""

from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from typing import Any

from anyio import Event, create_task_group
from anyio.lowlevel import checkpoint

from muniment.database.merkle import HASH_BYTES
from muniment.database.row_forms import BY_NAME, FORMS, SEPARATOR, Form
from muniment.database.row_lists import DIGEST_BYTES, LASTING, LOSING, Listed, Listing, RowKey, listing_of
from muniment.database.storage import Row, Transaction
from muniment.model.chain import Break

# Rows that are asked for in one statement.
AT_ONCE = 4096
# Rows that do not fit and are looked at again in the end; a database with more is broken beyond telling.
SUSPECTS = 1000
# Rows of one table that are looked for in the log at once.
_UNLISTED_AT_ONCE = 50_000

Opening = Callable[[], AbstractAsyncContextManager[Transaction]]
# A list of rows, and the number of the event that has it.
Lists = Sequence[tuple[int, bytes]]


@dataclass(frozen=True, slots=True)
class Expected:
    """What a row's digests must be, and the number of the event that says so."""

    version: int
    lasting: bytes
    losing: bytes | None
    seq: int


@dataclass
class RowCheck:
    """A comparison that goes on page by page: what was listed so far, and which rows did not fit."""

    key: RowKey
    until: dict[str, str] = field(default_factory=dict[str, str])
    listed: Counter[str] = field(default_factory=Counter[str])
    left: Counter[str] = field(default_factory=Counter[str])
    suspects: dict[tuple[str, str], Expected] = field(default_factory=dict[tuple[str, str], Expected])
    rows: int = 0
    more: bool = False

    async def compare(self, tx: Transaction, lists: Lists) -> None:
        """Compare the rows of these lists with the tables; what does not fit is kept to be looked at in the end."""
        listing = Listing()
        for place, (seq, packed) in enumerate(lists, 1):
            with suppress(ValueError):  # It was changed: the chain names its event.
                listing.add(packed, seq)
            if place % AT_ONCE == 0:
                await checkpoint()
        for (name, version), listed in listing.standing.items():
            self.listed[name] += self._counted(name, listed)
            self.rows += len(listed.ids)
            lost = listing.lost.get(name, set())
            for first in range(0, len(listed.ids), AT_ONCE):
                await self._compare_some(tx, BY_NAME[name], version, listed, first, lost)
                await checkpoint()
        for name, ids in listing.lost.items():
            await self._excuse(tx, name, ids)

    async def _compare_some(
        self, tx: Transaction, form: Form, version: int, listed: Listed, first: int, lost: set[str]
    ) -> None:
        name, ids = form.name, listed.ids[first : first + AT_ONCE]
        for row_id in [one for form_name, one in self.suspects if form_name == name]:
            if row_id in ids:
                del self.suspects[name, row_id]  # What the later list says of it counts.
        if await _all_as_listed(tx, self.key, form, version, listed, first):
            return
        expected = dict(_expected(form, version, listed, first))
        odd = await _odd(tx, self.key, form, expected, lost)
        gone = await _left_lawfully(tx, form, [one for one, why in odd.items() if why == _REMOVED])
        self.left[name] += len(gone)
        for row_id in odd.keys() - gone:
            self._suspect(name, row_id, expected[row_id])

    async def _excuse(self, tx: Transaction, name: str, ids: set[str]) -> None:
        """Rows that were suspected before lost only what they may lose."""
        suspected = {one: self.suspects[name, one] for one in ids if (name, one) in self.suspects}
        if not suspected:
            return
        odd = await _odd(tx, self.key, BY_NAME[name], suspected, ids)
        for row_id in suspected.keys() - odd.keys():
            del self.suspects[name, row_id]

    def _suspect(self, name: str, row_id: str, expected: Expected) -> None:
        if len(self.suspects) < SUSPECTS:
            self.suspects[name, row_id] = expected
        else:
            self.more = True

    def _counted(self, name: str, listed: Listed) -> int:
        until = self.until.get(name)
        return len(listed.ids) if until is None else sum(one < until for one in listed.ids)

    async def breaks(self, tx: Transaction, count: int) -> list[Break]:
        """What is wrong in the end: all lists were compared, and this transaction sees what they tell of."""
        found: list[Break] = []
        missing: Counter[str] = Counter()
        by_form: dict[str, dict[str, Expected]] = {}
        for (name, row_id), expected in self.suspects.items():
            by_form.setdefault(name, {})[row_id] = expected
        for name, expected in by_form.items():
            form = BY_NAME[name]
            odd = await _odd(tx, self.key, form, expected, set())
            gone = await _left_lawfully(tx, form, [one for one, why in odd.items() if why == _REMOVED])
            self.left[name] += len(gone)
            for row_id in sorted(odd.keys() - gone):
                why = odd[row_id]
                missing[name] += why == _REMOVED
                found.append(
                    _break("row_removed" if why == _REMOVED else "row_changed", form, row_id, why, expected[row_id].seq)
                )
        for form in FORMS:
            found += await self._added(tx, form, missing[form.name], count)
        for row in await tx.rows("rows.odd_scopes", count=count):
            kind, why = _of_scope(row)
            found.append(_break(kind, "memory_scope", row["memory_id"], why))
        for row in await tx.rows("rows.odd_pack_in_force"):
            found.append(_break("row_changed", "packs_in_force", row["pack"] or "", "is not the latest activation"))
        return found

    async def _added(self, tx: Transaction, form: Form, missing: int, count: int) -> list[Break]:
        """Rows that no list names, looked for only where there are others than as many as were listed."""
        until = self.until.get(form.name)
        if form.id_prefix is not None and until is None:
            return []
        (row,) = await tx.rows(f"form.{form.name} count", until=until)
        if self.more or row["rows"] != self.listed[form.name] - self.left[form.name] - missing:
            ids = await _unlisted(tx, form, until, count)
            return [_break("row_added", form, one, "no event of the log tells of it") for one in ids]
        return []


class Comparing:
    """Compares lists beside whoever reads them: one page at a time, the next is taken when it is done."""

    def __init__(self, opening: Opening, rows: RowCheck | None) -> None:
        self._opening, self._rows = opening, rows
        self._tasks = create_task_group()
        self._done = Event()
        self._done.set()

    async def __aenter__(self) -> None:
        await self._tasks.__aenter__()

    async def __aexit__(self, type_: Any, error: BaseException | None, trace: Any) -> None:
        try:
            await self._tasks.__aexit__(type_, error, trace)
        except BaseExceptionGroup as group:
            # What went wrong is told as if it had been done in one go.
            raise group.exceptions[0] from None

    async def give(self, lists: Lists) -> None:
        """Have these compared; waits for those before."""
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


async def _all_as_listed(tx: Transaction, key: RowKey, form: Form, version: int, listed: Listed, first: int) -> bool:
    """Whether so many rows of a list are all there and as it says: asked at once, which is what nearly all are."""
    ids = listed.ids[first : first + AT_ONCE]
    if len(form.keys) > 1:
        return False
    row = await tx.row(f"form.{form.name} together {version}", ids=SEPARATOR.join(ids))
    if row is None or row["rows"] != len(ids):
        return False
    order = sorted(range(len(ids)), key=ids.__getitem__)
    for part, said in ((LASTING, listed.lasting), (LOSING, listed.losing)):
        if not said:
            continue
        digest, hashes = key.digester(form.name, version, part), row[part.decode()]
        now = [digest(hashes[at : at + HASH_BYTES]) for at in range(0, len(hashes), HASH_BYTES)]
        if now != [_digest(said, first + place) for place in order]:
            return False
    return True


def _digest(digests: bytearray, place: int) -> bytes:
    return bytes(digests[place * DIGEST_BYTES : (place + 1) * DIGEST_BYTES])


def _expected(form: Form, version: int, listed: Listed, first: int) -> Iterator[tuple[str, Expected]]:
    for place in range(first, min(first + AT_ONCE, len(listed.ids))):
        losing = _digest(listed.losing, place) if form.losing else None
        yield listed.ids[place], Expected(version, _digest(listed.lasting, place), losing, listed.seqs[place])


async def _odd(
    tx: Transaction, key: RowKey, form: Form, expected: dict[str, Expected], lost: set[str]
) -> dict[str, str]:
    """Those of the rows that are not as expected, each with why."""
    versions = {one.version for one in expected.values()}
    odd: dict[str, str] = {}
    for version in versions:
        wanted = expected if len(versions) == 1 else {n: one for n, one in expected.items() if one.version == version}
        found: dict[str, Row] = {row["id"]: row for row in await _rows(tx, form, version, wanted)}
        lasting, losing = (key.digester(form.name, version, part) for part in (LASTING, LOSING))
        for row_id, one in wanted.items():
            row = found.get(row_id)
            if row is None:
                odd[row_id] = _REMOVED
            elif lasting(row["lasting"]) != one.lasting:
                odd[row_id] = _CHANGED
            elif one.losing is not None and row_id not in lost and losing(row["losing"]) != one.losing:
                odd[row_id] = _BLANKED
    return odd


async def _rows(tx: Transaction, form: Form, version: int, ids: Iterable[str]) -> list[Row]:
    if len(form.keys) == 1:
        asked: dict[str, Any] = {f"key_{form.key}": list(ids)}
    else:
        parts = [form.parts(one) for one in ids]
        asked = {f"key_{key.name}": sorted({part[place] for part in parts}) for place, key in enumerate(form.keys)}
    return await tx.rows(f"form.{form.name} some {version}", **asked)


async def _left_lawfully(tx: Transaction, form: Form, ids: list[str]) -> set[str]:
    if form.lost_by is None or form.lost_of is None or not ids:
        return set()
    place = [key.name for key in form.keys].index(form.lost_of)
    parts = {one: form.parts(one)[place] for one in ids}
    found = {row["part"] for row in await tx.rows(form.lost_by, parts=sorted(set(parts.values())))}
    return {one for one, part in parts.items() if part in found}


async def _unlisted(tx: Transaction, form: Form, until: str | None, count: int) -> list[str]:
    """Ids of rows that no list names, at most so many."""
    found: list[str] = []
    after = first_key(form)
    while len(found) < count:
        rows = await tx.rows(f"form.{form.name} walk", count=_UNLISTED_AT_ONCE, **after)
        ids = {row["id"] for row in rows if until is None or row["id"] < until}
        async for _, packed in every_list(tx):
            with suppress(ValueError):
                for (name, _), listed in listing_of(packed).standing.items():
                    if name == form.name:
                        ids.difference_update(listed.ids)
            if not ids:
                break
        found += sorted(ids)
        if len(rows) < _UNLISTED_AT_ONCE:
            break
        after = key_of(form, rows[-1])
    return found[:count]


def first_key(form: Form) -> dict[str, Any]:
    """What comes before every key of the form, as the parameters of its statements."""
    return {f"key_{key.name}": -(2**63) if key.kind == "int" else "" for key in form.keys}


def key_of(form: Form, row: Row) -> dict[str, Any]:
    """The key of a row, as those parameters."""
    return {f"key_{key.name}": row[key.name] for key in form.keys}


async def every_list(
    tx: Transaction, seq: int = 0, n: int = -1, *, batches: bool = True
) -> AsyncGenerator[tuple[int, bytes]]:
    """All lists of events after a place; those of batches too."""
    while rows := await tx.rows("rows.lists_after", seq=seq, n=n, count=AT_ONCE):
        for row in rows:
            yield row["seq"], row["rows"]
        seq, n = rows[-1]["seq"], rows[-1]["n"]
    number = 0
    while batches and (rows := await tx.rows("rows.batch_lists", after=number, count=16)):
        for row in rows:
            yield 0, row["rows"]
        number = rows[-1]["number"]


def _of_scope(row: Row) -> tuple[str, str]:
    if not row["here"]:
        return "row_removed", "the memory is promoted, and what recall finds it by is not there"
    if not row["promoted"]:
        return "row_added", "no such memory was promoted"
    return "row_changed", "it says something else than the memory, its retraction or its tombstone"


def _break(kind: str, form: Form | str, row_id: str, why: str, seq: int | None = None) -> Break:
    table = form if isinstance(form, str) else form.table
    shown = row_id.replace("\x1f", " ")
    return Break.model_validate({"kind": kind, "table": table, "row_id": shown, "seq": seq or None, "why": why})
