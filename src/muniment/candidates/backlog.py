"""What waits to be consolidated: captures behind the tenant's cursor, and those to be tried again.

Read first, without a lock, so that extractors may take their time; written in a second transaction, which holds the
cursor and finds that nothing has changed since. Captures of one holder are done in their order: while one of them
is to be tried again, those behind it wait with it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from muniment.database import cursors
from muniment.database.rows import capture_of
from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction
from muniment.erasure.store import hold_off_erasure
from muniment.errors import SealBroken
from muniment.model.capture import TENANT_HOLDER, Capture, holder_of
from muniment.pack import Pack

Place = tuple[int, str]
START: Place = (0, "")
CURSOR = "consolidate"


@dataclass(frozen=True)
class Batch:
    """Captures to be consolidated, opened, in their order; those that do not open are named in `broken`.

    `cursor` is where the tenant's cursor stood and `end` where it goes; both None for captures tried again. `seq` is
    the tenant's number at the time of reading. `tries` says how often each was tried before, `numbers` which
    consolidation of a capture it is where it is not the first.
    """

    captures: tuple[Capture, ...]
    broken: tuple[Capture, ...]
    read: int
    seq: int
    cursor: Place | None = None
    end: Place | None = None
    tries: dict[str, int] | None = None
    held_up: frozenset[str] = frozenset()
    erasures: tuple[Row, ...] = ()
    numbers: dict[str, int] = field(default_factory=dict[str, int])

    def number(self, capture_id: str) -> int:
        """Which consolidation of that capture it is."""
        return self.numbers.get(capture_id, 1)


@dataclass(frozen=True)
class Failure:
    """Why a capture could not be read; `later` where that is no fault of its own, and no try is counted."""

    why: str
    later: bool = False


@dataclass(frozen=True)
class PutOff:
    """A capture that waits: why it failed, or nothing where it only waits for one before it."""

    capture: Capture
    error: str | None
    tries: int
    next_at: datetime
    parked_at: datetime | None = None


async def read(tx: Transaction, vault: Vault, count: int) -> Batch | None:
    """What is to be tried again now, else what is new; None when nothing waits."""
    again, new, cursor, held_up, clock = await tx.gather(
        ("candidate.due_again", {"count": count}),
        ("candidate.next_captures", {"count": count}),
        ("candidate.cursor", {}),
        ("candidate.held_up", {}),
        ("tenant.clock", {}),
    )
    seq = clock[0]["seq"] if clock else 0
    if again:
        captures, broken = await _opened(tx, vault, again)
        tries = {row["capture_id"]: row["tries"] for row in again}
        numbers = {row["capture_id"]: row["number"] for row in again if row["number"] > 1}
        return Batch(captures, broken, len(again), seq, tries=tries, numbers=numbers)
    if not new:
        return None
    captures, broken = await _opened(tx, vault, [row for row in new if not row["done"]])
    at = (cursor[0]["seq"], cursor[0]["capture_id"]) if cursor else START
    end = (new[-1]["seq"], new[-1]["capture_id"])
    return Batch(captures, broken, len(new), seq, at, end, held_up=frozenset(row["holder"] for row in held_up))


async def _opened(
    tx: Transaction, vault: Vault, rows: Sequence[Row]
) -> tuple[tuple[Capture, ...], tuple[Capture, ...]]:
    """Opened and broken ones. What was erased is neither: it has nothing to say and is done."""
    keys = await vault.keys(tx, {row["holder"] for row in rows}, skip_broken=True)
    opened: list[Capture] = []
    broken: list[Capture] = []
    for row in rows:
        if row["content"] == b"":
            opened.append(capture_of(row, None))
            continue
        try:
            key = keys[row["holder"]]
            opened.append(capture_of(row, key.open("captures.content", row["capture_id"], row["content"])))
        except (SealBroken, KeyError):
            broken.append(capture_of(row, None))
    return tuple(opened), tuple(broken)


async def take(tx: Transaction, batch: Batch) -> Batch:
    """Hold the tenant's cursor until the commit.

    Gives an empty batch if another went on meanwhile, or something was erased: what was read counts no more. Of
    captures tried again, those that another finished meanwhile are left out. `erasures` then has those that came
    between the first capture of the batch and its reading: what is found now may name whom they erased.
    """
    held = await cursors.lock(tx, CURSOR)
    await hold_off_erasure(tx)
    moved = batch.cursor is not None and (held["seq"], held["place"]) != batch.cursor
    first = min((one.seq for one in batch.captures), default=batch.seq)
    erasures = tuple(await tx.rows("erasure.after", seq=min(first, batch.seq)))
    if moved or any(row["seq"] > batch.seq for row in erasures):
        return Batch((), (), 0, batch.seq)
    batch = replace(batch, erasures=erasures)
    if batch.tries is None:
        return batch
    ids = [one.capture_id for one in (*batch.captures, *batch.broken)]
    left = {row["capture_id"] for row in await tx.rows("candidate.still_again", capture_ids=ids)}
    return replace(
        batch,
        captures=tuple(one for one in batch.captures if one.capture_id in left),
        broken=tuple(one for one in batch.broken if one.capture_id in left),
    )


def settle(tx: Transaction, batch: Batch, done: Iterable[str], put_off: Sequence[PutOff]) -> None:
    """Move the cursor past the batch, say which captures are done, and write down those that are not."""
    if batch.end is not None:
        cursors.move(tx, CURSOR, *batch.end)
    finished = list(done)
    mark_done(tx, finished, batch.numbers)
    if batch.tries is not None and finished:
        tx.defer("candidate.done_again", capture_ids=finished)
    rows = [_row(one) for one in put_off if batch.tries is None or one.error is not None]
    tx.defer_many("candidate.put_off", rows)
    for one in put_off:
        if one.parked_at is not None:
            tx.emit("memory.parked", "auto", capture_id=one.capture.capture_id, reason=one.error, tries=one.tries)


def _row(one: PutOff) -> tuple[Any, ...]:
    holder = holder_of(one.capture.subject, one.capture.user_id)
    return (one.capture.capture_id, one.capture.seq, holder, one.tries, one.next_at, one.error, one.parked_at)


def in_order(batch: Batch, errors: dict[str, Failure], pack: Pack, now: datetime) -> tuple[list[Capture], list[PutOff]]:
    """Which captures of the batch can be done now, and which are put off: the failed, and those behind them."""
    behind = set(batch.held_up)
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


def _failed(capture: Capture, error: Failure, before: int, pack: Pack, now: datetime) -> PutOff:
    if error.later:
        return PutOff(capture, error.why, before, now + timedelta(hours=1))
    rule, tries = pack.memory_layer.extraction, before + 1
    parked_at = now if tries >= rule.tries else None
    pause: timedelta = min(rule.retry_after * 4 ** min(tries - 1, 16), timedelta(days=1))
    return PutOff(capture, error.why, tries, now + pause, parked_at)


def mark_done(tx: Transaction, capture_ids: Iterable[str], numbers: Mapping[str, int] | None = None) -> None:
    """Say that these captures were consolidated: for the first time, or for the time that `numbers` says."""
    known = numbers or {}
    tx.defer_many("candidate.mark_done", [(one, known.get(one, 1)) for one in capture_ids])
