"""Rows held against the log: what events list of them is computed again from the tables (AUD-4)."""

from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from anyio.lowlevel import checkpoint

from muniment.model.chain import Break
from muniment.policy.row_forms import BY_NAME, FORMS, Form
from muniment.policy.row_lists import LASTING, LOSING, Listed, RowKey, unpack
from muniment.storage.session import Row, Transaction

# Rows that are asked for in one statement.
AT_ONCE = 4096
# Rows that do not fit and are looked at again in the end; a database with more is broken beyond telling.
SUSPECTS = 1000
# Rows of one table that are looked for in the log at once.
_UNLISTED_AT_ONCE = 50_000

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
        standing: dict[tuple[str, int], dict[str, Expected]] = {}
        lost: dict[str, set[str]] = {}
        for seq, packed in lists:
            for group in _groups(packed):
                if group.lasting is None:
                    lost.setdefault(group.form, set()).update(group.ids)
                    continue
                self.listed[group.form] += self._counted(group)
                standing.setdefault((group.form, group.version), {}).update(_expected(group, seq))
        for (name, _), expected in standing.items():
            form = BY_NAME[name]
            self.rows += len(expected)
            for row_id in [one for form_name, one in self.suspects if form_name == name and one in expected]:
                del self.suspects[name, row_id]
            for some in _slices(expected):
                odd = await _odd(tx, self.key, form, some, lost.get(name, set()))
                gone = await _left_lawfully(tx, form, [one for one, why in odd.items() if why == _REMOVED])
                self.left[name] += len(gone)
                for row_id in odd.keys() - gone:
                    self._suspect(name, row_id, expected[row_id])
                await checkpoint()
        for name, ids in lost.items():
            await self._excuse(tx, name, ids)

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

    def _counted(self, group: Listed) -> int:
        until = self.until.get(group.form)
        return len(group.ids) if until is None else sum(one < until for one in group.ids)

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


_REMOVED = "it was written and is not there"
_CHANGED = "it is not what was written"
_BLANKED = "it lost its content, and no erasure took it"


def _groups(packed: bytes) -> Iterator[Listed]:
    try:
        yield from unpack(packed)
    except ValueError:
        return  # It was changed: the chain names its event.


def _expected(group: Listed, seq: int) -> Iterator[tuple[str, Expected]]:
    lasting, losing, version = group.lasting or [], group.losing, group.version
    for place, row_id in enumerate(group.ids):
        yield row_id, Expected(version, lasting[place], losing[place] if losing is not None else None, seq)


def _slices(expected: dict[str, Expected]) -> Iterator[dict[str, Expected]]:
    items = iter(expected.items())
    while some := dict(islice(items, AT_ONCE)):
        yield some


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
            for group in _groups(packed):
                if group.form == form.name:
                    ids.difference_update(group.ids)
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
