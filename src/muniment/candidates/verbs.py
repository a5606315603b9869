"""The verbs of candidates, propose a typed fact and consolidate captures, and the job that consolidates (JOB-1).

Consolidation: extractors read the captures that wait; what they find passes the gates into the queue. It is safe to run
twice, at once, or to be killed: each batch is one transaction with its position in the log. A batch is read first,
without a lock, so that extractors may take their time; a second transaction locks the cursor, checks that nothing has
changed since, and writes. Captures of one holder are consolidated in their order: while one of them is to be tried
again, those behind it wait with it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

import anyio
from anyio.lowlevel import checkpoint

from muniment.access.roles import Right as Right
from muniment.candidates import store as candidates
from muniment.candidates.extractors import Extractor, extractors_of
from muniment.candidates.intake import Intake, IntakeDecision
from muniment.candidates.propose import submit
from muniment.candidates.rules import Draft, Found, draft_facts
from muniment.capture.rules import ProposeFields, proposal_input, run_fields
from muniment.context import FabricContext, retry_on_pack_change
from muniment.database import cursors
from muniment.database.locks import block_erasures
from muniment.database.rows import capture_of
from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction
from muniment.errors import ExtractorFailed, SealBroken
from muniment.job import JobResult
from muniment.model.candidate import Consolidation, Refusal
from muniment.model.capture import TENANT_HOLDER, Capture, holder_of
from muniment.model.context import Asker, Principal
from muniment.model.proposal import Submission
from muniment.opening import Opened
from muniment.pack import Pack
from muniment.review.verbs import promote_by_policy
from muniment.tracing import span
from muniment.verbs.declaration import verb

BATCH = 500
# Batches of a run of the job; other tenants' jobs come between.
BATCHES = 4

# Calls of extractors that run at the same time.
CONCURRENT = 8
# Captures handled between two event-loop checkpoints.
_SLICE = 50

Progress = Callable[[Consolidation], None]


def _right(_: Asker, fields: Mapping[str, Any]) -> Right:
    return "correct" if fields.get("write_class") == "correction" else "propose"


@verb(
    "propose",
    right="propose",
    right_for=_right,
    http="POST /proposals",
    status=201,
    unchecked=ProposeFields,
    keywords=ProposeFields,
    retry=True,
)
async def propose(
    context: FabricContext, asker: Asker, fields: Mapping[str, Any], *, principal: Principal
) -> Submission | Refusal:
    """Propose a typed fact. It is captured, passes the gates and enters the queue, in one transaction.

    When a gate refuses it, the refusal is returned, with the gate and the reason, and the capture stays.
    """
    item = proposal_input(run_fields(asker), fields)
    return await submit(context, principal, await context.pack_for(asker), item)


@verb("consolidate", right="work", effect="pass", http="POST /work/consolidate")
async def consolidate(context: FabricContext, tenant_id: str, *, on_progress: Progress | None = None) -> Consolidation:
    """Turn the tenant's waiting captures into proposals or refusals, and promote what needs no person.

    A capture whose extractor fails is tried again later, and parked in the end; nothing is lost. Safe to run twice,
    concurrently, or to be killed.
    """
    with span("consolidate"):
        total = Consolidation()
        while (done := await consolidate_batch(context, tenant_id)) is not None:
            total = _sum(total, done)
            if on_progress is not None and done != Consolidation():
                on_progress(total)
        return _sum(total, Consolidation(promoted=await promote_by_policy(context, tenant_id)))


async def run_job(opened: Opened, tenant_id: str) -> JobResult:
    """Consolidate a few batches, in the order of their commits, then promote what policy may promote."""
    context, total, more = opened.context, Consolidation(), True
    for _ in range(BATCHES):
        done = await consolidate_batch(context, tenant_id)
        if not (more := done is not None):
            break
        total = _sum(total, done)
    promoted = await promote_by_policy(context, tenant_id)
    async with context.transaction(tenant_id, "writer") as tx:
        again = await tx.row("candidate.next_try")
    counts = {
        "captures": total.captures,
        "proposals": len(total.proposals),
        "promoted": len(promoted),
        "parked": len(total.failed),
    }
    return JobResult(counts, more, again["at"] if again is not None else None)


def _sum(one: Consolidation, other: Consolidation) -> Consolidation:
    return Consolidation(**{name: getattr(one, name) + getattr(other, name) for name in Consolidation.model_fields})


# ---- one batch: read, extracted, decided and written ----

Position = tuple[int, str]
START: Position = (0, "")
CURSOR = "consolidate"


@dataclass(frozen=True)
class Batch:
    """Captures to be consolidated, opened, in their order; `broken` are those that do not open.

    `cursor` is where the tenant's cursor stood and `end` where it goes; both None for captures tried again. `seq` is
    the tenant's sequence when the batch was read. `tries` counts earlier tries of each capture, `numbers` holds the
    number of a capture's consolidation where it is not the first.
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


@retry_on_pack_change
async def consolidate_batch(context: FabricContext, tenant_id: str, count: int = BATCH) -> Consolidation | None:
    """Consolidate one batch; None when nothing waits, an empty result if another process was quicker."""
    async with context.transaction(tenant_id, "writer") as tx:
        if await context.vault.tenant(tx) is None:
            return None
        batch = await read_batch(tx, context.vault, count)
    if batch is None:
        return None
    pack = await context.pack_in_force(tenant_id)
    found, errors = await _extract(context, batch.captures, pack)
    async with context.transaction(tenant_id, "writer", under=pack) as tx:
        batch = await lock_batch(tx, batch)
        ready, put_off = split_batch(batch, errors, pack, context.now())
        decision = await _decide(context, tx, ready, pack, found, batch)
        if not decision.contradicts:
            tx.change_nothing_visible()
        complete_batch(tx, batch, [one.capture_id for one in ready], put_off)
        proposals, refusals = await decision.enqueue(tx)
        late = sorted({one.capture_id for one in refusals if one.reason == candidates.ERASED})
        if late:
            tx.defer("erasure.blank_late", capture_ids=late)
            tx.event_rows.add_blanked("captures", late)
            tx.emit("memory.note", "auto", about="erased_late", captures=late)
    return Consolidation(
        captures=len(ready),
        proposals=tuple(proposals),
        refusals=tuple(refusals),
        waiting=sum(one.parked_at is None for one in put_off),
        failed=tuple(one.capture.capture_id for one in put_off if one.parked_at is not None),
    )


async def _decide(
    context: FabricContext,
    tx: Transaction,
    ready: Sequence[Capture],
    pack: Pack,
    found: dict[str, list[Found]],
    batch: Batch,
) -> IntakeDecision:
    drafts: list[Draft] = []
    most = sum(1 + len(found.get(capture.capture_id, ())) for capture in ready)
    ids = iter(candidates.new_ids(tx, most))
    holders = {holder_of(capture.subject, capture.user_id) for capture in ready if found.get(capture.capture_id)}
    keys = await context.vault.keys(tx, holders, make=True) if holders else {}
    for capture in ready:
        key = keys.get(holder_of(capture.subject, capture.user_id))
        number = batch.number(capture.capture_id)
        read = draft_facts(capture, pack, found.get(capture.capture_id, []), ids, key.digest if key else None, number)
        drafts += await candidates.not_proposed_before(tx, context.vault, read) if number > 1 and read else read
    if not drafts:
        return IntakeDecision(context, pack, (), ())
    kept, erased = await candidates.erased_since(tx, context.vault, drafts, batch.erasures)
    decision = await (await Intake.of(context, tx, pack, kept)).decide(tx)
    return replace(decision, refused=(*decision.refused, *erased))


async def _extract(
    context: FabricContext, captures: Sequence[Capture], pack: Pack
) -> tuple[dict[str, list[Found]], dict[str, Failure]]:
    """Return what the extractors read in each capture, and why captures failed. No lock is held meanwhile."""
    found: dict[str, list[Found]] = {}
    errors: dict[str, Failure] = {}
    calls: list[tuple[Capture, Extractor]] = []
    extractors, timeout = extractors_of(pack, context.models), pack.memory_layer.extraction.timeout.total_seconds()
    for number, capture in enumerate(captures, 1):
        if capture.content is not None and capture.content.fact is None:
            calls += [(capture, extractor) for extractor in extractors if extractor.reads(capture)]
        if number % _SLICE == 0:
            await checkpoint()

    read: dict[tuple[str, str], list[Found]] = {}

    async def call(capture: Capture, extractor: Extractor) -> None:
        try:
            with anyio.fail_after(timeout):
                facts = await extractor.extract(capture, _Answers(context, capture))
            read[capture.capture_id, extractor.name] = [(extractor.name, one) for one in facts]
        except ExtractorFailed as error:
            errors[capture.capture_id] = Failure(f"{extractor.name}: {error.message}", error.later)
        except TimeoutError:
            errors[capture.capture_id] = Failure(f"{extractor.name}: no answer within {timeout:g} s")
        except (Exception, SystemExit) as error:
            # Whatever an extractor does, nothing is lost (CAN-3). An error's text may be content, its type is not.
            errors[capture.capture_id] = Failure(f"{extractor.name}: {type(error).__name__}")

    for first in range(0, len(calls), CONCURRENT):
        async with anyio.create_task_group() as tasks:
            for capture, extractor in calls[first : first + CONCURRENT]:
                tasks.start_soon(call, capture, extractor)
    # In the order of the extractors, not of their answers. One without facts and without an error cancelled itself.
    for capture, extractor in calls:
        if (capture.capture_id, extractor.name) not in read:
            errors.setdefault(capture.capture_id, Failure(f"{extractor.name}: cancelled"))
        found.setdefault(capture.capture_id, []).extend(read.get((capture.capture_id, extractor.name), ()))
    return found, errors


@dataclass(frozen=True)
class _Answers:
    """A model's stored answers about a capture, sealed under the key of the capture's holder."""

    context: FabricContext
    capture: Capture

    async def get(self, extractor: str) -> bytes | None:
        async with self.context.transaction(self.capture.tenant_id, "writer") as tx:
            row = await tx.row("candidate.answer", capture_id=self.capture.capture_id, extractor=extractor)
            if row is None:
                return None
            keys = await self.context.vault.keys(tx, [row["holder"]])
            return keys[row["holder"]].open("extractions.answer", self._row(extractor), row["answer"])

    async def put(self, extractor: str, answer: bytes) -> None:
        holder = holder_of(self.capture.subject, self.capture.user_id)
        async with self.context.transaction(self.capture.tenant_id, "writer") as tx:
            # What was erased while the model answered stays erased, and a destroyed key is not made again.
            await block_erasures(tx)
            if not await tx.rows("candidate.still_there", capture_id=self.capture.capture_id):
                return
            if (key := (await self.context.vault.keys(tx, [holder], skip_broken=True)).get(holder)) is not None:
                sealed = key.seal("extractions.answer", self._row(extractor), answer)
                row = {"capture_id": self.capture.capture_id, "extractor": extractor}
                await tx.do("candidate.keep_answer", **row, holder=holder, answer=sealed)

    async def spend(self, extractor: str, most: int) -> bool:
        async with self.context.transaction(self.capture.tenant_id, "writer") as tx:
            day = self.context.now().date()
            return bool(await tx.rows("candidate.spend", extractor=extractor, day=day, most=most))

    def _row(self, extractor: str) -> str:
        return f"{self.capture.capture_id}/{extractor}"


# ---- the backlog: captures behind the tenant's cursor, and those to be tried again ----


async def read_batch(tx: Transaction, vault: Vault, count: int) -> Batch | None:
    """Read the captures to be tried again now, else the new ones; None when nothing waits."""
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
        return Batch(captures, broken, seq, tries=tries, numbers=numbers)
    if not new:
        return None
    captures, broken = await _opened(tx, vault, [row for row in new if not row["done"]])
    at = (cursor[0]["seq"], cursor[0]["capture_id"]) if cursor else START
    end = (new[-1]["seq"], new[-1]["capture_id"])
    return Batch(captures, broken, seq, at, end, blocked=frozenset(row["holder"] for row in held_up))


async def _opened(
    tx: Transaction, vault: Vault, rows: Sequence[Row]
) -> tuple[tuple[Capture, ...], tuple[Capture, ...]]:
    """Return the captures that open and those that do not; an erased one counts as opened, without content."""
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


async def lock_batch(tx: Transaction, batch: Batch) -> Batch:
    """Lock the tenant's cursor until the commit, and check the batch again.

    Returns an empty batch if another process went on or something was erased since the reading. Of captures tried
    again, those that another process finished are left out. `erasures` holds the erasures between the first capture of
    the batch and its reading: the facts of the batch may name the persons they erased.
    """
    cursor = await cursors.lock(tx, CURSOR)
    await block_erasures(tx)
    moved = batch.cursor is not None and (cursor["seq"], cursor["place"]) != batch.cursor
    first = min((one.seq for one in batch.captures), default=batch.seq)
    erasures = tuple(await tx.rows("erasure.after", seq=min(first, batch.seq)))
    if moved or any(row["seq"] > batch.seq for row in erasures):
        return Batch((), (), batch.seq)
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
