"""The rows that the events of one transaction list, noted as they are inserted."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from typing import Any

from muniment.database.row_digests import EncodedValues, InsertPlan, RowReader, event_row, insert_plan
from muniment.database.row_lists import EventRow
from muniment.database.statements import statement


@cache
def _plan(name: str) -> InsertPlan | None:
    return insert_plan(statement(name).text)


class EventRows:
    """Rows in the order in which they were written; an event lists those since the event before it."""

    __slots__ = ("_known", "_readers", "_rows")

    def __init__(self) -> None:
        self._rows: list[EventRow] = []
        self._readers: dict[str, RowReader | None] = {}
        self._known = EncodedValues()

    def __len__(self) -> int:
        return len(self._rows)

    def noted(self) -> Sequence[EventRow]:
        """The rows noted so far."""
        return self._rows

    def add_insert(self, name: str, parameters: dict[str, Any], shared: dict[str, Any]) -> None:
        """Note the row that a statement inserts, if its table has a form."""
        if (plan := _plan(name)) is not None:
            self._rows.append(plan.event_row(parameters | shared))

    def add_row(self, name: str, row: Sequence[Any], shared: dict[str, Any]) -> None:
        """Note one of many rows that a statement inserts, in the order of its `each`; what they share never changes."""
        if name not in self._readers:
            plan = _plan(name)
            self._readers[name] = plan.reader(statement(name).each, shared, self._known) if plan is not None else None
        if (event_row_of := self._readers[name]) is not None:
            self._rows.append(event_row_of(row))

    def add_inserts(
        self, name: str, rows: Iterable[Sequence[Any]], each: tuple[str, ...] | None, shared: dict[str, Any]
    ) -> Iterable[Sequence[Any]]:
        """Return the rows of a many-row insert unchanged, noting each as it is read if its table has a form."""
        plan = _plan(name)
        return rows if plan is None else self._noted(plan, rows, each or statement(name).each, shared)

    def _noted(
        self, plan: InsertPlan, rows: Iterable[Sequence[Any]], each: tuple[str, ...], shared: dict[str, Any]
    ) -> Iterator[Sequence[Any]]:
        waiting = iter(rows)
        first, second = next(waiting, None), next(waiting, None)
        if first is not None and second is None:
            # A reader is worth making for several rows only.
            self._rows.append(plan.event_row({**shared, **dict(zip(each, first, strict=True))}))
            yield first
            return
        event_row_of = plan.reader(each, shared, self._known)
        for row in chain([one for one in (first, second) if one is not None], waiting):
            self._rows.append(event_row_of(row))
            yield row

    def add(self, form: str, /, **columns: Any) -> None:
        """Note a row with its present columns, for a change that is not an insert."""
        self._rows.append(event_row(form, columns))

    def add_blanked(self, form: str, ids: Iterable[str]) -> None:
        """Note that an erasure blanked the columns of these rows that it may blank."""
        self._rows.extend([EventRow(form, 1, row_id, None) for row_id in ids])

    def add_hashed(self, rows: Iterable[EventRow]) -> None:
        """Note rows that were hashed elsewhere."""
        self._rows.extend(rows)
