"""The rows that the events of one transaction list, noted as they are inserted."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

from muniment.database.row_digests import InsertPlan, event_row, insert_plan
from muniment.database.row_lists import AT_MOST, EventRow, RowKey, pack
from muniment.database.statements import statement


@cache
def _plan(name: str) -> InsertPlan | None:
    return insert_plan(statement(name).text)


class EventRows:
    """Rows in the order in which they were written; an event lists those since the event before it."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: list[EventRow] = []

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> EventRow:
        return self._rows[index]

    def add_insert(self, name: str, parameters: dict[str, Any], shared: dict[str, Any]) -> None:
        """Note the row that a statement inserts, if its table has a form."""
        if (plan := _plan(name)) is not None:
            self._rows.append(plan.event_row(parameters | shared))

    def add_inserts(
        self, name: str, rows: Iterable[Sequence[Any]], each: tuple[str, ...] | None, shared: dict[str, Any]
    ) -> Iterable[Sequence[Any]]:
        """Return the rows of a many-row insert unchanged, noting each as it is read if its table has a form."""
        plan = _plan(name)
        return rows if plan is None else self._noted(plan, rows, each or statement(name).each, shared)

    def _noted(
        self, plan: InsertPlan, rows: Iterable[Sequence[Any]], each: tuple[str, ...], shared: dict[str, Any]
    ) -> Iterator[Sequence[Any]]:
        event_row_of = plan.reader(each, shared)
        for row in rows:
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

    def lists(self, key: RowKey, ends: Sequence[int]) -> tuple[list[bytes | None], list[tuple[int, bytes]]]:
        """Pack one list for each event, and further lists with their sizes for the rows that are left over.

        `ends` says for each event how many rows were noted before it. The last event also lists the rows noted after
        it. Rows beyond `AT_MOST` go to the next event's list.
        """
        lists: list[bytes | None] = []
        begin = 0
        for number, end in enumerate(ends, 1):
            until = min(len(self._rows) if number == len(ends) else end, begin + AT_MOST)
            lists.append(pack(key, self._rows[begin:until]) if until > begin else None)
            begin = max(begin, until)
        left = [self._rows[first : first + AT_MOST] for first in range(begin, len(self._rows), AT_MOST)]
        return lists, [(len(rows), pack(key, rows)) for rows in left]
