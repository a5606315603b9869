"""The verbs of candidates, propose a typed fact and consolidate captures, and the job that consolidates (JOB-1).

Consolidation: extractors read the captures that wait; what they find passes the gates into the queue. It is safe to run
twice, at once, or to be killed: each batch is one transaction with its position in the log. A batch is read first,
without a lock, so that extractors may take their time; a second transaction locks the cursor, checks that nothing has
changed since, and writes. Captures of one holder are consolidated in their order: while one of them is to be tried
again, those behind it wait with it.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import anyio
from anyio.lowlevel import checkpoint

from muniment.access.roles import Right as Right
from muniment.candidates import store as candidates
from muniment.candidates.backlog import (
    Batch,
    DueAgain,
    Failure,
    complete_batch,
    lock_batch,
    read_again,
    read_batch,
    split_batch,
)
from muniment.candidates.extractors import Extractor, extractors_of
from muniment.candidates.intake import Intake, IntakeDecision
from muniment.candidates.propose import submit
from muniment.candidates.rules import Draft, Found, draft_facts, own_words_holder
from muniment.capture.rules import ProposeFields, proposal_input, run_fields
from muniment.context import FabricContext, retry_on_pack_change
from muniment.database.locks import block_erasures
from muniment.database.storage import Transaction
from muniment.errors import ExtractorFailed, KeyRotated, ReadersUnavailable
from muniment.job import JobResult
from muniment.model.candidate import Consolidation, Refusal
from muniment.model.capture import Capture, holder_of
from muniment.model.context import Asker, Principal
from muniment.model.proposal import Submission
from muniment.opening import Opened
from muniment.pack import Pack
from muniment.promotion import by_policy
from muniment.review.verbs import promote_by_policy
from muniment.tracing import span
from muniment.verbs.declaration import verb

log = logging.getLogger("muniment.language")

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
        total, more = Consolidation(), True
        while more:
            try:
                done, more = await consolidate_batch(context, tenant_id)
            except ReadersUnavailable as error:
                _report_waiting(tenant_id, error)
                break
            total = _sum(total, done)
            if on_progress is not None and done != Consolidation():
                on_progress(total)
        return _sum(total, Consolidation(promoted=await promote_by_policy(context, tenant_id)))


async def run_job(opened: Opened, tenant_id: str) -> JobResult:
    """Consolidate a few batches, in the order of their commits, then promote what else policy may promote."""
    context, total, more = opened.context, Consolidation(), True
    retry_at: datetime | None = None
    for _ in range(BATCHES):
        try:
            done, more = await consolidate_batch(context, tenant_id)
        except ReadersUnavailable as error:
            _report_waiting(tenant_id, error)
            pause = (await context.pack_in_force(tenant_id)).memory_layer.extraction.retry_after
            more, retry_at = False, context.now() + pause
            break
        total = _sum(total, done)
        if not more:
            break
    promoted = (*total.promoted, *await promote_by_policy(context, tenant_id))
    async with context.transaction(tenant_id, "writer") as tx:
        (again,) = await tx.commit_with(("candidate.next_try", {}))
    counts = {
        "captures": total.captures,
        "proposals": len(total.proposals),
        "promoted": len(promoted),
        "parked": len(total.failed),
    }
    times = [at for at in (again[0]["at"] if again else None, retry_at) if at is not None]
    return JobResult(counts, more, min(times, default=None))


def _report_waiting(tenant_id: str, error: ReadersUnavailable) -> None:
    log.warning("captures of tenant %s wait: %s", tenant_id, error.message)


def _sum(one: Consolidation, other: Consolidation) -> Consolidation:
    return Consolidation(**{name: getattr(one, name) + getattr(other, name) for name in Consolidation.model_fields})


@retry_on_pack_change
async def consolidate_batch(context: FabricContext, tenant_id: str, count: int = BATCH) -> tuple[Consolidation, bool]:
    """Consolidate one batch, and promote what policy may promote of it; also returns whether more may wait.

    The result is empty if another process was quicker. Raises `ReadersUnavailable` where this process lacks the
    tenant's language version, or its readers do not answer: nothing was written, and the captures wait (CAN-15).
    """
    batch = await _read(context, tenant_id, count)
    if batch is None:
        return Consolidation(), False
    pack = await context.pack_in_force(tenant_id)
    found, errors = await _extract(context, batch.captures, pack)
    async with context.transaction(tenant_id, "writer", under=pack) as tx:
        batch = await lock_batch(tx, context.vault, batch, pack)
        ready, put_off = split_batch(batch, errors, pack, context.now())
        decision = await _decide(context, tx, ready, pack, found, batch)
        entries = await decision.entries(tx)
        # INVARIANT: all locks come before the tenant's clock.
        eligible = any(one.auto_eligible for one in entries)
        chosen = await by_policy.choose(tx, decision, entries) if eligible else []
        if not chosen and not decision.contradicts:
            tx.change_nothing_visible()
        complete_batch(tx, batch, [one.capture_id for one in ready], put_off)
        proposals, refusals = await decision.enqueue_entries(tx, entries)
        promoted = await by_policy.promote_chosen(context, tx, decision, entries, chosen) if chosen else []
        late = sorted({one.capture_id for one in refusals if one.reason == candidates.ERASED})
        if late:
            tx.defer("erasure.blank_late", capture_ids=late)
            tx.event_rows.add_blanked("captures", late)
            tx.emit("memory.note", "auto", about="erased_late", captures=late)
    done = Consolidation(
        captures=len(ready),
        proposals=tuple(proposals),
        promoted=tuple(promoted),
        refusals=tuple(refusals),
        waiting=sum(one.parked_at is None for one in put_off),
        failed=tuple(one.capture.capture_id for one in put_off if one.parked_at is not None),
    )
    return done, not batch.last or bool(put_off)


async def _read(context: FabricContext, tenant_id: str, count: int) -> Batch | None:
    for attempt in (1, 2):
        try:
            return await _read_once(context, tenant_id, count)
        except KeyRotated:
            # The next attempt reads the tenant's new key first.
            if attempt == 2:
                raise
    return None


async def _read_once(context: FabricContext, tenant_id: str, count: int) -> Batch | None:
    only_new = False
    while True:
        async with context.transaction(tenant_id, "writer") as tx:
            if await context.vault.tenant(tx) is None:
                return None
            batch = await read_batch(tx, context.vault, count, only_new=only_new)
        if not isinstance(batch, DueAgain):
            return batch
        async with context.transaction(tenant_id, "writer") as tx:
            if (again := await read_again(tx, context.vault, batch)) is not None:
                return again
        only_new = True


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
    holders = {own_words_holder(capture, pack) for capture in ready if found.get(capture.capture_id)}
    keys = await context.vault.keys(tx, holders, make=True) if holders else {}
    for capture in ready:
        key = keys.get(own_words_holder(capture, pack))
        number = batch.number(capture.capture_id)
        read = draft_facts(capture, pack, found.get(capture.capture_id, []), ids, key.digest if key else None, number)
        drafts += await candidates.not_proposed_before(tx, context.vault, read) if number > 1 and read else read
    if not drafts:
        return IntakeDecision(context, pack, (), ())
    kept, erased = await candidates.erased_since(tx, context.vault, drafts, batch.erasures)
    intake = await (await Intake.of(context, tx, pack, kept)).lock_scopes(tx, batch.scope_locks)
    decision = await intake.decide(tx)
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
