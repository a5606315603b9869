"""Verification: every sealed event, batch, sequence number and listed row is compared with what was written.

It runs in short transactions, and can stop and go on from a signed cursor that holds its state.
"""

import hmac
import zlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from muniment.audit.chain import AT_ONCE, START, ChainKey, head_of, sealable
from muniment.audit.row_audit import BackgroundCheck, Expected, OpenTransaction, RowCheck, every_row_list, swept_before
from muniment.audit.rules import Batch, Mismatches, Place, Sealable, check_batch, check_link, compare, explain
from muniment.database.row_lists import RowKey
from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction
from muniment.errors import InvalidInput, SealBroken
from muniment.loops import give_way
from muniment.model.chain import Break, Head, Verification
from muniment.model.inputs import Passed, VerbInput

# Breaks that an answer holds at most.
BREAKS_SHOWN = 100
Progress = Callable[[int, int], None]

# Batches read in one transaction, so that a long verification holds none open for long.
_BATCHES_AT_ONCE = 16
# A page ends with the batch that brings its events to this size: one that was sealed all at once may hold a whole log.
_PAGE_BYTES = 8 << 20
# A cursor with a hundred breaks and a thousand mismatched rows has some 200,000 characters.
LONGEST = 1_000_000
_UNPACKED = 8_000_000


class Verify(VerbInput):
    """How far to verify the chain, and from where."""

    head: Annotated[Head, Passed(Head | Mapping[str, Any], body=Head)] | None = Field(
        None, description="a head that was exported earlier, to be found in the chain"
    )
    cursor: Annotated[str, StringConstraints(strict=True, max_length=1_000_000)] | None = Field(
        None, description="the cursor of an answer, to continue from there"
    )
    count: Annotated[int, Field(strict=True, ge=1, le=2**31)] | None = Field(
        None, description="stop after about this many events; the answer has the cursor to continue from"
    )


class VerifyState(BaseModel):
    """The state of an unfinished verification."""

    model_config = ConfigDict(extra="forbid", ser_json_bytes="base64", val_json_bytes="base64")

    tenant_id: str
    number: int
    hash: bytes
    end: tuple[int, int]
    events: int
    batches: int
    breaks: list[Break]
    more: bool
    # What the comparison of rows has found so far; None and nothing for a tenant without an audit key.
    until: dict[str, str] | None = None
    listed: dict[str, int] = {}
    left: dict[str, int] = {}
    suspects: list[tuple[str, str, int, bytes, bytes | None, int]] = []
    rows: int = 0
    rows_more: bool = False

    def text(self, secret: bytes) -> str:
        """The state as a signed cursor."""
        packed = zlib.compress(self.model_dump_json().encode())
        return urlsafe_b64encode(_signature(secret, packed) + packed).decode()

    def expected(self) -> dict[tuple[str, str], Expected]:
        """The expected digests of the rows that did not match."""
        return {(one[0], one[1]): Expected(*one[2:]) for one in self.suspects}


def read_cursor(cursor: str, secret: bytes, tenant_id: str) -> VerifyState:
    """Read a cursor; raises `InvalidInput` unless a verification of this tenant returned it."""
    try:
        whole = urlsafe_b64decode(cursor.encode()) if len(cursor) <= LONGEST else b""
        packed = whole[32:]
        if not hmac.compare_digest(_signature(secret, packed), whole[:32]):
            raise ValueError
        found = VerifyState.model_validate_json(zlib.decompressobj().decompress(packed, _UNPACKED))
    except (ValueError, zlib.error, ValidationError):
        raise InvalidInput("expected a cursor that verify returned", field="cursor") from None
    if found.tenant_id != tenant_id:
        raise InvalidInput("is of another tenant", field="cursor")
    return found


async def knows_named(tx: Transaction, vault: Vault, request: Verify) -> bool:
    """Whether the chain has the batches that the request names: of its head, and of the cursor to go on from."""
    named = [request.head.batch] if request.head is not None else []
    if request.cursor is not None:
        named.append(read_cursor(request.cursor, vault.shared("verify-cursor"), tx.tenant_id).number)
    return all([await tx.row("chain.batch", number=number) is not None for number in named])


def _signature(secret: bytes, packed: bytes) -> bytes:
    return hmac.digest(secret, packed, sha256)


async def chain_key(tx: Transaction, vault: Vault) -> ChainKey | None:
    """The key to check seals with; None if there is none or it was tampered with: then no seal is valid."""
    try:
        own = await vault.existing_tenant_data_key(tx)
    except SealBroken:
        return None
    return ChainKey(own) if own is not None else None


async def row_key(tx: Transaction, vault: Vault) -> tuple[RowKey | None, list[Break]]:
    """The key that row digests are checked with, or the break if it is broken, or gone though the log lists rows."""
    try:
        key = await vault.row_key(tx)
    except SealBroken:
        return None, [Break(kind="row_key_broken", table="audit_keys", why="the tenant's audit key does not open")]
    if key is None and await tx.row("rows.any_list") is not None:
        return None, [Break(kind="row_key_broken", table="audit_keys", why="the tenant's audit key is not there")]
    return key, []


async def verify(
    open_transaction: OpenTransaction,
    vault: Vault,
    request: Verify,
    on_progress: Progress | None,
    *,
    open_keys: OpenTransaction,
) -> Verification:
    """Compare events with their batches, batches with each other, sequence numbers with the clock, rows with the log.

    It runs in short transactions: what is sealed does not change, and new events come after it. With a `count` it
    stops after about that many events; the answer then has the cursor to go on from. The batch of an exported `head`
    must still be in the chain. Keys are read in a transaction of `open_keys`, which is on the primary.
    """
    async with open_keys() as tx:
        key = await chain_key(tx, vault)
        rows_key, broken = await row_key(tx, vault)
    async with open_transaction() as tx:
        whole, swept, first = await tx.gather(("chain.size", {}), ("rows.swept_until", {}), ("rows.any_list", {}))
    total: int = whole[0]["events"]
    walk = _ChainWalk(tx.tenant_id, key)
    rows = RowCheck(rows_key, swept_before(swept[0]["at"])) if rows_key is not None else None
    covered_from: int | None = first[0]["seq"] if first else None
    secret = vault.shared("verify-cursor")
    if request.cursor is not None:
        resume(read_cursor(request.cursor, secret, walk.tenant_id), walk, rows)
    finished = await _walk_batches(open_transaction, walk, rows, total, on_progress, request.count)
    await walk.explain_mismatches(open_transaction)
    if not finished:
        return walk.result(rows, cursor=state_of(walk, rows).text(secret), covered_from=covered_from)
    async with open_transaction() as tx:
        seq, n = walk.end
        row = await tx.row("chain.unsealed", seq=seq, n=n)
        unsealed: int = row["events"] if row is not None else 0
        walk.breaks += await _check_sequence(tx, {(one.seq, one.n) for one in walk.breaks})
        walk.breaks += broken
        if rows is not None:
            await rows.compare(tx, [one async for one in every_row_list(tx, seq, n, batches=False)])
            walk.breaks += await rows.breaks(tx, BREAKS_SHOWN + 1)
        if request.head is not None and (mismatch := await _check_head(tx, key, request.head)) is not None:
            walk.breaks.append(mismatch)
    return walk.result(rows, unsealed=unsealed, covered_from=covered_from)


async def _walk_batches(
    open_transaction: OpenTransaction,
    walk: "_ChainWalk",
    rows: RowCheck | None,
    total: int,
    on_progress: Progress | None,
    count: int | None,
) -> bool:
    """Check batch after batch, about `count` events at most; return whether the end of the chain was reached.

    The rows of one page are compared in the background while the next page is read.
    """
    begun = walk.events
    background = BackgroundCheck(open_transaction, rows)
    async with background:
        while page := await _page(open_transaction, walk.number, walk.end):
            lists: list[tuple[int, bytes]] = []
            for batch, events in page:
                walk.step(batch, events)
                lists += [(event[0], event[7]) for event in events if event[7] is not None]
                lists += [(0, batch.rows[0])] if batch.rows is not None else []
                await give_way()  # Let other tasks run.
            await background.start(lists)
            if on_progress is not None:
                on_progress(walk.events, total)
            if count is not None and walk.events - begun >= count and walk.events < total:
                return False
    return True


class _ChainWalk:
    """The chain, checked batch after batch."""

    def __init__(self, tenant_id: str, key: ChainKey | None) -> None:
        self.tenant_id, self._key = tenant_id, key
        self.tenant = tenant_id.encode()
        self.breaks: list[Break] = []
        self.mismatches = Mismatches()
        self.more = False
        self.events = self.batches = 0
        self.end = START
        self.last: Batch | None = None

    @property
    def number(self) -> int:
        """The number of the last batch."""
        return self.last.number if self.last is not None else 0

    @property
    def head(self) -> Head | None:
        """The head of the chain, if the seal of its last batch is valid."""
        last = self.last
        if last is None or not self._made(last):
            return None
        return head_of(self.tenant_id, last.number, last.last[0], last.hash, last.seal)

    async def explain_mismatches(self, open_transaction: OpenTransaction) -> None:
        """Turn the mismatches found so far into breaks."""
        lost = sorted({seq for seq, _ in self.mismatches.lost})
        if lost or self.mismatches.events:
            async with open_transaction() as tx:
                times = {row["seq"]: row["at"] for row in await tx.rows("chain.moments", seqs=lost)}
            self.breaks += explain(self.tenant, self.mismatches, times)
        self.more |= self.mismatches.more
        self.mismatches = Mismatches()

    def result(
        self, rows: RowCheck | None, *, unsealed: int = 0, cursor: str | None = None, covered_from: int | None = None
    ) -> Verification:
        """The result of the verification so far."""
        return Verification(
            ok=not self.breaks and cursor is None,
            events=self.events + unsealed,
            batches=self.batches,
            unsealed=unsealed,
            head=self.head,
            breaks=tuple(self.breaks[:BREAKS_SHOWN]),
            more=len(self.breaks) > BREAKS_SHOWN or self.more or (rows is not None and rows.more),
            rows=rows.rows if rows is not None else 0,
            covered_from=covered_from,
            cursor=cursor,
        )

    def step(self, batch: Batch, events: list[Sealable]) -> None:
        """Check the next batch with the events in its range."""
        if len(self.breaks) <= BREAKS_SHOWN:
            self.breaks += check_link(batch, self.last)
            self.breaks += check_batch(self.tenant, batch, self._made(batch))
        compare(self.tenant, batch, events, self.mismatches)
        self.events += len(events)
        self.batches += 1
        self.last, self.end = batch, max(self.end, batch.last)

    def _made(self, batch: Batch) -> bool:
        return self._key is not None and self._key.made(batch.seal, batch.hash)


def state_of(walk: _ChainWalk, rows: RowCheck | None) -> VerifyState:
    """The state to go on from later."""
    last = walk.last
    assert last is not None, "at least one batch was checked"
    state = {name: getattr(walk, name) for name in ("tenant_id", "events", "batches", "more")}
    state |= {"number": last.number, "hash": last.hash, "end": last.last, "breaks": walk.breaks[: BREAKS_SHOWN + 1]}
    if rows is not None:
        suspects = [(*row, one.version, one.lasting, one.losing, one.seq) for row, one in rows.suspects.items()]
        # The unary plus leaves out zero counts.
        state |= {"until": rows.until, "listed": +rows.listed, "left": +rows.left, "suspects": suspects}
        state |= {"rows": rows.rows, "rows_more": rows.more}
    return VerifyState.model_validate(state)


def resume(at: VerifyState, walk: _ChainWalk, rows: RowCheck | None) -> None:
    """Restore the state of an unfinished verification."""
    walk.last = Batch(at.number, None, None, 0, at.end, 0, b"", b"", at.hash, b"")
    walk.end, walk.events, walk.batches = at.end, at.events, at.batches
    walk.breaks, walk.more = list(at.breaks), at.more
    if rows is not None and at.until is not None:
        rows.until, rows.suspects = at.until, at.expected()
        rows.listed, rows.left = Counter(at.listed), Counter(at.left)
        rows.rows, rows.more = at.rows, at.rows_more


async def _page(open_transaction: OpenTransaction, number: int, end: Place) -> list[tuple[Batch, list[Sealable]]]:
    """Read some batches after that number, each with the events after the previous batch up to its own end."""
    page: list[tuple[Batch, list[Sealable]]] = []
    size = 0
    async with open_transaction() as tx:
        for row in await tx.rows("chain.batches", after=number, count=_BATCHES_AT_ONCE):
            batch = _batch(row)
            if batch.number != number + 1:
                # The range of the missing batches is not known; this one's own is.
                end = max(end, batch.after or START)
            events = await _between(tx, end, batch.last)
            page.append((batch, events))
            number, end = batch.number, max(end, batch.last)
            size += sum(len(body) + len(rows or b"") for *_, body, rows in events)
            if size >= _PAGE_BYTES:
                break
    return page


async def _between(tx: Transaction, after: Place, last: Place) -> list[Sealable]:
    events: list[Sealable] = []
    while True:
        place = {"seq": after[0], "n": after[1], "last_seq": last[0], "last_n": last[1]}
        page = [sealable(row) for row in await tx.rows("chain.events_until", **place, count=AT_ONCE)]
        events += page
        if len(page) < AT_ONCE:
            return events
        after = (page[-1][0], page[-1][1])


async def _check_sequence(tx: Transaction, known: set[tuple[int | None, int | None]]) -> list[Break]:
    """Check that the sequence numbers have no gaps up to the clock, and that every event has its own transaction's."""
    count = BREAKS_SHOWN + 1
    gaps, odd, events = await tx.gather(
        ("chain.missing_ticks", {"count": count}),
        ("chain.odd_ticks", {"count": count}),
        ("chain.odd_events", {"count": count}),
    )
    breaks = [
        Break(kind="removed", seq=row["first"], why=f"sequence numbers {row['first']} to {row['last']} are missing")
        for row in gaps
    ]
    for row in odd:
        past = "the sequence number is past the tenant's clock"
        kind, why = ("inserted", past) if row["past"] else ("changed", "its time is before that of the number ahead")
        breaks.append(Break.model_validate({"kind": kind, "seq": row["seq"], "why": why}))
    breaks += [
        Break(kind="changed", **row, why="its sequence number is of another time or another transaction")
        for row in events
        if (row["seq"], row["n"]) not in known
    ]
    return breaks


async def _check_head(tx: Transaction, key: ChainKey | None, exported: Head) -> Break | None:
    row = await tx.row("chain.batch", number=exported.batch)
    if exported.tenant_id != tx.tenant_id:
        why = "the head is of another tenant"
    elif key is None or not key.made(bytes.fromhex(exported.seal), bytes.fromhex(exported.hash)):
        why = "the seal of the head was not made with this tenant's key"
    elif row is None:
        why = "the chain no longer has this batch"
    elif row["hash"] != bytes.fromhex(exported.hash) or row["last_seq"] != exported.last_seq:
        why = "the chain has another batch with this number"
    else:
        return None
    return Break(kind="head_mismatch", batch=exported.batch, seq=exported.last_seq, why=why)


def _batch(row: Row) -> Batch:
    after = (row["after_seq"], row["after_n"]) if row["after_seq"] is not None else None
    taken = {
        name: row[name] for name in ("number", "prev_hash", "first_seq", "events", "leaves", "root", "hash", "seal")
    }
    rows = (row["rows"], row["rows_until"]) if row["rows"] is not None else None
    return Batch(**taken, after=after, last=(row["last_seq"], row["last_n"]), rows=rows)
