"""Whether a batch of the audit chain holds, and what became of the events in it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from muniment.database.merkle import Place, RowBatch, Sealable, batch_hash, event_hash, leaves_of, root_of, unpacked
from muniment.model.chain import Break

# Of each kind, that are looked at closely; a chain with more is broken beyond telling.
LOOKED_AT = 1000


@dataclass(frozen=True)
class Batch:
    """A batch as it stands; `after` is where the one before it ended."""

    number: int
    prev_hash: bytes | None
    after: Place | None
    first_seq: int
    last: Place
    events: int
    leaves: bytes
    root: bytes
    hash: bytes
    seal: bytes
    rows: RowBatch | None = None


@dataclass
class Astray:
    """What does not fit: events that are not what was sealed at their place, and what was sealed and is not there."""

    events: list[tuple[int, Sealable, bool]] = field(default_factory=list)
    lost: dict[Place, tuple[int, bytes]] = field(default_factory=dict)
    more: bool = False


def linked(batch: Batch, previous: Batch | None) -> list[Break]:
    """Whether the batch continues the one read before it."""
    before = previous.number if previous is not None else 0
    missing = [
        Break(kind="batch_missing", batch=number, why=f"there is no batch {number}")
        for number in range(before + 1, min(batch.number, before + LOOKED_AT))
    ]
    if missing:
        return missing
    if previous is None:
        continues = batch.prev_hash is None and batch.after is None
    else:
        continues = (batch.prev_hash, batch.after) == (previous.hash, previous.last)
    if continues:
        return []
    why = "it does not continue the batch before it"
    return [Break(kind="chain_broken", batch=batch.number, seq=batch.first_seq, why=why)]


def forged(tenant: bytes, batch: Batch, sealed: bool) -> list[Break]:
    """Whether the batch is what it says; `sealed` tells whether its seal was made with the key, over its hash."""
    said = batch_hash(
        tenant, batch.number, batch.prev_hash, batch.after, batch.last, batch.events, batch.root, batch.rows
    )
    wrong = [
        why
        for holds, why in (
            (root_of(batch.leaves) == batch.root, "its root is not that of its leaves"),
            (said == batch.hash, "its hash is not that of what it says"),
            (sealed, "its seal was not made with this tenant's key"),
        )
        if not holds
    ]
    return [Break(kind="batch_forged", batch=batch.number, seq=batch.first_seq, why="; ".join(wrong))] if wrong else []


def compare(tenant: bytes, batch: Batch, events: Sequence[Sealable], astray: Astray) -> None:
    """Note in `astray` which of the events up to the batch's end are not those that it sealed."""
    if leaves_of(tenant, events) == batch.leaves:
        return
    expected = dict(unpacked(batch.leaves))
    for event in events:
        sealed = expected.pop((event[0], event[1]), None)
        if sealed is not None and event_hash(tenant, event) == sealed:
            continue
        if sealed is not None:
            expected[event[0], event[1]] = sealed
        if len(astray.events) < LOOKED_AT:
            astray.events.append((batch.number, event, sealed is not None))
        else:
            astray.more = True
    for place, sealed in expected.items():
        if len(astray.lost) < LOOKED_AT:
            astray.lost[place] = (batch.number, sealed)
        else:
            astray.more = True


def told(tenant: bytes, astray: Astray, moments: Mapping[int, int]) -> list[Break]:
    """Those as breaks: what stands elsewhere than it was sealed, what was changed, inserted, removed.

    `moments` has the times of the numbers that were lost: who moves an event may have given it that of its new place.
    """
    lost = dict(astray.lost)
    found: list[tuple[Place, Break]] = []
    left: list[tuple[int, Sealable, bool]] = []
    for batch, event, was_sealed in astray.events:
        if (home := _home(tenant, event, astray.lost, moments)) is None:
            left.append((batch, event, was_sealed))
            continue
        lost.pop(home, None)
        found.append(_break("reordered", batch, event, f"it was sealed as {home[0]}.{home[1]}"))
    for batch, event, was_sealed in left:
        # What was moved here from elsewhere does not explain what stood here: that is told as removed.
        if was_sealed and lost.pop((event[0], event[1]), None) is not None:
            found.append(_break("changed", batch, event, "it is not what was sealed"))
        else:
            found.append(_break("inserted", batch, event, "it is in no batch, and stands before the last sealed event"))
    for (seq, n), (batch, _) in lost.items():
        why = "it was sealed and is not there"
        found.append(((seq, n), Break(kind="removed", batch=batch, seq=seq, n=n, why=why)))
    return [one for _, one in sorted(found, key=lambda at: at[0])]


def _home(
    tenant: bytes, event: Sealable, lost: Mapping[Place, tuple[int, bytes]], moments: Mapping[int, int]
) -> Place | None:
    """The place where this very event was sealed."""
    here = (event[0], event[1])
    for place, (_, sealed) in lost.items():
        if place == here:
            continue
        for at in _distinct((event[4], moments.get(place[0], event[4]))):
            if event_hash(tenant, (*place, event[2], event[3], at, event[5], event[6], event[7])) == sealed:
                return place
    return None


def _distinct(values: Iterable[int]) -> list[int]:
    return list(dict.fromkeys(values))


def _break(kind: str, batch: int, event: Sealable, why: str) -> tuple[Place, Break]:
    seq, n, event_id = event[:3]
    return (seq, n), Break.model_validate(
        {"kind": kind, "batch": batch, "seq": seq, "n": n, "event_id": event_id, "why": why}
    )
