"""The rows that the events of one transaction tell of, written down as they are inserted."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from muniment.database.row_digests import InsertPlan, event_row, insert_plan
from muniment.database.row_lists import AT_MOST, EventRow, RowKey, pack
from muniment.database.statements import statement


class EventRows:
    """Rows in the order in which they were written; an event tells of those since the event before it."""

    __slots__ = ("_rows",)

    def __init__(self) -> None:
        self._rows: list[EventRow] = []

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, place: int) -> EventRow:
        return self._rows[place]

    def inserted(self, name: str, given: dict[str, Any]) -> None:
        """Note the row that a statement inserts, if it is one that events tell of."""
        if (plan := insert_plan(statement(name).text)) is not None:
            self._rows.append(plan.note(given))

    def passing(
        self, name: str, rows: Iterable[Sequence[Any]], each: tuple[str, ...] | None, shared: dict[str, Any]
    ) -> Iterable[Sequence[Any]]:
        """The same rows; each is noted as it passes."""
        plan = insert_plan(statement(name).text)
        return rows if plan is None else self._noted(plan, rows, each or statement(name).each, shared)

    def _noted(
        self, plan: InsertPlan, rows: Iterable[Sequence[Any]], each: tuple[str, ...], shared: dict[str, Any]
    ) -> Iterator[Sequence[Any]]:
        noting = plan.noting(each, shared)
        for row in rows:
            self._rows.append(noting(row))
            yield row

    def row(self, form: str, /, **columns: Any) -> None:
        """Tell of a row as it stands now: for what no insert of it shows."""
        self._rows.append(event_row(form, columns))

    def lost(self, form: str, ids: Iterable[str]) -> None:
        """Tell that rows of the form lost what they may lose."""
        self._rows.extend([EventRow(form, 1, row_id, None) for row_id in ids])

    def hashed(self, rows: Iterable[EventRow]) -> None:
        """Tell of rows that were hashed elsewhere."""
        self._rows.extend(rows)

    def lists(self, key: RowKey, ends: Sequence[int]) -> tuple[list[bytes | None], list[tuple[int, bytes]]]:
        """A list for each event, given how many rows had been told of at each; and lists beyond, with their sizes.

        The last event has what came after it. What does not fit into a list goes to the next event.
        """
        lists: list[bytes | None] = []
        begin = 0
        for place, end in enumerate(ends, 1):
            until = min(len(self._rows) if place == len(ends) else end, begin + AT_MOST)
            lists.append(pack(key, self._rows[begin:until]) if until > begin else None)
            begin = max(begin, until)
        left = [self._rows[first : first + AT_MOST] for first in range(begin, len(self._rows), AT_MOST)]
        return lists, [(len(rows), pack(key, rows)) for rows in left]
