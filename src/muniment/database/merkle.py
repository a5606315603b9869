"""What the audit chain is made of: the canonical bytes of an event, leaves, their Merkle root, the hash of a batch.

Leaves and nodes are hashed with prefixes of their own, so that neither passes for the other, and of an uneven level the
last node is carried up, so that no two lists have one root (RFC 6962).
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from struct import Struct

# A leaf of an event that lists rows has a prefix of its own, so that no list can be taken from it or given to it.
_LEAF, _NODE, _LEAF_WITH_ROWS = b"\x00", b"\x01", b"\x02"
_BATCH = b"muniment/chain-batch/1\x00"
_BATCH_ROWS = b"muniment/chain-batch-rows/1\x00"
_HEAD = Struct(">I")
# Lengths of tenant, event id, type, actor and body, then number, place and microseconds since 1970.
_EVENT = Struct(">IIIIIqhq")
_PLACE = Struct(">qh")
_BATCH_NUMBERS = Struct(">Qqhqhq")
_MICROSECONDS = Struct(">q")
_START = (0, -1)

HASH_BYTES = 32
LEAF_BYTES = _PLACE.size + HASH_BYTES
NO_HASH = bytes(HASH_BYTES)

# Where an event stands: its number, and its place among those of one transaction.
Place = tuple[int, int]
# Rows that came without an event, as a list, and the time up to which they were looked for, in microseconds.
RowBatch = tuple[bytes, int]
# (seq, n, event_id, type, microseconds since 1970, actor, body, the rows it lists)
Sealable = tuple[int, int, str, str, int, str, bytes, bytes | None]


def event_hash(tenant: bytes, event: Sealable) -> bytes:
    """The hash of an event as it stands: nothing of it can be moved from one field into another."""
    seq, n, event_id, type_, at, actor, body, rows = event
    one, two, three = event_id.encode(), type_.encode(), actor.encode()
    lengths = _EVENT.pack(len(tenant), len(one), len(two), len(three), len(body), seq, n, at)
    if rows is None:
        return sha256(b"".join((_LEAF, lengths, tenant, one, two, three, body))).digest()
    return sha256(b"".join((_LEAF_WITH_ROWS, lengths, tenant, one, two, three, body, rows))).digest()


def leaf_of(tenant: bytes, event: Sealable) -> bytes:
    """A leaf as a batch keeps it: the place, then the hash."""
    return _PLACE.pack(event[0], event[1]) + event_hash(tenant, event)


def leaves_of(tenant: bytes, events: Iterable[Sealable]) -> bytes:
    """All of them, one after the other."""
    return b"".join([leaf_of(tenant, event) for event in events])


def unpacked(leaves: bytes) -> Iterator[tuple[Place, bytes]]:
    """Place and hash of each leaf; what is left over at the end is no leaf."""
    for at in range(0, len(leaves) - LEAF_BYTES + 1, LEAF_BYTES):
        seq, n = _PLACE.unpack_from(leaves, at)
        yield (seq, n), leaves[at + _PLACE.size : at + LEAF_BYTES]


def root_of(leaves: bytes) -> bytes:
    """The Merkle root of packed leaves; of none it is the hash of nothing."""
    level = [found for _, found in unpacked(leaves)]
    if not level:
        return sha256(b"").digest()
    while len(level) > 1:
        level = _above(level)
    return level[0]


def _above(level: Sequence[bytes]) -> list[bytes]:
    pairs = zip(level[::2], level[1::2], strict=False)
    above = [sha256(_NODE + left + right).digest() for left, right in pairs]
    return [*above, level[-1]] if len(level) % 2 else above


def batch_hash(
    tenant: bytes,
    number: int,
    previous: bytes | None,
    after: Place | None,
    last: Place,
    count: int,
    root: bytes,
    rows: "RowBatch | None" = None,
) -> bytes:
    """The hash of a batch: over its tenant, its number, the batch before, where it begins and ends, its root, and the
    rows it lists with the time up to which it does."""
    numbers = _BATCH_NUMBERS.pack(number, *(after or _START), *last, count)
    parts = [_BATCH, _HEAD.pack(len(tenant)), tenant, numbers, previous or NO_HASH, root]
    if rows is not None:
        parts += [_BATCH_ROWS, _MICROSECONDS.pack(rows[1]), sha256(rows[0]).digest()]
    return sha256(b"".join(parts)).digest()
