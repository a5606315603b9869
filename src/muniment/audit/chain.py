"""The audit chain: events sealed in batches, in the order of their sequence numbers.

INVARIANT: no uncommitted event can be skipped. A transaction takes its sequence number by updating the tenant's clock,
as its last lock, and holds that row until it commits or rolls back; the next transaction waits for it. So a statement
that sees a sequence number sees every lower one, with all its events: only the transaction that took it writes them.
"""

import hmac
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, NamedTuple

from muniment.audit.row_audit import Sweep
from muniment.audit.rules import Place, Sealable, batch_hash, leaves_of, root_of
from muniment.database.sealing import SubjectKey
from muniment.database.storage import Row, Transaction
from muniment.errors import NotFound
from muniment.model.chain import Head

AT_ONCE = 1024
# A batch ends after the event with which it has so many bytes: `verify` reads several batches at once.
BYTES = 1_000_000
START: Place = (0, -1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ChainKey:
    """The key that batches are sealed with, derived from the tenant's own data key."""

    __slots__ = ("_key",)

    def __init__(self, own: SubjectKey) -> None:
        self._key = own.derived("audit-chain")

    def seal(self, hash_: bytes) -> bytes:
        """The seal of a batch with that hash."""
        return hmac.digest(self._key, hash_, sha256)

    def made(self, seal: bytes, hash_: bytes) -> bool:
        """Whether the seal was made with this key, over that hash."""
        return hmac.compare_digest(self.seal(hash_), seal)


class Sealed(NamedTuple):
    """How many events a new batch has, and whether it lists rows that came without an event."""

    events: int
    rows: bool


async def seal(tx: Transaction, key: ChainKey, count: int = AT_ONCE, sweep: Sweep | None = None) -> Sealed:
    """Seal the next events, at most `count`, and the rows of a sweep as one batch; does nothing if none are left."""
    tenant = tx.tenant_id.encode()
    while True:
        last = await tx.row("chain.last")
        after: Place | None = (last["last_seq"], last["last_n"]) if last is not None else None
        seq, n = after or START
        events = [sealable(row) for row in await tx.rows("chain.events_after", seq=seq, n=n, count=count, bytes=BYTES)]
        if sweep is not None and (last is None or last["number"] != sweep.after):
            sweep = None  # Another sealer was first: it may have listed these rows.
        if not events and (sweep is None or after is None):
            return Sealed(0, False)
        number = last["number"] + 1 if last is not None else 1
        previous: bytes | None = last["hash"] if last is not None else None
        end: Place = (events[-1][0], events[-1][1]) if events else (seq, n)
        leaves = leaves_of(tenant, events)
        root = root_of(leaves)
        rows = (sweep.rows, (sweep.until - EPOCH) // timedelta(microseconds=1)) if sweep is not None else None
        hash_ = batch_hash(tenant, number, previous, after, end, len(events), root, rows)
        batch: dict[str, Any] = {
            "number": number,
            "prev": number - 1 or None,
            "prev_hash": previous,
            "after_seq": after[0] if after else None,
            "after_n": after[1] if after else None,
            "first_seq": events[0][0] if events else seq,
            "last_seq": end[0],
            "last_n": end[1],
            "events": len(events),
            "leaves": leaves,
            "root": root,
            "hash": hash_,
            "seal": key.seal(hash_),
            "rows": sweep.rows if sweep is not None else None,
            "rows_until": sweep.until if sweep is not None else None,
        }
        if await tx.do("chain.add", **batch):
            return Sealed(len(events), sweep is not None)
        # Another sealer was first: the chain has a new end.


async def head(tx: Transaction) -> Head:
    """The head of the chain, its last batch; raises `NotFound` if nothing is sealed yet."""
    last = await tx.row("chain.last")
    if last is None:
        raise NotFound("nothing of this tenant is sealed yet")
    row = await tx.row("chain.batch", number=last["number"])
    assert row is not None
    return head_of(tx.tenant_id, row["number"], row["last_seq"], row["hash"], row["seal"])


def sealable(row: Row) -> Sealable:
    """An event as it is hashed; the columns of `events_after` and `events_until` are in this order."""
    return tuple(row.values())


def head_of(tenant_id: str, number: int, last_seq: int, hash_: bytes, seal_: bytes) -> Head:
    """The head for a batch, as it is exported."""
    return Head(tenant_id=tenant_id, batch=number, last_seq=last_seq, hash=hash_.hex(), seal=seal_.hex())
