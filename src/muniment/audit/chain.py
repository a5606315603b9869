"""The audit chain: events sealed in batches in the order of their numbers, and the proof that they are as they were.

INVARIANT: nothing that is not committed can be skipped. A transaction takes its number by updating the tenant's clock,
as its last lock, and holds that row until it has committed or is rolled back; who comes next waits, and gets the next
number only then. So a statement that sees a number sees every number below it, with all events of each: they are
written by the transaction that took it, and by no other.
"""

import hmac
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from anyio.lowlevel import checkpoint

from muniment.audit.row_audit import Comparing, RowCheck, every_list
from muniment.audit.row_sweeps import Sweep, settled_until
from muniment.audit.rules import Astray, Batch, compare, forged, linked, told
from muniment.audit.verify_cursor import Position, counted, position
from muniment.database.merkle import Place, Sealable, batch_hash, leaves_of, root_of
from muniment.database.row_lists import RowKey
from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import Row, Transaction
from muniment.errors import NotFound, SealBroken
from muniment.model.chain import Break, Head, Verification

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


@dataclass(frozen=True)
class Sealed:
    """How many events a batch has, and whether it lists rows that came without one."""

    events: int
    rows: bool


async def seal(tx: Transaction, key: ChainKey, count: int = AT_ONCE, sweep: Sweep | None = None) -> Sealed:
    """Seal the next events, at most so many, and the rows of a sweep, as one batch; nothing when nothing is left."""
    tenant = tx.tenant_id.encode()
    while True:
        last = await tx.row("chain.last")
        after: Place | None = (last["last_seq"], last["last_n"]) if last is not None else None
        seq, n = after or _START
        events = [_sealable(row) for row in await tx.rows("chain.events_after", seq=seq, n=n, count=count)]
        if sweep is not None and (last is None or last["number"] != sweep.after):
            sweep = None  # Another sealer was first: it may have listed these rows.
        if not events and (sweep is None or after is None):
            return Sealed(0, False)
        number = last["number"] + 1 if last is not None else 1
        previous: bytes | None = last["hash"] if last is not None else None
        end: Place = (events[-1][0], events[-1][1]) if events else (seq, n)
        leaves = leaves_of(tenant, events)
        root = root_of(leaves)
        rows = (sweep.rows, microseconds(sweep.until)) if sweep is not None else None
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


async def row_key(tx: Transaction, vault: Vault) -> tuple[RowKey | None, list[Break]]:
    """The key that rows are compared with, or why there is none though the log lists rows."""
    try:
        key = await vault.row_key(tx)
    except SealBroken:
        return None, [Break(kind="row_key_broken", table="audit_keys", why="the tenant's audit key does not open")]
    if key is None and await tx.row("rows.any_list") is not None:
        return None, [Break(kind="row_key_broken", table="audit_keys", why="the tenant's audit key is not there")]
    return key, []


async def verify(
    opening: Opening,
    vault: Vault,
    given: Head | None = None,
    on_progress: Progress | None = None,
    *,
    cursor: str | None = None,
    count: int | None = None,
) -> Verification:
    """Compare every sealed event with its batch, every batch with the one before, every number with the clock, and
    every row that the log lists with its table.

    In short transactions one after the other: what is sealed does not change, and what comes meanwhile comes after.
    With a `count` it stops after about so many events, and the answer has the cursor to go on from.
    """
    async with opening() as tx:
        key = await chain_key(tx, vault)
        rows_key, broken = await row_key(tx, vault)
        whole, swept, first = await tx.gather(("chain.size", {}), ("rows.swept_until", {}), ("rows.any_list", {}))
    total: int = whole[0]["events"]
    walk = _Walk(tx.tenant_id, key)
    rows = RowCheck(rows_key, settled_until(swept[0]["at"])) if rows_key is not None else None
    signer = vault.shared("verify-cursor")
    if cursor is not None:
        resume(position(cursor, signer, walk.tenant_id), walk, rows)
    if not await _walked(opening, walk, rows, total, on_progress, count):
        await walk.settle(opening)
        return walk.found(rows, cursor=standing(walk, rows).text(signer), covered_from=_first(first))
    await walk.settle(opening)
    async with opening() as tx:
        seq, n = walk.end
        row = await tx.row("chain.unsealed", seq=seq, n=n)
        unsealed: int = row["events"] if row is not None else 0
        walk.breaks += await _numbers(tx, {(one.seq, one.n) for one in walk.breaks})
        walk.breaks += broken
        if rows is not None:
            await rows.compare(tx, [one async for one in every_list(tx, seq, n, batches=False)])
            walk.breaks += await rows.breaks(tx, BREAKS_TOLD + 1)
        if given is not None and (other := await _checked(tx, key, given)) is not None:
            walk.breaks.append(other)
    return walk.found(rows, unsealed=unsealed, covered_from=_first(first))


async def _walked(
    opening: Opening,
    walk: "_Walk",
    rows: RowCheck | None,
    total: int,
    on_progress: Progress | None,
    count: int | None,
) -> bool:
    """Go through the batches, at most about so many events; whether that was all.

    The rows of one page are compared while the next page is read.
    """
    begun = walk.events
    comparing = Comparing(opening, rows)
    async with comparing:
        while page := await _page(opening, walk.number, walk.end):
            lists: list[tuple[int, bytes]] = []
            for batch, events in page:
                walk.step(batch, events)
                lists += [(event[0], event[7]) for event in events if event[7] is not None]
                lists += [(0, batch.rows[0])] if batch.rows is not None else []
                await checkpoint()  # Nobody else's call waits for many.
            await comparing.give(lists)
            if on_progress is not None:
                on_progress(walk.events, total)
            if count is not None and walk.events - begun >= count and walk.events < total:
                return False
    return True


def _first(rows: list[Row]) -> int | None:
    return rows[0]["seq"] if rows else None


class _Walk:
    """One batch after the other."""

    def __init__(self, tenant_id: str, key: ChainKey | None) -> None:
        self.tenant_id, self._key = tenant_id, key
        self.tenant = tenant_id.encode()
        self.breaks: list[Break] = []
        self.astray = Astray()
        self.more = False
        self.events = self.batches = 0
        self.end = _START
        self.last: Batch | None = None

    @property
    def number(self) -> int:
        """The last batch's."""
        return self.last.number if self.last is not None else 0

    @property
    def head(self) -> Head | None:
        """The last batch, if its seal holds."""
        last = self.last
        if last is None or not self._made(last):
            return None
        return _head(self.tenant_id, last.number, last.last[0], last.hash, last.seal)

    async def settle(self, opening: Opening) -> None:
        """Tell what became of the events that did not fit; those that come later are looked at on their own."""
        lost = sorted({seq for seq, _ in self.astray.lost})
        if lost or self.astray.events:
            async with opening() as tx:
                moments = {row["seq"]: row["at"] for row in await tx.rows("chain.moments", seqs=lost)}
            self.breaks += told(self.tenant, self.astray, moments)
        self.more |= self.astray.more
        self.astray = Astray()

    def found(
        self,
        rows: RowCheck | None,
        *,
        unsealed: int = 0,
        cursor: str | None = None,
        covered_from: int | None = None,
    ) -> Verification:
        """What was found so far."""
        return Verification(
            ok=not self.breaks and cursor is None,
            events=self.events + unsealed,
            batches=self.batches,
            unsealed=unsealed,
            head=self.head,
            breaks=tuple(self.breaks[:BREAKS_TOLD]),
            more=len(self.breaks) > BREAKS_TOLD or self.more or (rows is not None and rows.more),
            rows=rows.rows if rows is not None else 0,
            covered_from=covered_from,
            cursor=cursor,
        )

    def step(self, batch: Batch, events: list[Sealable]) -> None:
        """Take the next batch with the events that stand in its range."""
        if len(self.breaks) <= BREAKS_TOLD:
            self.breaks += linked(batch, self.last)
            self.breaks += forged(self.tenant, batch, self._made(batch))
        compare(self.tenant, batch, events, self.astray)
        self.events += len(events)
        self.batches += 1
        self.last, self.end = batch, max(self.end, batch.last)

    def _made(self, batch: Batch) -> bool:
        return self._key is not None and self._key.made(batch.seal, batch.hash)


def standing(walk: _Walk, rows: RowCheck | None) -> Position:
    """Where a verification stands."""
    last = walk.last
    assert last is not None, "a batch was looked at"
    suspects = rows.suspects if rows is not None else {}
    return Position(
        tenant_id=walk.tenant_id,
        number=last.number,
        hash=last.hash,
        end=last.last,
        events=walk.events,
        batches=walk.batches,
        breaks=walk.breaks[: BREAKS_TOLD + 1],
        more=walk.more,
        until=rows.until if rows is not None else None,
        listed=counted(rows.listed) if rows is not None else {},
        left=counted(rows.left) if rows is not None else {},
        suspects=[(*row, one.version, one.lasting, one.losing, one.seq) for row, one in suspects.items()],
        rows=rows.rows if rows is not None else 0,
        rows_more=rows.more if rows is not None else False,
    )


def resume(at: Position, walk: _Walk, rows: RowCheck | None) -> None:
    """Go on from where a verification stood."""
    walk.last = Batch(at.number, None, None, 0, at.end, 0, b"", b"", at.hash, b"")
    walk.end, walk.events, walk.batches = at.end, at.events, at.batches
    walk.breaks, walk.more = list(at.breaks), at.more
    if rows is not None and at.until is not None:
        rows.until, rows.suspects = at.until, at.expected()
        rows.listed, rows.left = Counter(at.listed), Counter(at.left)
        rows.rows, rows.more = at.rows, at.rows_more


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
    rows = (row["rows"], row["rows_until"]) if row["rows"] is not None else None
    return Batch(**taken, after=after, last=(row["last_seq"], row["last_n"]), rows=rows)


def microseconds(at: datetime) -> int:
    """Since 1970."""
    since = at - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _head(tenant_id: str, number: int, last_seq: int, hash_: bytes, seal_: bytes) -> Head:
    return Head(tenant_id=tenant_id, batch=number, last_seq=last_seq, hash=hash_.hex(), seal=seal_.hex())
