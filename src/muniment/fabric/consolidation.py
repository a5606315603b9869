"""Consolidation: captures that wait are read by the extractors, pass the gates and enter the queue (JOB-1).

Safe to run twice, at once, or to be killed: each batch is one transaction with its place in the log.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import anyio
from anyio.lowlevel import checkpoint

from muniment.errors import ExtractorFailed, NotPromotable
from muniment.extract import Extractor, extractors_of
from muniment.fabric.admission import Admission, Decided
from muniment.fabric.desk import Desk, decided_again
from muniment.fabric.promotion import promote_proposal, promote_undisputed
from muniment.fabric.regating import regate
from muniment.governance import breakers, cursors
from muniment.governance.erasure import hold_off_erasure
from muniment.model.candidate import Consolidation
from muniment.model.capture import Capture, holder_of
from muniment.pack import Pack
from muniment.pipeline import candidate as candidates
from muniment.pipeline import naming, review, waiting
from muniment.pipeline.candidate import Draft, Found
from muniment.pipeline.waiting import Failure
from muniment.storage.session import Transaction
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
async def consolidate(desk: Desk, tenant_id: str, on_progress: Progress | None = None) -> Consolidation:
    """All that waits, and then what policy alone may promote."""
    total = Consolidation()
    while (done := await consolidate_some(desk, tenant_id)) is not None:
        total = _sum(total, done)
        if on_progress is not None and done != Consolidation():
            on_progress(total)
    return _sum(total, Consolidation(promoted=await promote_by_policy(desk, tenant_id)))


@decided_again
async def consolidate_some(desk: Desk, tenant_id: str, count: int = AT_ONCE) -> Consolidation | None:
    """One batch; None when nothing waits. An empty one if another was quicker."""
    async with desk.transaction(tenant_id, "writer") as tx:
        if await desk.vault.tenant(tx) is None:
            return None
        batch = await waiting.read(tx, desk.vault, count)
    if batch is None:
        return None
    pack = await desk.pack_in_force(tenant_id)
    found, errors = await _extracted(desk, batch.captures, pack)
    async with desk.transaction(tenant_id, "writer", under=pack) as tx:
        taken = await waiting.take(tx, batch)
        ready, put_off = waiting.in_order(taken, errors, pack, desk.now())
        decided = await _decided(desk, tx, ready, pack, found, taken)
        waiting.settle(tx, taken, [one.capture_id for one in ready], put_off)
        proposals, refusals = await decided.enter(tx)
        late = sorted({one.capture_id for one in refusals if one.reason == naming.ERASED})
        if late:
            tx.later("erasure.blank_late", capture_ids=late)
            tx.told.lost("captures", late)
            tx.emit("memory.note", "auto", about="erased_late", captures=late)
    return Consolidation(
        captures=len(ready),
        proposals=tuple(proposals),
        refusals=tuple(refusals),
        waiting=sum(one.parked_at is None for one in put_off),
        failed=tuple(one.capture.capture_id for one in put_off if one.parked_at is not None),
    )


async def _decided(
    desk: Desk,
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
    keys = await desk.vault.keys(tx, spoken, make=True) if spoken else {}
    for capture in ready:
        key = keys.get(holder_of(capture.subject, capture.user_id))
        number = batch.number(capture.capture_id)
        read = candidates.drafts(capture, pack, found.get(capture.capture_id, []), ids, key, number)
        drafts += await candidates.not_proposed_before(tx, desk.vault, read) if number > 1 and read else read
    if not drafts:
        return Decided(desk, pack, (), ())
    kept, gone = await naming.erased_since(tx, desk.vault, drafts, batch.erasures)
    decided = await (await Admission.of(desk, tx, pack, kept)).decided(tx)
    return replace(decided, refused=(*decided.refused, *gone))


async def _extracted(
    desk: Desk, captures: Sequence[Capture], pack: Pack
) -> tuple[dict[str, list[Found]], dict[str, Failure]]:
    """What the extractors read in each capture; and the reason of each that failed. Nothing is held meanwhile."""
    found: dict[str, list[Found]] = {}
    errors: dict[str, Failure] = {}
    asked: list[tuple[Capture, Extractor]] = []
    extractors, within = extractors_of(pack, desk.models), pack.memory_layer.extraction.timeout.total_seconds()
    for place, capture in enumerate(captures, 1):
        if capture.content is not None and capture.content.fact is None:
            asked += [(capture, extractor) for extractor in extractors if extractor.reads(capture)]
        if place % _SLICE == 0:
            await checkpoint()

    read: dict[tuple[str, str], list[Found]] = {}

    async def ask(capture: Capture, extractor: Extractor) -> None:
        try:
            with anyio.fail_after(within):
                seen = await extractor.extract(capture, _Answers(desk, capture))
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

    desk: Desk
    capture: Capture

    async def get(self, extractor: str) -> bytes | None:
        async with self.desk.transaction(self.capture.tenant_id, "writer") as tx:
            row = await tx.row("candidate.answer", capture_id=self.capture.capture_id, extractor=extractor)
            if row is None:
                return None
            keys = await self.desk.vault.keys(tx, [row["holder"]])
            return keys[row["holder"]].open("extractions.answer", self._row(extractor), row["answer"])

    async def put(self, extractor: str, answer: bytes) -> None:
        holder = holder_of(self.capture.subject, self.capture.user_id)
        async with self.desk.transaction(self.capture.tenant_id, "writer") as tx:
            # What was erased while the model was thinking stays erased, and a key that is gone is not made again.
            await hold_off_erasure(tx)
            if not await tx.rows("candidate.still_there", capture_id=self.capture.capture_id):
                return
            if (key := (await self.desk.vault.keys(tx, [holder], skip_broken=True)).get(holder)) is not None:
                sealed = key.seal("extractions.answer", self._row(extractor), answer)
                given = {"capture_id": self.capture.capture_id, "extractor": extractor}
                await tx.do("candidate.keep_answer", **given, holder=holder, answer=sealed)

    async def spend(self, extractor: str, most: int) -> bool:
        async with self.desk.transaction(self.capture.tenant_id, "writer") as tx:
            day = self.desk.now().date()
            return bool(await tx.rows("candidate.spend", extractor=extractor, day=day, most=most))

    def _row(self, extractor: str) -> str:
        return f"{self.capture.capture_id}/{extractor}"


async def promote_by_policy(desk: Desk, tenant_id: str) -> tuple[str, ...]:
    """What policy alone may promote and has not yet: what has nothing around it together, the rest one by one."""
    promoted: list[str] = []
    async with desk.transaction(tenant_id, "auditor") as tx:
        eligible, settled = await review.auto_promotable(tx, 10_000, await breakers.suspended(tx))
    if settled is not None:
        async with desk.transaction(tenant_id, "writer") as tx:
            held = await cursors.take(tx, _SETTLED)
            # Another may have been here meanwhile, and further on.
            if settled > (held["seq"], held["place"]):
                cursors.move(tx, _SETTLED, *settled)
    for first in range(0, len(eligible), PROMOTED_AT_ONCE):
        part = eligible[first : first + PROMOTED_AT_ONCE]
        done = await _promote_together(desk, tenant_id, part)
        promoted += done.values()
        for proposal_id in part:
            if proposal_id not in done:
                with suppress(NotPromotable):  # it stays pending, and stops no other
                    if (memory_id := await _promote_one(desk, tenant_id, proposal_id)) is not None:
                        promoted.append(memory_id)
    return tuple(promoted)


@decided_again
async def _promote_together(desk: Desk, tenant_id: str, proposal_ids: Sequence[str]) -> dict[str, str]:
    pack = await desk.pack_in_force(tenant_id)
    async with desk.transaction(tenant_id, "writer", under=pack) as tx:
        await review.lock(tx, proposal_ids)
        loaded = await review.load_many(tx, desk.vault, proposal_ids, skip_broken=True)
        waits = [one for one in loaded if one.proposal.status == "pending"]
        # What was made under another pack passes the gates again, alone.
        here = [one for one in waits if one.proposal.pack == pack.ref]
        return await promote_undisputed(desk, tx, here, pack, None, None) if here else {}


@decided_again
async def _promote_one(desk: Desk, tenant_id: str, proposal_id: str) -> str | None:
    pack = await desk.pack_in_force(tenant_id)
    async with desk.transaction(tenant_id, "writer", under=pack) as tx:
        loaded = await review.load(tx, desk.vault, proposal_id, locked=True)
        if loaded.proposal.status != "pending" or not (await regate(desk, tx, loaded, pack)).stands:
            return None
        return await promote_proposal(desk, tx, loaded, pack, None)


def _sum(one: Consolidation, other: Consolidation) -> Consolidation:
    return Consolidation(
        captures=one.captures + other.captures,
        proposals=one.proposals + other.proposals,
        promoted=one.promoted + other.promoted,
        refusals=one.refusals + other.refusals,
        waiting=one.waiting + other.waiting,
        failed=one.failed + other.failed,
    )
