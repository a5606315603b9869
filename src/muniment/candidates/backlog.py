"""The backlog: captures behind the tenant's cursor, and those to be tried again, read and completed in batches."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from muniment.candidates import store as candidates
from muniment.candidates.rules import fact_holders
from muniment.database import cursors, locks
from muniment.database.rows import capture_of
from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction
from muniment.errors import SealBroken
from muniment.model.capture import TENANT_HOLDER, Capture, holder_of
from muniment.pack import Pack

Position = tuple[int, str]
START: Position = (0, "")
CURSOR = "consolidate"


@dataclass(frozen=True)
class Batch:
    """Captures to be consolidated, opened, in their order; `broken` are those that do not open.

    `cursor` is where the tenant's cursor stood and `end` where it goes; both None for captures tried again. `seq` is
    the tenant's sequence when the batch was read. `tries` counts earlier tries of each capture, `numbers` holds the
    number of a capture's consolidation where it is not the first. `last` says that no others waited.
    """

    captures: tuple[Capture, ...]
    broken: tuple[Capture, ...]
    seq: int
    cursor: Position | None = None
    end: Position | None = None
    tries: dict[str, int] | None = None
    blocked: frozenset[str] = frozenset()
    erasures: tuple[Row, ...] = ()
    numbers: dict[str, int] = field(default_factory=dict[str, int])
    last: bool = False
    # Whether the rows of the cursor and of the lock of erasures exist, and the names of the scope locks that exist.
    prepared: bool = False
    scope_locks: frozenset[str] = frozenset()

    def number(self, capture_id: str) -> int:
        """Return the number of that capture's consolidation, from 1."""
        return self.numbers.get(capture_id, 1)


@dataclass(frozen=True)
class Failure:
    """Why a capture could not be read; with `later` the reason lies elsewhere, and no try is counted."""

    why: str
    later: bool = False


@dataclass(frozen=True)
class PutOff:
    """A capture that waits: `error` is why it failed, None if it only waits for an earlier one."""

    capture: Capture
    error: str | None
    tries: int
    next_at: datetime
    parked_at: datetime | None = None


@dataclass(frozen=True)
class DueAgain:
    """Captures that are to be tried again now: how often each was tried, and the number of its consolidation."""

    seq: int
    tries: dict[str, int]
    numbers: dict[str, int]
    prepared: bool


async def read_batch(tx: Transaction, vault: Vault, count: int, *, only_new: bool = False) -> Batch | DueAgain | None:
    """Read which captures are to be tried again now, else the new captures, and commit; None when nothing waits.

    `only_new` leaves out those to be tried again.
    Raises `KeyRotated` if the tenant's key was rotated since this process read it: read again.
    """
    # INVARIANT: clock and cursor are read before the captures. Each statement has a snapshot of its own: what is erased
    # or consolidated by others after these two is then noticed by `lock_batch`.
    clock, cursor, again, new, held_up, erasure_lock = await tx.commit_with(
        ("tenant.clock", {}),
        ("candidate.cursor", {}),
        ("candidate.due_again", {"count": count}),
        ("candidate.next_captures", {"count": count}),
        ("candidate.held_up", {}),
        ("promote.locks", {"keys": [locks.ERASURE]}),
    )
    prepared = bool(cursor and erasure_lock)
    seq = clock[0]["seq"] if clock else 0
    if again and not only_new:
        tries = {row["capture_id"]: row["tries"] for row in again}
        numbers = {row["capture_id"]: row["number"] for row in again if row["number"] > 1}
        return DueAgain(seq, tries, numbers, prepared)
    if not new:
        return None
    captures, broken = await _opened(tx, vault, [row for row in new if not row["done"]])
    at = (cursor[0]["seq"], cursor[0]["capture_id"]) if cursor else START
    end = (new[-1]["seq"], new[-1]["capture_id"])
    blocked = frozenset(row["holder"] for row in held_up)
    return Batch(captures, broken, seq, at, end, blocked=blocked, last=len(new) < count, prepared=prepared)


async def read_again(tx: Transaction, vault: Vault, due: DueAgain) -> Batch | None:
    """Read the captures that are to be tried again, and commit; None if none of them is there any more.

    Raises `KeyRotated` like `read_batch`.
    """
    (rows,) = await tx.commit_with(("candidate.again", {"capture_ids": sorted(due.tries)}))
    if not rows:
        return None
    captures, broken = await _opened(tx, vault, rows)
    return Batch(captures, broken, due.seq, tries=due.tries, numbers=due.numbers, prepared=due.prepared)


async def _opened(
    tx: Transaction, vault: Vault, rows: Sequence[Row]
) -> tuple[tuple[Capture, ...], tuple[Capture, ...]]:
    """Return the captures that open and those that do not; an erased one counts as opened, without content."""
    opened: list[Capture] = []
    broken: list[Capture] = []
    for row in rows:
        if row["content"] == b"":
            opened.append(capture_of(row, None))
            continue
        try:
            if row["wrapped_key"] is None:
                raise SealBroken("its holder has no key")
            key = await vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
            opened.append(capture_of(row, key.open("captures.content", row["capture_id"], row["content"])))
        except SealBroken:
            broken.append(capture_of(row, None))
    return tuple(opened), tuple(broken)


async def lock_batch(tx: Transaction, vault: Vault, batch: Batch, pack: Pack) -> Batch:
    """Lock the tenant's cursor and the subjects of the captures until the commit, and check the batch again.

    Returns an empty batch if another process went on or something was erased since the reading. Of captures tried
    again, those that another process finished are left out. `erasures` holds the erasures between the first capture of
    the batch and its reading: the facts of the batch may name the persons they erased.
    """
    if not batch.prepared:
        tx.defer("cursor.open", cursor=CURSOR)
        locks.create(tx, [locks.ERASURE])
    first = min((one.seq for one in batch.captures), default=batch.seq)
    # The holders of a fact and of its capture differ where the capture names only a user.
    holders = {holder_of(one.subject, one.user_id) for one in batch.captures}
    holders |= {name for one in batch.captures for name in fact_holders(one.subject, one.user_id, pack)}
    ids = [one.capture_id for one in (*batch.captures, *batch.broken)]
    cursor, _, subjects, erasures, there, *left = await tx.gather(
        ("cursor.take", {"cursor": CURSOR}),
        locks.BLOCK_ERASURES,
        ("tenant.hold_subjects", {"holders": sorted(holders)}),
        ("erasure.after", {"seq": min(first, batch.seq)}),
        ("promote.locks", {"keys": locks.scope_keys({one.user_id for one in batch.captures})}),
        *([("candidate.still_again", {"capture_ids": ids})] if batch.tries is not None else []),
    )
    moved = batch.cursor is not None and (cursor[0]["seq"], cursor[0]["place"]) != batch.cursor
    if moved or any(row["seq"] > batch.seq for row in erasures):
        return Batch((), (), batch.seq)
    await vault.keep_held(tx, subjects)
    batch = replace(batch, erasures=tuple(erasures), scope_locks=frozenset(row["key"] for row in there))
    if not left:
        return batch
    still = {row["capture_id"] for row in left[0]}
    return replace(
        batch,
        captures=tuple(one for one in batch.captures if one.capture_id in still),
        broken=tuple(one for one in batch.broken if one.capture_id in still),
    )


def complete_batch(tx: Transaction, batch: Batch, done: Iterable[str], put_off: Sequence[PutOff]) -> None:
    """Move the cursor past the batch, mark the captures that are done, and record those put off."""
    if batch.end is not None:
        cursors.move(tx, CURSOR, *batch.end)
    finished = list(done)
    candidates.mark_done(tx, finished, batch.numbers)
    if batch.tries is not None and finished:
        tx.defer("candidate.done_again", capture_ids=finished)
    rows: list[tuple[Any, ...]] = []
    for one in put_off:
        if batch.tries is None or one.error is not None:
            which = (one.capture.capture_id, one.capture.seq, holder_of(one.capture.subject, one.capture.user_id))
            rows.append((*which, one.tries, one.next_at, one.error, one.parked_at))
        if one.parked_at is not None:
            tx.emit("memory.parked", "auto", capture_id=one.capture.capture_id, reason=one.error, tries=one.tries)
    tx.defer_many("candidate.put_off", rows)


def split_batch(
    batch: Batch, errors: dict[str, Failure], pack: Pack, now: datetime
) -> tuple[list[Capture], list[PutOff]]:
    """Split the batch into captures to consolidate now and those put off: the failed ones and those behind them."""
    behind = set(batch.blocked)
    ready: list[Capture] = []
    put_off: list[PutOff] = []
    for capture in batch.captures:
        holder = holder_of(capture.subject, capture.user_id)
        before = (batch.tries or {}).get(capture.capture_id, 0)
        if holder in behind:
            put_off.append(PutOff(capture, None, before, now))
        elif (error := errors.get(capture.capture_id)) is None:
            ready.append(capture)
        else:
            failed = _failed(capture, error, before, pack, now)
            put_off.append(failed)
            if failed.parked_at is None and holder != TENANT_HOLDER and batch.number(capture.capture_id) == 1:
                behind.add(holder)
    put_off += [PutOff(capture, "seal_broken", 1, now, now) for capture in batch.broken]
    return ready, put_off


def _failed(capture: Capture, error: Failure, earlier_tries: int, pack: Pack, now: datetime) -> PutOff:
    if error.later:
        return PutOff(capture, error.why, earlier_tries, now + timedelta(hours=1))
    rule, tries = pack.memory_layer.extraction, earlier_tries + 1
    parked_at = now if tries >= rule.tries else None
    pause: timedelta = min(rule.retry_after * 4 ** min(tries - 1, 16), timedelta(days=1))
    return PutOff(capture, error.why, tries, now + pause, parked_at)
