"""The audit chain: events sealed in batches in the order of their numbers, and the proof that they are as they were.

INVARIANT: nothing that is not committed can be skipped. A transaction takes its number by updating the tenant's clock,
as its last lock, and holds that row until it has committed or is rolled back; who comes next waits, and gets the next
number only then. So a statement that sees a number sees every number below it, with all events of each: they are
written by the transaction that took it, and by no other.
"""

import hmac
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from hashlib import sha256
from typing import Any

from anyio.lowlevel import checkpoint

from muniment.errors import NotFound, SealBroken
from muniment.model.chain import Break, Head, Verification
from muniment.policy.chain import Astray, Batch, compare, forged, linked, told
from muniment.policy.merkle import Place, Sealable, batch_hash, leaves_of, root_of
from muniment.storage.sealing import SubjectKey, Vault
from muniment.storage.session import Row, Transaction

AT_ONCE = 1024
BREAKS_TOLD = 100
# Batches to a transaction: a long verification holds none open for long.
_BATCHES_AT_ONCE = 16
_START: Place = (0, -1)

Progress = Callable[[int, int], None]
Opening = Callable[[], AbstractAsyncContextManager[Transaction]]


class ChainKey:
    """What batches are sealed with: derived from the tenant's own data key, for nothing else."""

    __slots__ = ("_key",)

    def __init__(self, own: SubjectKey) -> None:
        self._key = own.derived("audit-chain")

    def seal(self, hash_: bytes) -> bytes:
        """The seal of a batch with that hash."""
        return hmac.digest(self._key, hash_, sha256)

    def made(self, seal: bytes, hash_: bytes) -> bool:
        """Whether the seal was made with this key, over that hash."""
        return hmac.compare_digest(self.seal(hash_), seal)


async def seal(tx: Transaction, key: ChainKey, count: int = AT_ONCE) -> int:
    """Seal the next events, at most so many, as one batch; how many there were, 0 when nothing is left."""
    tenant = tx.tenant_id.encode()
    while True:
        last = await tx.row("chain.last")
        after: Place | None = (last["last_seq"], last["last_n"]) if last is not None else None
        seq, n = after or _START
        events = [_sealable(row) for row in await tx.rows("chain.events_after", seq=seq, n=n, count=count)]
        if not events:
            return 0
        number = last["number"] + 1 if last is not None else 1
        previous: bytes | None = last["hash"] if last is not None else None
        end: Place = (events[-1][0], events[-1][1])
        leaves = leaves_of(tenant, events)
        root = root_of(leaves)
        hash_ = batch_hash(tenant, number, previous, after, end, len(events), root)
        batch: dict[str, Any] = {
            "number": number,
            "prev": number - 1 or None,
            "prev_hash": previous,
            "after_seq": after[0] if after else None,
            "after_n": after[1] if after else None,
            "first_seq": events[0][0],
            "last_seq": end[0],
            "last_n": end[1],
            "events": len(events),
            "leaves": leaves,
            "root": root,
            "hash": hash_,
            "seal": key.seal(hash_),
        }
        if await tx.do("chain.add", **batch):
            return len(events)
        # Another sealer was first: the chain ends elsewhere now.


async def head(tx: Transaction) -> Head:
    """The last batch; raises `NotFound` when nothing is sealed yet."""
    last = await tx.row("chain.last")
    if last is None:
        raise NotFound("nothing of this tenant is sealed yet")
    row = await tx.row("chain.batch", number=last["number"])
    assert row is not None
    return _head(tx.tenant_id, row["number"], row["last_seq"], row["hash"], row["seal"])


async def chain_key(tx: Transaction, vault: Vault) -> ChainKey | None:
    """The key to verify with; None where there is none, or where it was tampered with: then no seal holds."""
    try:
        own = await vault.known_comparing(tx)
    except SealBroken:
        return None
    return ChainKey(own) if own is not None else None


async def verify(
    opening: Opening, vault: Vault, given: Head | None = None, on_progress: Progress | None = None
) -> Verification:
    """Compare every sealed event with its batch, every batch with the one before, every number with the clock.

    In short transactions one after the other: what is sealed does not change, and what comes meanwhile comes after.
    """
    async with opening() as tx:
        key = await chain_key(tx, vault)
        tenant_id = tx.tenant_id
        whole = await tx.row("chain.size")
    total: int = whole["events"] if whole is not None else 0
    walk = _Walk(tenant_id, key)
    while page := await _page(opening, walk.number, walk.end):
        for batch, events in page:
            walk.step(batch, events)
            await checkpoint()  # Nobody else's call waits for many.
        if on_progress is not None:
            on_progress(walk.events, total)
    async with opening() as tx:
        seq, n = walk.end
        row = await tx.row("chain.unsealed", seq=seq, n=n)
        unsealed: int = row["events"] if row is not None else 0
        lost = sorted({seq for seq, _ in walk.astray.lost})
        moments: dict[int, int] = {row["seq"]: row["at"] for row in await tx.rows("chain.moments", seqs=lost)}
        breaks = [*walk.breaks, *told(walk.tenant, walk.astray, moments)]
        breaks += await _numbers(tx, {(one.seq, one.n) for one in breaks})
        if given is not None and (broken := await _checked(tx, key, given)) is not None:
            breaks.append(broken)
    return Verification(
        ok=not breaks,
        events=walk.events + unsealed,
        batches=walk.batches,
        unsealed=unsealed,
        head=walk.head,
        breaks=tuple(breaks[:BREAKS_TOLD]),
        more=len(breaks) > BREAKS_TOLD or walk.astray.more,
    )


class _Walk:
    """One batch after the other."""

    def __init__(self, tenant_id: str, key: ChainKey | None) -> None:
        self._tenant_id, self._key = tenant_id, key
        self.tenant = tenant_id.encode()
        self.breaks: list[Break] = []
        self.astray = Astray()
        self.events = self.batches = 0
        self.end = _START
        self._last: Batch | None = None

    @property
    def number(self) -> int:
        """The last batch's."""
        return self._last.number if self._last is not None else 0

    @property
    def head(self) -> Head | None:
        """The last batch, if its seal holds."""
        last = self._last
        if last is None or not self._made(last):
            return None
        return _head(self._tenant_id, last.number, last.last[0], last.hash, last.seal)

    def step(self, batch: Batch, events: list[Sealable]) -> None:
        """Take the next batch with the events that stand in its range."""
        if len(self.breaks) <= BREAKS_TOLD:
            self.breaks += linked(batch, self._last)
            self.breaks += forged(self.tenant, batch, self._made(batch))
        compare(self.tenant, batch, events, self.astray)
        self.events += len(events)
        self.batches += 1
        self._last, self.end = batch, max(self.end, batch.last)

    def _made(self, batch: Batch) -> bool:
        return self._key is not None and self._key.made(batch.seal, batch.hash)


async def _page(opening: Opening, number: int, end: Place) -> list[tuple[Batch, list[Sealable]]]:
    """Some batches after that number, each with the events that stand after the one before it, up to its end."""
    page: list[tuple[Batch, list[Sealable]]] = []
    async with opening() as tx:
        for row in await tx.rows("chain.batches", after=number, count=_BATCHES_AT_ONCE):
            batch = _batch(row)
            if batch.number != number + 1:
                # What stood in the missing ones is not known: this one's own range is.
                end = max(end, batch.after or _START)
            page.append((batch, await _between(tx, end, batch.last)))
            number, end = batch.number, max(end, batch.last)
    return page


async def _between(tx: Transaction, after: Place, last: Place) -> list[Sealable]:
    events: list[Sealable] = []
    while True:
        place = {"seq": after[0], "n": after[1], "last_seq": last[0], "last_n": last[1]}
        page = [_sealable(row) for row in await tx.rows("chain.events_until", **place, count=AT_ONCE)]
        events += page
        if len(page) < AT_ONCE:
            return events
        after = (page[-1][0], page[-1][1])


async def _numbers(tx: Transaction, known: set[tuple[int | None, int | None]]) -> list[Break]:
    """Whether the numbers go on without gaps up to the clock, and every event stands under its own."""
    count = BREAKS_TOLD + 1
    gaps, odd, events = await tx.gather(
        ("chain.missing_ticks", {"count": count}),
        ("chain.odd_ticks", {"count": count}),
        ("chain.odd_events", {"count": count}),
    )
    breaks = [
        Break(kind="removed", seq=row["first"], why=f"the numbers {row['first']} to {row['last']} are not there")
        for row in gaps
    ]
    for row in odd:
        past = "the number is past the tenant's clock"
        kind, why = ("inserted", past) if row["past"] else ("changed", "its time is before that of the number ahead")
        breaks.append(Break.model_validate({"kind": kind, "seq": row["seq"], "why": why}))
    breaks += [
        Break(kind="changed", **row, why="its number was taken at another time or by another transaction")
        for row in events
        if (row["seq"], row["n"]) not in known
    ]
    return breaks


async def _checked(tx: Transaction, key: ChainKey | None, given: Head) -> Break | None:
    why: str | None = None
    row = await tx.row("chain.batch", number=given.batch)
    if given.tenant_id != tx.tenant_id:
        why = "the head is of another tenant"
    elif key is None or not key.made(bytes.fromhex(given.seal), bytes.fromhex(given.hash)):
        why = "the seal of the head was not made with this tenant's key"
    elif row is None:
        why = "the chain has no such batch any more"
    elif row["hash"] != bytes.fromhex(given.hash) or row["last_seq"] != given.last_seq:
        why = "another batch stands in its place"
    return Break(kind="head_mismatch", batch=given.batch, seq=given.last_seq, why=why) if why is not None else None


def _sealable(row: Row) -> Sealable:
    # INVARIANT: the columns of `events_after` and `events_until` stand in this order.
    return tuple(row.values())


def _batch(row: Row) -> Batch:
    after = (row["after_seq"], row["after_n"]) if row["after_seq"] is not None else None
    taken = {
        name: row[name] for name in ("number", "prev_hash", "first_seq", "events", "leaves", "root", "hash", "seal")
    }
    return Batch(**taken, after=after, last=(row["last_seq"], row["last_n"]))


def _head(tenant_id: str, number: int, last_seq: int, hash_: bytes, seal_: bytes) -> Head:
    return Head(tenant_id=tenant_id, batch=number, last_seq=last_seq, hash=hash_.hex(), seal=seal_.hex())
