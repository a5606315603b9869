"""Makes the events of a transaction: one for each type, actor and 500 rows (AUD-1, AUD-4)."""

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

from pydantic_core import to_json

from muniment.database.row_lists import AT_MOST, EventRow
from muniment.model.events import ITEMS, EventType

# An event with its envelope stays below the 64 KB that every receiver of CloudEvents accepts.
BODY_BYTES = 60_000
_OPEN, _CLOSE = b'{"%s":[' % ITEMS.encode(), b"]}"
# Fields with ids by which events of different types refer to the same thing.
_ID_FIELDS = ("memory_id", "proposal_id", "contradiction_id", "capture_id", "existing", "superseded_by")


class Item(NamedTuple):
    """Something that happened, and how many rows the transaction had written when it was reported."""

    type: EventType
    actor: str
    data: dict[str, Any]
    rows_before: int


class Batch(NamedTuple):
    """An event to be written: its data as JSON, and the rows that it lists."""

    type: EventType
    actor: str
    body: bytes
    rows: Sequence[EventRow]


class _Group:
    """Items of one type and actor, and the rows that were written for them."""

    __slots__ = ("actor", "items", "rows", "type")

    def __init__(self, type_: EventType, actor: str) -> None:
        self.type: EventType = type_
        self.actor = actor
        self.items: list[dict[str, Any]] = []
        self.rows: list[EventRow] = []


def batched(items: Sequence[Item], rows: Sequence[EventRow]) -> Iterator[Batch]:
    """Join the items of each type and actor (of notes, also of each `about`) into as few events as can list the rows.

    The rows of an item are those written since the item before it was reported; the last item also has those written
    after it. Events are in the order of their first items. Rows that the events of a group cannot list are listed by
    the next group's, and after the last group by notes.
    """
    remaining = [] if items else list(rows)
    for group in _groups(items, rows):
        group.rows[:0] = remaining
        parts = list(_parts(group))
        for number, body in enumerate(parts):
            yield Batch(group.type, group.actor, body, group.rows[number * AT_MOST : (number + 1) * AT_MOST])
        remaining = group.rows[len(parts) * AT_MOST :]
    for first in range(0, len(remaining), AT_MOST):
        listed = remaining[first : first + AT_MOST]
        yield Batch("memory.note", "auto", to_json({"about": "rows", "rows": len(listed)}), listed)


def _groups(items: Sequence[Item], rows: Sequence[EventRow]) -> list[_Group]:
    """Group the items so that the items which name one id stay in the order in which they were reported."""
    groups: list[_Group] = []
    # The number of the last group of each kind, and of the last group that names an id.
    latest: dict[tuple[str, str, Any], int] = {}
    named_in: dict[Any, int] = {}
    begin = 0
    for number, (type_, actor, data, rows_before) in enumerate(items, 1):
        kind = (type_, actor, data.get("about"))
        ids = [data[name] for name in _ID_FIELDS if name in data]
        at = latest.get(kind)
        if at is None or any(named_in.get(id_, at) > at for id_ in ids):
            at = latest[kind] = len(groups)
            groups.append(_Group(type_, actor))
        named_in.update(dict.fromkeys(ids, at))
        end = len(rows) if number == len(items) else rows_before
        groups[at].items.append(data)
        groups[at].rows += rows[begin:end]
        begin = end
    return groups


def _parts(group: _Group) -> Iterator[bytes]:
    """Write the items of a group as the data of one event, or of several of equal size if its rows need them."""
    count = len(group.items)
    needed = min(count, -(-max(count, len(group.rows)) // AT_MOST))
    written = [to_json(item) for item in group.items]
    ends = [count * number // needed for number in range(needed + 1)]
    return chain.from_iterable(_bodies(written[begin:end]) for begin, end in pairwise(ends))


def _bodies(written: Sequence[bytes]) -> Iterator[bytes]:
    """Join items to the data of one event, or of several if they are long; a single item is itself the data."""
    begin, size = 0, 0
    for end, item in enumerate(written):
        if size + len(item) > BODY_BYTES and end > begin:
            yield _body(written[begin:end])
            begin, size = end, 0
        size += len(item) + 1
    yield _body(written[begin:])


def _body(written: Sequence[bytes]) -> bytes:
    return written[0] if len(written) == 1 else _OPEN + b",".join(written) + _CLOSE
