"""Consolidation: captures that wait are read by the extractors, pass the gates and enter the queue (JOB-1).

Safe to run twice, at once, or to be killed: each batch is one transaction with its place in the log.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import anyio
from anyio.lowlevel import checkpoint

from muniment.candidates import backlog as waiting
from muniment.candidates import store as candidates
from muniment.candidates.backlog import Failure
from muniment.candidates.extractors import Extractor, extractors_of
from muniment.candidates.intake import Admission, Decided
from muniment.candidates.store import Draft, Found
from muniment.context import FabricContext, retry_on_pack_change
from muniment.database import cursors
from muniment.database.storage import Transaction
from muniment.erasure import capture_names as naming
from muniment.erasure.store import hold_off_erasure
from muniment.errors import ExtractorFailed, NotPromotable
from muniment.model.candidate import Consolidation
from muniment.model.capture import Capture, holder_of
from muniment.pack import Pack
from muniment.promotion.promote import promote_proposal, promote_undisputed
from muniment.review import breakers
from muniment.review import store as review
from muniment.review.regate import regate
from muniment.tracing import spanned

AT_ONCE = 500
# Extractors that ask somebody else do so for so many captures at once.
ASKED_AT_ONCE = 8
PROMOTED_AT_ONCE = 200
_SLICE = 50
# The cursor before which nothing is left to policy to promote.
_SETTLED = "promote"

Progress = Callable[[Consolidation], None]


@spanned("consolidate")
async def consolidate(context: FabricContext, tenant_id: str, on_progress: Progress | None = None) -> Consolidation:
    """All that waits, and then what policy alone may promote."""
    total = Consolidation()
    while (done := await consolidate_some(context, tenant_id)) is not None:
        total = _sum(total, done)
        if on_progress is not None and done != Consolidation():
            on_progress(total)
    return _sum(total, Consolidation(promoted=await promote_by_policy(context, tenant_id)))


@retry_on_pack_change
async def consolidate_some(context: FabricContext, tenant_id: str, count: int = AT_ONCE) -> Consolidation | None:
    """One batch; None when nothing waits. An empty one if another was quicker."""
    async with context.transaction(tenant_id, "writer") as tx:
        if await context.vault.tenant(tx) is None:
            return None
        batch = await waiting.read(tx, context.vault, count)
    if batch is None:
        return None
    pack = await context.pack_in_force(tenant_id)
    found, errors = await _extracted(context, batch.captures, pack)
    async with context.transaction(tenant_id, "writer", under=pack) as tx:
        taken = await waiting.take(tx, batch)
        ready, put_off = waiting.in_order(taken, errors, pack, context.now())
        decided = await _decided(context, tx, ready, pack, found, taken)
        waiting.settle(tx, taken, [one.capture_id for one in ready], put_off)
        proposals, refusals = await decided.enter(tx)
        late = sorted({one.capture_id for one in refusals if one.reason == naming.ERASED})
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


async def _decided(
    context: FabricContext,
    tx: Transaction,
    ready: Sequence[Capture],
    pack: Pack,
    found: dict[str, list[Found]],
    batch: waiting.Batch,
) -> Decided:
    drafts: list[Draft] = []
    some = sum(1 + len(found.get(capture.capture_id, ())) for capture in ready)
    ids = iter(candidates.new_ids(tx, some))
    spoken = {holder_of(capture.subject, capture.user_id) for capture in ready if found.get(capture.capture_id)}
    keys = await context.vault.keys(tx, spoken, make=True) if spoken else {}
    for capture in ready:
        key = keys.get(holder_of(capture.subject, capture.user_id))
        number = batch.number(capture.capture_id)
        read = candidates.drafts(capture, pack, found.get(capture.capture_id, []), ids, key, number)
        drafts += await candidates.not_proposed_before(tx, context.vault, read) if number > 1 and read else read
    if not drafts:
        return Decided(context, pack, (), ())
    kept, gone = await naming.erased_since(tx, context.vault, drafts, batch.erasures)
    decided = await (await Admission.of(context, tx, pack, kept)).decided(tx)
    return replace(decided, refused=(*decided.refused, *gone))


async def _extracted(
    context: FabricContext, captures: Sequence[Capture], pack: Pack
) -> tuple[dict[str, list[Found]], dict[str, Failure]]:
    """What the extractors read in each capture; and the reason of each that failed. Nothing is held meanwhile."""
    found: dict[str, list[Found]] = {}
    errors: dict[str, Failure] = {}
    asked: list[tuple[Capture, Extractor]] = []
    extractors, within = extractors_of(pack, context.models), pack.memory_layer.extraction.timeout.total_seconds()
    for place, capture in enumerate(captures, 1):
        if capture.content is not None and capture.content.fact is None:
            asked += [(capture, extractor) for extractor in extractors if extractor.reads(capture)]
        if place % _SLICE == 0:
            await checkpoint()

    read: dict[tuple[str, str], list[Found]] = {}

    async def ask(capture: Capture, extractor: Extractor) -> None:
        try:
            with anyio.fail_after(within):
                seen = await extractor.extract(capture, _Answers(context, capture))
            read[capture.capture_id, extractor.name] = [(extractor.name, one) for one in seen]
        except ExtractorFailed as error:
            errors[capture.capture_id] = Failure(f"{extractor.name}: {error.message}", error.later)
        except TimeoutError:
            errors[capture.capture_id] = Failure(f"{extractor.name}: no answer within {within:g} s")
        except (Exception, SystemExit) as error:
            # Whatever an extractor does, it loses nothing (CAN-3). What its error says may be content: its name is not.
            errors[capture.capture_id] = Failure(f"{extractor.name}: {type(error).__name__}")

    for first in range(0, len(asked), ASKED_AT_ONCE):
        async with anyio.create_task_group() as tasks:
            for capture, extractor in asked[first : first + ASKED_AT_ONCE]:
                tasks.start_soon(ask, capture, extractor)
    # In the order of the extractors, not of their answers. One that gave neither facts nor an error cancelled itself.
    for capture, extractor in asked:
        if (capture.capture_id, extractor.name) not in read:
            errors.setdefault(capture.capture_id, Failure(f"{extractor.name}: cancelled"))
        found.setdefault(capture.capture_id, []).extend(read.get((capture.capture_id, extractor.name), ()))
    return found, errors


@dataclass(frozen=True)
class _Answers:
    """What a model answered about a capture, sealed under the key of the capture's holder."""

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
            # What was erased while the model was thinking stays erased, and a key that is gone is not made again.
            await hold_off_erasure(tx)
            if not await tx.rows("candidate.still_there", capture_id=self.capture.capture_id):
                return
            if (key := (await self.context.vault.keys(tx, [holder], skip_broken=True)).get(holder)) is not None:
                sealed = key.seal("extractions.answer", self._row(extractor), answer)
                given = {"capture_id": self.capture.capture_id, "extractor": extractor}
                await tx.do("candidate.keep_answer", **given, holder=holder, answer=sealed)

    async def spend(self, extractor: str, most: int) -> bool:
        async with self.context.transaction(self.capture.tenant_id, "writer") as tx:
            day = self.context.now().date()
            return bool(await tx.rows("candidate.spend", extractor=extractor, day=day, most=most))

    def _row(self, extractor: str) -> str:
        return f"{self.capture.capture_id}/{extractor}"


async def promote_by_policy(context: FabricContext, tenant_id: str) -> tuple[str, ...]:
    """What policy alone may promote and has not yet: what has nothing around it together, the rest one by one."""
    promoted: list[str] = []
    async with context.transaction(tenant_id, "auditor") as tx:
        eligible, settled = await review.auto_promotable(tx, 10_000, await breakers.suspended(tx))
    if settled is not None:
        async with context.transaction(tenant_id, "writer") as tx:
            held = await cursors.lock(tx, _SETTLED)
            # Another may have been here meanwhile, and further on.
            if settled > (held["seq"], held["place"]):
                cursors.move(tx, _SETTLED, *settled)
    for first in range(0, len(eligible), PROMOTED_AT_ONCE):
        part = eligible[first : first + PROMOTED_AT_ONCE]
        done = await _promote_together(context, tenant_id, part)
        promoted += done.values()
        for proposal_id in part:
            if proposal_id not in done:
                with suppress(NotPromotable):  # it stays pending, and stops no other
                    if (memory_id := await _promote_one(context, tenant_id, proposal_id)) is not None:
                        promoted.append(memory_id)
    return tuple(promoted)


@retry_on_pack_change
async def _promote_together(context: FabricContext, tenant_id: str, proposal_ids: Sequence[str]) -> dict[str, str]:
    pack = await context.pack_in_force(tenant_id)
    async with context.transaction(tenant_id, "writer", under=pack) as tx:
        await review.lock(tx, proposal_ids)
        loaded = await review.load_many(tx, context.vault, proposal_ids, skip_broken=True)
        waits = [one for one in loaded if one.proposal.status == "pending"]
        # What was made under another pack passes the gates again, alone.
        here = [one for one in waits if one.proposal.pack == pack.ref]
        return await promote_undisputed(context, tx, here, pack, None, None) if here else {}


@retry_on_pack_change
async def _promote_one(context: FabricContext, tenant_id: str, proposal_id: str) -> str | None:
    pack = await context.pack_in_force(tenant_id)
    async with context.transaction(tenant_id, "writer", under=pack) as tx:
        loaded = await review.load(tx, context.vault, proposal_id, locked=True)
        if loaded.proposal.status != "pending" or not (await regate(context, tx, loaded, pack)).stands:
            return None
        return await promote_proposal(context, tx, loaded, pack, None)


def _sum(one: Consolidation, other: Consolidation) -> Consolidation:
    return Consolidation(
        captures=one.captures + other.captures,
        proposals=one.proposals + other.proposals,
        promoted=one.promoted + other.promoted,
        refusals=one.refusals + other.refusals,
        waiting=one.waiting + other.waiting,
        failed=one.failed + other.failed,
    )
