"""The verbs of audit: the event log, the audit chain over it, and the provenance of a memory."""

from functools import partial
from typing import Annotated

from pydantic import Field, Strict

from muniment.archives import store as archives
from muniment.audit import chain, row_audit
from muniment.audit import provenance_store as trail
from muniment.audit import verify as verification
from muniment.audit.verify import Progress, Verify
from muniment.capture import store as captures
from muniment.capture.read_log import record_reads
from muniment.consent import store as ledger
from muniment.context import FabricContext
from muniment.contradictions import store as contradictions
from muniment.database.row_lists import RowKey
from muniment.database.storage import Transaction
from muniment.errors import NotFound, SealBroken
from muniment.model.chain import Head, Sealed, Verification
from muniment.model.context import Asker, Principal, RunContext
from muniment.model.events import Event, EventType
from muniment.model.fields import Instant, Name
from muniment.model.inputs import PageSize, VerbInput, Whole
from muniment.model.promoted import PromotedMemory
from muniment.model.trail import Trail
from muniment.recall.recall import recall_memory
from muniment.review import store as review
from muniment.standby_reads import primary_beside, reading, retry_on_primary
from muniment.verbs.declaration import verb


@verb("seal", right="work", effect="pass", http="POST /work/seal", shown_as=Sealed, cli="seal")
async def seal(context: FabricContext, tenant_id: str) -> int:
    """Seal the tenant's events in the audit chain; returns how many there were.

    Safe to run twice, concurrently, or to be killed: a batch can only continue the last one.
    """
    if (own := await context.own_key(tenant_id)) is None:
        return 0
    key, sealed = chain.ChainKey(own), 0
    rows_key = await adopt(context, tenant_id)
    while True:
        sweep = None
        if rows_key is not None:
            async with context.transaction(tenant_id, "auditor") as tx:
                sweep = await row_audit.sweep(tx, rows_key)
        # The login that writes batches reads no keys.
        async with context.transaction(tenant_id, "jobs") as tx:
            done = await chain.seal(tx, key, sweep=sweep)
        if done.events == 0 and not done.rows:
            return sealed
        sealed += done.events


async def adopt(context: FabricContext, tenant_id: str) -> RowKey | None:
    """The tenant's audit key; where it has none, make it and list all rows that are there, in one transaction.

    That is the first sealing after an upgrade. It holds the tenant's clock, so that no row is written meanwhile. None
    for a key that was changed, or taken away after the log listed rows: `verify` tells of it.
    """
    try:
        async with context.transaction(tenant_id, "writer") as tx:
            if (known := await context.vault.row_key(tx)) is not None:
                return known
            await tx.tick()
            if await context.vault.row_key(tx) is None and await tx.row("rows.any_list") is None:
                await context.vault.create_row_key(tx)
                async with context.transaction(tenant_id, "auditor") as reading:
                    rows = await row_audit.every_row(reading)
                tx.event_rows.add_hashed(rows)
                tx.emit("memory.note", "auto", about="rows_adopted", rows=len(rows))
        async with context.transaction(tenant_id, "writer") as tx:
            return await context.vault.row_key(tx)
    except SealBroken:
        return None


@verb("chain_head", right="audit", http="GET /chain/head")
async def chain_head(context: FabricContext, auditor: Principal) -> Head:
    """Read the head of the audit chain, to keep it elsewhere; raises `NotFound` when nothing is sealed yet."""
    async with context.transaction(auditor.tenant_id, "auditor") as tx:
        return await chain.head(tx)


@verb("verify", right="audit", effect="read", http="POST /verify", slow=True, standby=True)
async def verify(
    context: FabricContext, auditor: Principal, request: Verify, *, on_progress: Progress | None = None
) -> Verification:
    """Verify that the audit chain is intact and every row is as the log lists it; returns every break.

    With a `head` that was exported earlier it verifies too that this is still in the chain. With a `count` it stops
    after about so many events, and the answer has the `cursor` to continue from. Once it has finished it also says
    what is `below_promise`.
    """
    opening = partial(reading, context, auditor.tenant_id)
    keys = partial(primary_beside, context, auditor.tenant_id)
    async with opening() as tx:
        if tx.lags and not await verification.knows_named(tx, context.vault, request):
            retry_on_primary("behind")
    found = await verification.verify(opening, context.vault, request, on_progress, open_keys=keys)
    if found.breaks:
        retry_on_primary("to_confirm")
    async with opening() as tx:
        row = await tx.row("tenant.clock_bound")
    bound = row["bound"] if row is not None else None
    stated = {
        "clock_bound_s": bound.total_seconds() if bound is not None else None,
        # The last thing: while anything is below the promise no transaction is opened.
        "below_promise": await context.storage.below_promise() if found.cursor is None else (),
    }
    return found.model_copy(update=stated)


class Events(VerbInput):
    """Which events of the log."""

    after: Annotated[int, Whole(0, 2**62)] = Field(0, description="the number of the last event that is known")
    limit: PageSize = Field(100, description="the number of entries at most")
    types: Annotated[frozenset[EventType], Field(min_length=1, fail_fast=True)] | None = Field(
        None, description="only events of these types"
    )
    about: Name | None = Field(None, description="events that name this id")
    latest: Annotated[bool, Strict()] = Field(
        False, description="the last first; `after` is the number that they come before"
    )
    since: Instant | None = Field(None, description="only events from this moment on")
    until: Instant | None = Field(None, description="only events from before this moment")


@verb("events", right="audit", http="GET /events", page_key="seq", page_limit=100, custom_route=True, standby=True)
async def events(context: FabricContext, auditor: Principal, request: Events) -> list[Event]:
    """List the tenant's events after a sequence number: all, those of some types, or those `about` an id.

    Of an event with several `items` those about the id are listed.
    With `latest` the last come first, and `after` is the number that they come before. A page ends with a whole
    transaction. `since` and `until` narrow them to a range of time.
    """
    async with reading(context, auditor.tenant_id, seen=request.after) as tx:
        after = await _page_begin(tx, request)
        if request.types is None and request.about is None and not request.latest:
            found = await trail.events_after(tx, after, request.limit)
        else:
            types = sorted(request.types) if request.types is not None else None
            found = await trail.events_found(
                tx, after, request.limit, types=types, about=request.about, latest=request.latest
            )
    begin, end = request.since, request.until
    return [one for one in found if (begin is None or one.at >= begin) and (end is None or one.at < end)]


async def _page_begin(tx: Transaction, request: Events) -> int:
    """The number that the page comes after, or before with `latest`: the caller's, or that of an end of the range."""
    if request.latest and request.until is not None:
        first_after = await trail.number_at(tx, request.until) + 1
        return min(request.after or first_after, first_after)
    if not request.latest and request.since is not None:
        return max(request.after, await trail.number_at(tx, request.since, before=True))
    return request.after


class MemoryId(VerbInput):
    """A memory."""

    memory_id: Name


@verb("get", right="read_memory", run_right="recall", http="GET /memories/{memory_id}")
async def get(context: FabricContext, asker: Asker, request: MemoryId) -> PromotedMemory:
    """Read a memory. A run gets what it could recall now, a reviewer or auditor any memory of the tenant.

    Raises `NotFound`, for another tenant's memory and for one that may not be seen as for one that does not exist.
    """
    if not isinstance(asker, RunContext):
        async with context.transaction(asker.tenant_id, "auditor") as tx:
            return await trail.memory(tx, context.vault, request.memory_id)
    record = await recall_memory(context, asker, request.memory_id)
    if record is None:
        raise NotFound("no such memory", field="memory_id")
    async with context.transaction(asker.tenant_id, "recall") as tx:
        found = await trail.memory(tx, context.vault, request.memory_id)
    # A run is told of a contradiction with what it sees, not with a memory or proposal hidden from it.
    return found.model_copy(update={"contradiction": record.contradiction})


@verb("trail", right="read_memory", http="GET /memories/{memory_id}/trail", cli="trail")
async def read_trail(context: FabricContext, reader: Principal, request: MemoryId) -> Trail:
    """Show the provenance of a memory, and the recalls and prompts that used it.

    Its proposals with every verdict, its candidates, its capture and its consent; the latest uses come first. The
    reading of the capture is recorded. Raises `NotFound`.
    """
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        vault, memory_id = context.vault, request.memory_id
        memory = await trail.memory(tx, vault, memory_id)
        line = await trail.candidates(tx, vault, memory.candidate_id)
        ids = await trail.proposals_of(tx, [candidate.candidate_id for candidate in line])
        proposals = tuple(loaded.proposal for loaded in await review.load_many(tx, vault, ids))
        capture, archived = await captures.find(tx, vault, memory.capture_id, context.archives)
        # A capture goes only to an archive, and from there when that is dropped.
        archive = await archives.archive_of(tx, memory.capture_id) if capture is None else None
        seqs = {memory.born_seq, *(v.seq for p in proposals for v in p.verdicts), *(p.seq for p in proposals)}
        seqs |= {n for n in (memory.dead_seq, capture.seq if capture else None) if n is not None}
        consent = await ledger.one(tx, vault, memory.consent_id) if memory.consent_id else None
        disputes = await contradictions.listed(tx, memory_id=memory_id)
        about = {memory_id, memory.capture_id, *ids, *(one.contradiction_id for one in disputes)}
        found = Trail(
            memory=memory,
            proposals=proposals,
            candidates=line,
            capture=capture,
            archive=archive,
            consent=consent,
            contradictions=tuple(disputes),
            recalls=await trail.recalls_with(tx, memory_id),
            recalled=await trail.recalled(tx, memory_id),
            prompts=await trail.prompts_with(tx, memory_id),
            events=await trail.events_at(tx, seqs, about),
        )
    if capture is not None and capture.content is not None:
        await record_reads(context, reader, {capture.capture_id: archived})
    return found
