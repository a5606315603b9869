"""The verbs of candidates, propose a typed fact and consolidate captures, and the job that consolidates (JOB-1).

Consolidation: extractors read the captures that wait; what they find passes the gates into the queue. It is safe to run
twice, at once, or to be killed: each batch is one transaction with its position in the log. A batch is read first,
without a lock, so that extractors may take their time; a second transaction locks the cursor, checks that nothing has
changed since, and writes. Captures of one holder are consolidated in their order: while one of them is to be tried
again, those behind it wait with it. A language model that fails puts off its own answers alone (CAN-14).
"""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from muniment.access.roles import Right as Right
from muniment.candidates import store as candidates
from muniment.candidates.backlog import (
    Batch,
    DueAgain,
    complete_batch,
    lock_batch,
    read_again,
    read_batch,
    split_batch,
)
from muniment.candidates.extraction import Reading, extract
from muniment.candidates.intake import Intake, IntakeDecision
from muniment.candidates.propose import is_document, read_document, submit
from muniment.candidates.rules import Draft, Found, draft_facts, own_words_holder
from muniment.candidates.worth import with_context, worth_knowing
from muniment.capture.rules import ProposeFields, check_user, proposal_input, run_fields
from muniment.context import FabricContext, retry_on_pack_change
from muniment.contradictions.model_judge import PairsUnread
from muniment.contradictions.store import TextComparer
from muniment.database.storage import Transaction
from muniment.errors import KeyRotated, ReadersUnavailable
from muniment.job import JobResult
from muniment.model.candidate import Consolidation, Refusal
from muniment.model.capture import Capture
from muniment.model.context import Asker, Principal
from muniment.model.proposal import Submission
from muniment.opening import Opened
from muniment.pack import Pack
from muniment.promotion import by_policy
from muniment.review.by_policy import promote_by_policy
from muniment.tracing import span
from muniment.verbs.declaration import verb

log = logging.getLogger("muniment.language")

BATCH = 500
# Batches of a run of the job, and seconds after which it begins no other: other tenants' jobs come between.
BATCHES = 4
RUN_SECONDS = 1.0
# Captures of a run that goes before the jobs of other tenants.
BRIEF_BATCH = 20
# How often a batch is decided anew with what a model that judges texts said: beside memories, and within the batch.
_JUDGED_AGAIN = 2

Progress = Callable[[Consolidation], None]


def _right(_: Asker, fields: Mapping[str, Any]) -> Right:
    return "correct" if "correction" in (fields.get("write_class"), fields.get("class")) else "propose"


@verb(
    "propose",
    right="propose",
    right_for=_right,
    http="POST /proposals",
    status=201,
    unchecked=ProposeFields,
    keywords=ProposeFields,
    retry=True,
    custom_route=True,
)
async def propose(
    context: FabricContext, asker: Asker, fields: Mapping[str, Any], *, principal: Principal
) -> Submission | Refusal:
    """Propose a typed fact. It is captured, passes the gates and enters the queue, in one transaction.

    When a gate refuses it, the refusal is returned, with the gate and the reason, and the capture stays.

    It also takes the fields of a proposal document as they are (`**document`): the proposal gets the document's id, and
    every check in it is computed anew. The same document twice is one proposal. Raises `Conflict` for an id that is
    taken.
    """
    pack = await context.pack_for(asker)
    document, fact = read_document(fields, pack) if is_document(fields) else (None, fields)
    item = proposal_input(run_fields(asker), fact)
    check_user(asker, [item])
    return await submit(context, principal, pack, item, document.proposal_id if document is not None else None)


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
    return await _run_batches(opened, tenant_id, BATCHES, BATCH)


async def run_job_briefly(opened: Opened, tenant_id: str) -> JobResult:
    """As `run_job`, but only the few captures that have waited the longest."""
    return await _run_batches(opened, tenant_id, 1, BRIEF_BATCH)


async def _run_batches(opened: Opened, tenant_id: str, batches: int, size: int) -> JobResult:
    context, total, more = opened.context, Consolidation(), True
    retry_at: datetime | None = None
    ends_at = time.monotonic() + RUN_SECONDS
    for _ in range(batches):
        try:
            done, more = await consolidate_batch(context, tenant_id, size)
        except ReadersUnavailable as error:
            _report_waiting(tenant_id, error)
            pause = (await context.pack_in_force(tenant_id)).memory_layer.extraction.retry_after
            more, retry_at = False, context.now() + pause
            break
        total = _sum(total, done)
        if not more or time.monotonic() > ends_at:
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
    read = await extract(context, batch, pack)
    for _ in range(_JUDGED_AGAIN):
        # A model that judges texts was asked: what the extractors read stays read.
        with suppress(PairsUnread):
            return await _write(context, tenant_id, batch, pack, read)
    return await _write(context, tenant_id, batch, pack, read)


async def _write(
    context: FabricContext, tenant_id: str, batch: Batch, pack: Pack, read: Reading
) -> tuple[Consolidation, bool]:
    """Decide on what was read in a batch and write it; returns the result, and whether more may wait."""
    async with context.transaction(tenant_id, "writer", under=pack) as tx:
        batch = await lock_batch(tx, context.vault, batch, pack)
        split = split_batch(batch, read.errors, read.by_model, pack, context.now())
        found = read.without_model(one.capture.capture_id for one in split.without_model)
        decision = await _decide(context, tx, split.ready, pack, found, batch)
        entries = decision.entries(tx)
        # INVARIANT: all locks come before the tenant's clock.
        eligible = any(one.auto_eligible for one in entries)
        chosen = await by_policy.choose(tx, decision, entries) if eligible else []
        promoted_now = {entry.draft.candidate.candidate_id for entry, _ in chosen}
        decision = await decision.compare_with_queue(tx, promoted_now)
        if not chosen and not decision.contradicts:
            tx.change_nothing_visible()
        await complete_batch(tx, batch, split)
        at_once = {entry.proposal_id for entry, _ in chosen}
        proposals, refusals = await decision.enqueue_entries(tx, entries, at_once=at_once)
        promoted = await by_policy.promote_chosen(context, tx, decision, entries, chosen) if chosen else []
        late = sorted({one.capture_id for one in refusals if one.reason == candidates.ERASED})
        if late:
            tx.defer("erasure.blank_late", capture_ids=late)
            tx.event_rows.add_blanked("captures", late)
            tx.emit("memory.note", "auto", about="erased_late", captures=late)
    done = Consolidation(
        captures=len(split.ready),
        proposals=tuple(proposals),
        promoted=tuple(promoted),
        refusals=tuple(refusals),
        waiting=sum(one.parked_at is None for one in split.waiting),
        failed=tuple(one.capture.capture_id for one in split.waiting if one.parked_at is not None),
    )
    return done, not batch.last or bool(split.waiting)


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
    comparer: TextComparer | None = None
    if any(one.worth is not None for some in found.values() for _, one in some):
        comparer = await context.comparer(tx, pack)
        found = await worth_knowing(found, comparer.readers, pack)
    follows = batch.follows()
    most = sum(1 + len(found.get(capture.capture_id, ())) for capture in ready)
    ids = iter(candidates.new_ids(tx, most))
    holders = {own_words_holder(capture, pack) for capture in ready if found.get(capture.capture_id)}
    keys = await context.vault.keys(tx, holders, make=True) if holders else {}
    for capture in ready:
        key = keys.get(own_words_holder(capture, pack))
        number = batch.number(capture.capture_id)
        facts, digest = found.get(capture.capture_id, []), key.digest if key else None
        # What was found without the model is decided already.
        late, before = capture.capture_id in batch.late, follows.get(capture.capture_id)
        read = draft_facts(capture, pack, facts, ids, digest, number, before, stated=not late)
        drafts += await candidates.not_proposed_before(tx, context.vault, read) if number > 1 and read else read
    if not drafts:
        return IntakeDecision(context, pack, (), ())
    kept, erased = await candidates.erased_since(tx, context.vault, drafts, batch.erasures)
    comparer = comparer or await context.comparer(tx, pack)
    kept = await with_context(kept, comparer.readers, pack)
    intake = await (await Intake.of(context, tx, pack, kept, comparer=comparer)).lock_scopes(tx, batch.scope_locks)
    decision = await intake.decide_on_memories(tx)
    return replace(decision, refused=(*decision.refused, *erased))
