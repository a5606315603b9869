"""The audit chain in pure functions: how events and batches are hashed, and whether a batch matches its events.

Leaves and nodes of the Merkle tree are hashed with different prefixes, so that neither passes for the other, and the
last node of an uneven level is carried up, so that no two lists of events have the same root (RFC 6962).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from struct import Struct

from muniment.model.chain import Break

# An event that lists rows has another prefix, so that no list can be taken from a leaf or added to it.
_LEAF, _NODE, _LEAF_WITH_ROWS = b"\x00", b"\x01", b"\x02"
_BATCH = b"muniment/chain-batch/1\x00"
_BATCH_ROWS = b"muniment/chain-batch-rows/1\x00"
_HEAD = Struct(">I")
# Lengths of tenant, event id, type, actor and body, then seq, n and microseconds since 1970.
_EVENT = Struct(">IIIIIqhq")
_PLACE = Struct(">qh")
_BATCH_NUMBERS = Struct(">Qqhqhq")
_MICROSECONDS = Struct(">q")
_START = (0, -1)

HASH_BYTES = 32
LEAF_BYTES = _PLACE.size + HASH_BYTES
NO_HASH = bytes(HASH_BYTES)
# How many mismatches of each kind are examined; beyond these, single events are not reported.
EXAMINED = 1000

# The place of an event in the log: its sequence number, and its number `n` within the transaction.
Place = tuple[int, int]
# Rows that came without an event, as a packed list, and the time up to which they are listed, in microseconds.
RowBatch = tuple[bytes, int]
# (seq, n, event_id, type, microseconds since 1970, actor, body, the rows it lists)
Sealable = tuple[int, int, str, str, int, str, bytes, bytes | None]


@dataclass(frozen=True)
class Batch:
    """A batch as the database has it; `after` is the place where the previous batch ended."""

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
class Mismatches:
    """Events that differ from what was sealed at their place, and sealed leaves without a matching event.

    An event comes with the number of its batch and whether anything was sealed at its place.
    """

    events: list[tuple[int, Sealable, bool]] = field(default_factory=list)
    lost: dict[Place, tuple[int, bytes]] = field(default_factory=dict)
    more: bool = False


def event_hash(tenant: bytes, event: Sealable) -> bytes:
    """The hash of an event; the lengths of its fields are hashed too, so that no byte can move between them."""
    seq, n, event_id, type_, at, actor, body, rows = event
    fields = (tenant, event_id.encode(), type_.encode(), actor.encode(), body)
    lengths = _EVENT.pack(*map(len, fields), seq, n, at)
    prefix, listed = (_LEAF, b"") if rows is None else (_LEAF_WITH_ROWS, rows)
    return sha256(b"".join((prefix, lengths, *fields, listed))).digest()


def leaves_of(tenant: bytes, events: Iterable[Sealable]) -> bytes:
    """The leaves of a batch, packed: place and hash of each event."""
    return b"".join([_PLACE.pack(event[0], event[1]) + event_hash(tenant, event) for event in events])


def unpack_leaves(leaves: bytes) -> Iterator[tuple[Place, bytes]]:
    """Place and hash of each packed leaf; an incomplete leaf at the end is ignored."""
    for at in range(0, len(leaves) - LEAF_BYTES + 1, LEAF_BYTES):
        seq, n = _PLACE.unpack_from(leaves, at)
        yield (seq, n), leaves[at + _PLACE.size : at + LEAF_BYTES]


def root_of(leaves: bytes) -> bytes:
    """The Merkle root of packed leaves; the hash of the empty string for none."""
    level = [found for _, found in unpack_leaves(leaves)]
    if not level:
        return sha256(b"").digest()
    while len(level) > 1:
        pairs = zip(level[::2], level[1::2], strict=False)
        above = [sha256(_NODE + left + right).digest() for left, right in pairs]
        level = [*above, level[-1]] if len(level) % 2 else above
    return level[0]


def batch_hash(
    tenant: bytes,
    number: int,
    previous: bytes | None,
    after: Place | None,
    last: Place,
    count: int,
    root: bytes,
    rows: RowBatch | None = None,
) -> bytes:
    """The hash of a batch, over everything that these arguments say of it."""
    numbers = _BATCH_NUMBERS.pack(number, *(after or _START), *last, count)
    parts = [_BATCH, _HEAD.pack(len(tenant)), tenant, numbers, previous or NO_HASH, root]
    if rows is not None:
        parts += [_BATCH_ROWS, _MICROSECONDS.pack(rows[1]), sha256(rows[0]).digest()]
    return sha256(b"".join(parts)).digest()


def check_link(batch: Batch, previous: Batch | None) -> list[Break]:
    """Check that the batch continues the one read before it."""
    before = previous.number if previous is not None else 0
    missing = [
        Break(kind="batch_missing", batch=number, why=f"there is no batch {number}")
        for number in range(before + 1, min(batch.number, before + EXAMINED))
    ]
    if missing:
        return missing
    expected = (previous.hash, previous.last) if previous is not None else (None, None)
    if (batch.prev_hash, batch.after) == expected:
        return []
    why = "it does not continue the batch before it"
    return [Break(kind="chain_broken", batch=batch.number, seq=batch.first_seq, why=why)]


def check_batch(tenant: bytes, batch: Batch, sealed: bool) -> list[Break]:
    """Check root, hash and seal of a batch; `sealed` is whether its seal was made with the key, over its hash."""
    computed = batch_hash(
        tenant, batch.number, batch.prev_hash, batch.after, batch.last, batch.events, batch.root, batch.rows
    )
    wrong = [
        why
        for holds, why in (
            (root_of(batch.leaves) == batch.root, "its root is not that of its leaves"),
            (computed == batch.hash, "its hash is not that of its content"),
            (sealed, "its seal was not made with this tenant's key"),
        )
        if not holds
    ]
    return [Break(kind="batch_forged", batch=batch.number, seq=batch.first_seq, why="; ".join(wrong))] if wrong else []


def compare(tenant: bytes, batch: Batch, events: Sequence[Sealable], mismatches: Mismatches) -> None:
    """Add to `mismatches` where the events of a batch differ from its leaves."""
    if leaves_of(tenant, events) == batch.leaves:
        return
    expected = dict(unpack_leaves(batch.leaves))
    for event in events:
        place = (event[0], event[1])
        sealed = expected.get(place)
        if sealed is not None and event_hash(tenant, event) == sealed:
            del expected[place]
        elif len(mismatches.events) < EXAMINED:
            mismatches.events.append((batch.number, event, sealed is not None))
        else:
            mismatches.more = True
    for place, sealed in expected.items():
        if len(mismatches.lost) < EXAMINED:
            mismatches.lost[place] = (batch.number, sealed)
        else:
            mismatches.more = True


def explain(tenant: bytes, mismatches: Mismatches, times: Mapping[int, int]) -> list[Break]:
    """Explain mismatches as breaks: events that were moved, changed, inserted or removed.

    `times` has the time of each lost sequence number: an event that was moved may have got the time of its new place.
    """
    lost = dict(mismatches.lost)
    found: list[tuple[Place, Break]] = []
    not_moved: list[tuple[int, Sealable, bool]] = []
    for batch, event, was_sealed in mismatches.events:
        if (original := _original_place(tenant, event, mismatches.lost, times)) is None:
            not_moved.append((batch, event, was_sealed))
            continue
        lost.pop(original, None)
        found.append(_break("reordered", batch, event, f"it was sealed as {original[0]}.{original[1]}"))
    for batch, event, was_sealed in not_moved:
        # An event that was moved here does not explain the one that was sealed here: that one was removed.
        if was_sealed and lost.pop((event[0], event[1]), None) is not None:
            found.append(_break("changed", batch, event, "it is not what was sealed"))
        else:
            found.append(_break("inserted", batch, event, "it is in no batch, but comes before the last sealed event"))
    for (seq, n), (batch, _) in lost.items():
        why = "it was sealed and is not there"
        found.append(((seq, n), Break(kind="removed", batch=batch, seq=seq, n=n, why=why)))
    return [one for _, one in sorted(found, key=lambda at: at[0])]


def _original_place(
    tenant: bytes, event: Sealable, lost: Mapping[Place, tuple[int, bytes]], times: Mapping[int, int]
) -> Place | None:
    """The other place where this event was sealed, if there is one."""
    for place, (_, sealed) in lost.items():
        if place == (event[0], event[1]):
            continue
        for at in {event[4], times.get(place[0], event[4])}:
            if event_hash(tenant, (*place, event[2], event[3], at, event[5], event[6], event[7])) == sealed:
                return place
    return None


def _break(kind: str, batch: int, event: Sealable, why: str) -> tuple[Place, Break]:
    seq, n, event_id = event[:3]
    return (seq, n), Break.model_validate(
        {"kind": kind, "batch": batch, "seq": seq, "n": n, "event_id": event_id, "why": why}
    )
