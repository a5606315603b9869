"""Papers: all that a memory rests on and all that used it, in one transaction; and the log of all that was done."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, Strict

from muniment.archives import store as archives
from muniment.audit import provenance_store as trail
from muniment.consent import store as ledger
from muniment.context import FabricContext
from muniment.contradictions import store as contradictions
from muniment.errors import NotFound
from muniment.model.context import Asker, RunContext
from muniment.model.events import Event, EventType
from muniment.model.fields import Artifact, Name, build
from muniment.model.promoted import PromotedMemory
from muniment.model.trail import Trail
from muniment.recall import recall as recall_handler
from muniment.review import store as review
from muniment.verbs import arguments as checks


class _Wanted(Artifact):
    types: Annotated[frozenset[EventType], Field(min_length=1, fail_fast=True)] | None = None
    about: Name | None = None
    latest: Annotated[bool, Strict()] = False


async def log(
    context: FabricContext,
    asker: Asker,
    after: int,
    limit: int,
    types: Sequence[EventType] | None,
    about: str | None,
    latest: bool,
) -> list[Event]:
    """A page of the tenant's event log."""
    start, count = checks.whole_number(after, "after", least=0, most=2**62), checks.page_size(limit)
    given = build(_Wanted, {"types": types, "about": about, "latest": latest})
    await context.authorise(asker, "audit")
    async with context.transaction(asker.tenant_id, "auditor") as tx:
        if given == _Wanted():
            return await trail.events_after(tx, start, count)
        named = sorted(given.types) if given.types is not None else None
        return await trail.events_found(tx, start, count, types=named, about=given.about, latest=given.latest)


async def one(context: FabricContext, asker: Asker, memory_id: str) -> PromotedMemory:
    """One memory, to a run if it could recall it now; raises `NotFound`."""
    if isinstance(asker, RunContext):
        await context.authorise(asker, "recall")
        record = await recall_handler.recalled(context, asker, memory_id)
        if record is None:
            raise NotFound("no such memory", field="memory_id")
        async with context.transaction(asker.tenant_id, "recall") as tx:
            found = await trail.memory(tx, context.vault, memory_id)
        # A run is told of a contradiction with what it sees, not with a memory or proposal hidden from it.
        return found.model_copy(update={"contradiction": record.contradiction})
    await context.authorise(asker, "read_memory")
    async with context.transaction(asker.tenant_id, "auditor") as tx:
        return await trail.memory(tx, context.vault, memory_id)


async def of_memory(context: FabricContext, asker: Asker, memory_id: str) -> Trail:
    """From a memory back to its capture, and forward; raises `NotFound`."""
    async with context.transaction(asker.tenant_id, "auditor") as tx:
        vault = context.vault
        memory = await trail.memory(tx, vault, memory_id)
        line = await trail.candidates(tx, vault, memory.candidate_id)
        ids = await trail.proposals_of(tx, [candidate.candidate_id for candidate in line])
        proposals = tuple(loaded.proposal for loaded in await review.load_many(tx, vault, ids))
        capture = await trail.capture(tx, vault, memory.capture_id, context.archives)
        # A capture goes only to an archive, and from there when that is dropped.
        archive = await archives.archive_of(tx, memory.capture_id) if capture is None else None
        seqs = {
            memory.born_seq,
            *(v.seq for p in proposals for v in p.verdicts),
            *(p.seq for p in proposals),
        }
        seqs |= {n for n in (memory.dead_seq, capture.seq if capture else None) if n is not None}
        consent = await ledger.one(tx, vault, memory.consent_id) if memory.consent_id else None
        return Trail(
            memory=memory,
            proposals=proposals,
            candidates=line,
            capture=capture,
            archive=archive,
            consent=consent,
            contradictions=tuple(await contradictions.listed(tx, memory_id=memory_id)),
            recalls=await trail.recalls_with(tx, memory_id),
            recalled=await trail.recalled(tx, memory_id),
            prompts=await trail.prompts_with(tx, memory_id),
            events=await trail.events_at(tx, seqs, {memory_id, *(p.proposal_id for p in proposals)}),
        )
