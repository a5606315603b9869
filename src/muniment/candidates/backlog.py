"""The backlog: captures behind the tenant's cursor, and those to be tried again, read and completed in batches."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from muniment.candidates import store as candidates
from muniment.candidates.extractors.extractor import SERVER_SAYS
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
class ModelState:
    """Whose captures wait for a model's answer; and until when the model is not asked, as it fails."""

    waiting: frozenset[str] = frozenset()
    fails_until: datetime | None = None


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
    # Captures that were consolidated before without their language model, and wait for its answer alone.
    late: frozenset[str] = frozenset()
    model: ModelState = field(default_factory=ModelState)
    # Whether the rows of the cursor and of the lock of erasures exist, and the names of the scope locks that exist.
    prepared: bool = False
    scope_locks: frozenset[str] = frozenset()
    # The last capture of each session before the batch.
    before: dict[str, str] = field(default_factory=dict[str, str])

    def follows(self) -> dict[str, str]:
        """Return for each capture of the batch the capture before it in its session."""
        last = dict(self.before)
        found: dict[str, str] = {}
        for capture in self.captures:
            if capture.session_id is not None:
                if capture.session_id in last:
                    found[capture.capture_id] = last[capture.session_id]
                last[capture.session_id] = capture.capture_id
        return found

    def number(self, capture_id: str) -> int:
        """Return the number of that capture's consolidation, from 1."""
        return self.numbers.get(capture_id, 1)


Late = Literal["answer", "model"]


@dataclass(frozen=True)
class Failure:
    """Why a capture could not be read; with `later`, seconds, the reason lies elsewhere, and no try is counted.

    Of a language model: `unreachable`, if it fails as a whole; not `asked`, if it was left out for that, or for others
    that come first (without a reason).
    """

    why: str | None
    later: float | None = None
    unreachable: bool = False
    asked: bool = True


@dataclass(frozen=True)
class PutOff:
    """A capture that waits: `error` is why it failed, None if it only waits for an earlier one.

    `late`: it waits for a model's answer alone, which will be its consolidation `number`.
    """

    capture: Capture
    error: str | None
    tries: int
    next_at: datetime
    parked_at: datetime | None = None
    number: int = 1
    late: Late | None = None


@dataclass(frozen=True)
class SplitBatch:
    """A batch in parts: captures to consolidate now, those put off, and those that then wait for a model's answer."""

    ready: tuple[Capture, ...]
    put_off: tuple[PutOff, ...]
    without_model: tuple[PutOff, ...]

    @property
    def waiting(self) -> tuple[PutOff, ...]:
        """All that wait or were parked."""
        return (*self.put_off, *self.without_model)


@dataclass(frozen=True)
class DueAgain:
    """Captures that are to be tried again now: how often each was tried, and the number of its consolidation."""

    seq: int
    tries: dict[str, int]
    numbers: dict[str, int]
    late: frozenset[str]
    prepared: bool
    model: ModelState


async def read_batch(tx: Transaction, vault: Vault, count: int, *, only_new: bool = False) -> Batch | DueAgain | None:
    """Read which captures are to be tried again now, else the new captures, and commit; None when nothing waits.

    New captures come before those that wait for a model's answer alone. `only_new` leaves out those to be tried again.
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
    holders = {late: frozenset(r["holder"] for r in held_up if r["late"] is late) for late in (False, True)}
    fails_until = min((row["until"] for row in held_up if row["until"] is not None), default=None)
    model = ModelState(holders[True] - {TENANT_HOLDER}, fails_until)
    if new and again[:1] and again[0]["late"] is not None:
        again = []
    if again and not only_new:
        tries = {row["capture_id"]: row["tries"] for row in again}
        numbers = {row["capture_id"]: row["number"] for row in again if row["number"] > 1}
        late = frozenset(row["capture_id"] for row in again if row["late"] is not None)
        return DueAgain(seq, tries, numbers, late, prepared, model)
    if not new:
        return None
    captures, broken = await _opened(tx, vault, [row for row in new if not row["done"]])
    at = (cursor[0]["seq"], cursor[0]["capture_id"]) if cursor else START
    end = (new[-1]["seq"], new[-1]["capture_id"])
    return Batch(
        captures,
        broken,
        seq,
        at,
        end,
        blocked=holders[False] - {TENANT_HOLDER},
        last=len(new) < count,
        prepared=prepared,
        model=model,
    )


async def read_again(tx: Transaction, vault: Vault, due: DueAgain) -> Batch | None:
    """Read the captures that are to be tried again, and commit; None if none of them is there any more.

    Raises `KeyRotated` like `read_batch`.
    """
    (rows,) = await tx.commit_with(("candidate.again", {"capture_ids": sorted(due.tries)}))
    if not rows:
        return None
    captures, broken = await _opened(tx, vault, rows)
    return Batch(
        captures,
        broken,
        due.seq,
        tries=due.tries,
        numbers=due.numbers,
        late=due.late,
        model=due.model,
        prepared=due.prepared,
    )


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
    sessions = sorted(
        {one.session_id for one in batch.captures if one.session_id is not None and one.kind == "message"}
    )
    start = min(((one.seq, one.capture_id) for one in batch.captures), default=START)
    since = {"seq": start[0], "capture_id": start[1], "sessions": sessions}
    cursor, _, subjects, erasures, there, *left = await tx.gather(
        ("cursor.take", {"cursor": CURSOR}),
        locks.BLOCK_ERASURES,
        ("tenant.hold_subjects", {"holders": sorted(holders)}),
        ("erasure.after", {"seq": min(first, batch.seq)}),
        ("promote.locks", {"keys": locks.scope_keys({one.user_id for one in batch.captures})}),
        *([("candidate.before", since)] if sessions else []),
        *([("candidate.still_again", {"capture_ids": ids})] if batch.tries is not None else []),
    )
    before = {row["session_id"]: row["capture_id"] for row in left.pop(0)} if sessions else {}
    moved = batch.cursor is not None and (cursor[0]["seq"], cursor[0]["place"]) != batch.cursor
    if moved or any(row["seq"] > batch.seq for row in erasures):
        return Batch((), (), batch.seq)
    await vault.keep_held(tx, subjects)
    batch = replace(batch, erasures=tuple(erasures), scope_locks=frozenset(row["key"] for row in there))
    batch = replace(batch, before=before)
    if not left:
        return batch
    # One that waited for a model's answer alone may have been ordered to be consolidated as a whole meanwhile.
    still = {row["capture_id"] for row in left[0] if row["late"] == (row["capture_id"] in batch.late)}
    return replace(
        batch,
        captures=tuple(one for one in batch.captures if one.capture_id in still),
        broken=tuple(one for one in batch.broken if one.capture_id in still),
    )


async def complete_batch(tx: Transaction, batch: Batch, split: SplitBatch) -> None:
    """Move the cursor past the batch, mark the captures that are done, and record those that wait."""
    finished = [one.capture_id for one in split.ready]
    if batch.late.intersection(finished):
        await _order_late(tx, batch, finished)
    if batch.end is not None:
        cursors.move(tx, CURSOR, *batch.end)
    candidates.mark_done(tx, finished, batch.numbers)
    if batch.tries is not None and finished:
        tx.defer("candidate.done_again", capture_ids=finished)
    # A capture tried again that only waits for an earlier one has its row already.
    told = [one for one in split.put_off if batch.tries is None or one.error is not None]
    tx.defer_many("candidate.put_off", [_row(one) for one in (*told, *split.without_model)])
    for one in split.waiting:
        if one.parked_at is not None:
            reason = (one.error or "").partition(SERVER_SAYS)[0]
            tx.emit("memory.parked", "auto", capture_id=one.capture.capture_id, reason=reason, tries=one.tries)


def _row(one: PutOff) -> tuple[Any, ...]:
    which = (one.capture.capture_id, one.capture.seq, holder_of(one.capture.subject, one.capture.user_id))
    return (*which, one.tries, one.next_at, one.error, one.parked_at, one.number, one.late)


async def _order_late(tx: Transaction, batch: Batch, finished: Iterable[str]) -> None:
    """Write the order of each consolidation of a model's late answer, which nobody else gives."""
    tick = await tx.tick()
    for capture_id in finished:
        if capture_id in batch.late:
            which: dict[str, Any] = {"capture_id": capture_id, "number": batch.number(capture_id)}
            tx.defer("history.order", **which, seq=tick.seq, at=tick.at, by="auto", reason="late_answer")
            tx.emit("memory.rerun", "auto", **which, reason="late_answer")


def split_batch(
    batch: Batch, errors: dict[str, Failure], by_model: dict[str, Failure | None], pack: Pack, now: datetime
) -> SplitBatch:
    """Split the batch into captures to consolidate now and those put off: the failed ones and those behind them.

    `by_model` are the captures that a language model reads, each with why its answer is not there. A missing answer
    puts nothing off but itself: the capture is consolidated without it and then waits for it, and so do the answers for
    later captures of the same holder.
    """
    behind: set[str] = set(batch.blocked)
    behind_late: set[str] = set()
    ready: list[Capture] = []
    put_off: list[PutOff] = []
    without_model: list[PutOff] = []
    for capture in batch.captures:
        capture_id, holder = capture.capture_id, holder_of(capture.subject, capture.user_id)
        before, number = (batch.tries or {}).get(capture_id, 0), batch.number(capture_id)
        missing = by_model.get(capture_id)
        waits_before = holder in batch.model.waiting and capture_id not in batch.late
        if missing is None and capture_id in by_model and (waits_before or holder in behind_late):
            missing = NOT_ASKED
        if holder in behind:
            put_off.append(PutOff(capture, None, before, now, number=number))
        elif (error := errors.get(capture_id)) is not None:
            failed = replace(_failed(capture, error, before, pack, now), number=number)
            put_off.append(failed)
            if failed.parked_at is None and holder != TENANT_HOLDER and number == 1:
                behind.add(holder)
        elif missing is None:
            ready.append(capture)
        else:
            late = capture_id in batch.late
            waits = _without_model(capture, missing, before if late else 0, pack, now)
            if late:
                put_off.append(replace(waits, number=number))
            else:
                ready.append(capture)
                without_model.append(replace(waits, number=number + 1))
            if waits.parked_at is None and holder != TENANT_HOLDER:
                behind_late.add(holder)
    put_off += [PutOff(capture, "seal_broken", 1, now, now) for capture in batch.broken]
    until = max((one.next_at for one in (*put_off, *without_model) if one.late == "model"), default=None)
    until = until or batch.model.fails_until
    return SplitBatch(
        tuple(ready), *(tuple(_asked_from(until, one, by_model) for one in some) for some in (put_off, without_model))
    )


NOT_ASKED = Failure(None, asked=False)


def _without_model(capture: Capture, missing: Failure, tries: int, pack: Pack, now: datetime) -> PutOff:
    """Return how a capture waits for a model's answer: no try is counted where the model was not asked."""
    if not missing.asked:
        return PutOff(capture, missing.why, tries, now, late="answer")
    return replace(_failed(capture, missing, tries, pack, now), late="model" if missing.unreachable else "answer")


def _asked_from(until: datetime | None, one: PutOff, by_model: dict[str, Failure | None]) -> PutOff:
    """Have a capture that was left out because the model fails wait until the model is tried again."""
    missing = by_model.get(one.capture.capture_id)
    left_out = missing is not None and not missing.asked and missing.unreachable
    return replace(one, next_at=until) if left_out and until is not None else one


def _failed(capture: Capture, error: Failure, earlier_tries: int, pack: Pack, now: datetime) -> PutOff:
    if error.later is not None:
        return PutOff(capture, error.why, earlier_tries, now + timedelta(seconds=error.later))
    rule, tries = pack.memory_layer.extraction, earlier_tries + 1
    parked_at = now if tries >= rule.tries else None
    pause: timedelta = min(rule.retry_after * 4 ** min(tries - 1, 16), timedelta(days=1))
    return PutOff(capture, error.why, tries, now + pause, parked_at)
