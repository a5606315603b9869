"""Consolidation: extractors read the captures that wait; what they find passes the gates into the queue (JOB-1).

Safe to run twice, at once, or to be killed: each batch is one transaction with its position in the log.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import anyio
from anyio.lowlevel import checkpoint

from muniment.candidates import backlog
from muniment.candidates import store as candidates
from muniment.candidates.backlog import Failure
from muniment.candidates.drafts import Draft, Found, draft_facts
from muniment.candidates.extractors import Extractor, extractors_of
from muniment.candidates.intake import Intake, IntakeDecision
from muniment.context import FabricContext, retry_on_pack_change
from muniment.database.storage import Transaction
from muniment.erasure import capture_names
from muniment.erasure.store import block_erasures
from muniment.errors import ExtractorFailed
from muniment.model.candidate import Consolidation
from muniment.model.capture import Capture, holder_of
from muniment.pack import Pack

BATCH = 500
# Calls of extractors that run at the same time.
CONCURRENT = 8
# Captures handled between two event-loop checkpoints.
_SLICE = 50


@retry_on_pack_change
async def consolidate_batch(context: FabricContext, tenant_id: str, count: int = BATCH) -> Consolidation | None:
    """Consolidate one batch; None when nothing waits, an empty result if another process was quicker."""
    async with context.transaction(tenant_id, "writer") as tx:
        if await context.vault.tenant(tx) is None:
            return None
        batch = await backlog.read(tx, context.vault, count)
    if batch is None:
        return None
    pack = await context.pack_in_force(tenant_id)
    found, errors = await _extract(context, batch.captures, pack)
    async with context.transaction(tenant_id, "writer", under=pack) as tx:
        batch = await backlog.lock(tx, batch)
        ready, put_off = backlog.split(batch, errors, pack, context.now())
        decision = await _decide(context, tx, ready, pack, found, batch)
        backlog.complete(tx, batch, [one.capture_id for one in ready], put_off)
        proposals, refusals = await decision.enqueue(tx)
        late = sorted({one.capture_id for one in refusals if one.reason == capture_names.ERASED})
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
    batch: backlog.Batch,
) -> IntakeDecision:
    drafts: list[Draft] = []
    most = sum(1 + len(found.get(capture.capture_id, ())) for capture in ready)
    ids = iter(candidates.new_ids(tx, most))
    holders = {holder_of(capture.subject, capture.user_id) for capture in ready if found.get(capture.capture_id)}
    keys = await context.vault.keys(tx, holders, make=True) if holders else {}
    for capture in ready:
        key = keys.get(holder_of(capture.subject, capture.user_id))
        number = batch.number(capture.capture_id)
        read = draft_facts(capture, pack, found.get(capture.capture_id, []), ids, key, number)
        drafts += await candidates.not_proposed_before(tx, context.vault, read) if number > 1 and read else read
    if not drafts:
        return IntakeDecision(context, pack, (), ())
    kept, erased = await capture_names.erased_since(tx, context.vault, drafts, batch.erasures)
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
