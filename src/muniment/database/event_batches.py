"""How what happened in a transaction becomes events: one for each type, actor and 500 rows (AUD-1, AUD-4)."""

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from typing import Any, NamedTuple

from pydantic_core import to_json

from muniment.database.row_lists import AT_MOST, EventRow
from muniment.model.events import ITEMS, EventType

# An event with its envelope stays below the 64 KB that every receiver of CloudEvents accepts.
BODY_BYTES = 60_000
_OPEN, _CLOSE = b'{"%s":[' % ITEMS.encode(), b"]}"
# Fields with the id of something that events of other types name too.
_NAMES = ("memory_id", "proposal_id", "contradiction_id", "capture_id", "existing", "superseded_by")


class Item(NamedTuple):
    """Something that happened, and how many rows its transaction had written before it was reported."""

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
    """Join the items of each type and actor (of notes: about the same) to as few events as can list their rows.

    An item has the rows written since the item before it, the last one those after it too. Events are in the order of
    their first items. Rows that do not fit into the lists of their events go to the next one, the last to notes.
    """
    left = [] if items else list(rows)
    for group in _groups(items, rows):
        group.rows[:0] = left
        parts = list(_parts(group))
        for number, body in enumerate(parts):
            yield Batch(group.type, group.actor, body, group.rows[number * AT_MOST : (number + 1) * AT_MOST])
        left = group.rows[len(parts) * AT_MOST :]
    for first in range(0, len(left), AT_MOST):
        some = left[first : first + AT_MOST]
        yield Batch("memory.note", "auto", to_json({"about": "rows", "rows": len(some)}), some)


def _groups(items: Sequence[Item], rows: Sequence[EventRow]) -> list[_Group]:
    """Group the items. For each id, the groups that name it are in the order in which its items were reported."""
    groups: list[_Group] = []
    latest: dict[tuple[str, str, Any], int] = {}
    named: dict[Any, int] = {}
    begin = 0
    for number, (type_, actor, data, rows_before) in enumerate(items, 1):
        kind = (type_, actor, data.get("about"))
        ids = [data[name] for name in _NAMES if name in data]
        at = latest.get(kind)
        if at is None or any(named.get(one, at) > at for one in ids):
            at = latest[kind] = len(groups)
            groups.append(_Group(type_, actor))
        named.update(dict.fromkeys(ids, at))
        end = len(rows) if number == len(items) else rows_before
        groups[at].items.append(data)
        groups[at].rows += rows[begin:end]
        begin = end
    return groups


def _parts(group: _Group) -> Iterator[bytes]:
    """The items of a group as the JSON of one event, or of several: evenly divided if its rows need more than one."""
    count = len(group.items)
    needed = min(count, -(-max(count, len(group.rows)) // AT_MOST))
    written = [to_json(one) for one in group.items]
    ends = [count * number // needed for number in range(needed + 1)]
    return chain.from_iterable(_bodies(written[begin:end]) for begin, end in pairwise(ends))


def _bodies(written: Sequence[bytes]) -> Iterator[bytes]:
    """Items as the JSON of one event, or of several if they are long; an item alone is the data of its event."""
    begin, size = 0, 0
    for end, one in enumerate(written):
        if size + len(one) > BODY_BYTES and end > begin:
            yield _body(written[begin:end])
            begin, size = end, 0
        size += len(one) + 1
    yield _body(written[begin:])


def _body(written: Sequence[bytes]) -> bytes:
    return written[0] if len(written) == 1 else _OPEN + b",".join(written) + _CLOSE
