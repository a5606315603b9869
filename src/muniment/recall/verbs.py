"""The verbs of recall: recall, compile, explain, replay; the recorded recalls; and the tenant's memories to browse."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from psycopg.types.json import Jsonb
from pydantic import Field

from muniment.context import FabricContext, RecallPacks
from muniment.database import cursors
from muniment.database.rows import provenance_of
from muniment.database.storage import LATEST, Row, Transaction
from muniment.errors import InvalidInput
from muniment.language.embedding.tokenizers import Tokenizer, builtin_tokenizer, tokenizer
from muniment.model.browse import Graph, MemoryChanges, MemorySummary, Turn, Wanted
from muniment.model.compiled import Compiled, CompiledMemory, WriteNotice
from muniment.model.context import Asker, Principal, RunContext
from muniment.model.explanation import Explanation, FilterVerdict, Replay
from muniment.model.fields import AsOf, Ceid, Instant, Name, Query, Tier, WriteClass
from muniment.model.ids import first_id, make_id
from muniment.model.inputs import (
    CompileFields,
    CompileInput,
    ExplainInput,
    Listing,
    RecallFields,
    RecallInput,
    VerbInput,
)
from muniment.model.proposal import status_of
from muniment.model.recall import Recall, RecallDetails, RecallSummary, Returned
from muniment.pack.combined import replay_horizon
from muniment.recall import explain as explaining
from muniment.recall import recall as recalling
from muniment.recall.browse_store import FILTERS, MemoryBrowser
from muniment.recall.compiling import compile_memory
from muniment.recall.explain import RecordedRecall
from muniment.recall.past import point_in_time
from muniment.recall.recall import view_now
from muniment.recall.rules import View, filter_verdicts, visibility_of
from muniment.recall.search import PointInTime, Request, filters
from muniment.standby_reads import reading
from muniment.tracing import with_span
from muniment.verbs.declaration import verb

MOST_NOTICES = 100
# No index leads from a memory or an agent to its recalls: so many of the latest are looked through.
LOOKED_THROUGH = 20_000


@verb("recall", right="recall", effect="read", http="POST /recall", positional=("query",), keywords=RecallFields)
async def recall(context: FabricContext, run: RunContext, request: RecallInput) -> Recall:
    """Recall what this run may know: promoted memory through every filter, the most relevant to the query first.

    Without a query the most important come first. It can be narrowed to `tiers`, `classes` and `entities`, with those
    one or two `hops` away in the entity graph; `as_of` asks about a past moment. The pack's `max_recalls` bounds
    `limit`; what was cut is counted in `omitted`. Raises `HistoryCollected` for a moment beyond the replay horizon.
    """
    return await recalling.recall(context, run, request)


@verb("compile", right="recall", effect="read", http="POST /compile", positional=("query",), keywords=CompileFields)
@with_span("compile")
async def compile_memories(context: FabricContext, run: RunContext, request: CompileInput) -> CompiledMemory:
    """Compile what this run may know into the memory section of a prompt, within `token_budget` tokens.

    `format` is `markdown`, `xml`, `json` or `messages`; `tokenizer` counts the tokens (`wordllama`,
    `tiktoken:<name>`, `file:<path>`, `characters`; no file over HTTP). Memory is data there: it cannot leave its block.
    Narrowed like a recall, and recorded with what went in.
    """
    # Compiled by a pure function (REC-11); what went in is recorded (REC-8).
    counted: Tokenizer = tokenizer(request.tokenizer) if request.tokenizer is not None else builtin_tokenizer()
    answer = await recalling.recall(context, run, request)
    notices, told_seq, seq = await _own_writes(context, run)
    compiled = compile_memory(
        answer.records,
        answer.low_confidence,
        answer.conflicts,
        token_budget=request.token_budget,
        tokens=counted,
        format=request.format,
        notices=notices,
    )
    async with context.transaction(run.tenant_id, "recall") as tx:
        return _record_compiled(tx, run, answer, compiled, told_seq, seq)


def _record_compiled(
    tx: Transaction, run: RunContext, answer: Recall, compiled: Compiled, told_seq: int, seq: int
) -> CompiledMemory:
    """Record, with the commit, which memories of a recall went into a prompt, in which blocks (REC-8).

    `told_seq` is the sequence up to which the run has been told of its own proposals, `seq` the tenant's when they
    were read.
    """
    compile_id = make_id("cmp", tx.now)
    tx.defer(
        "recall.compiled",
        compile_id=compile_id,
        recall_id=answer.recall_id,
        agent_id=run.agent_id,
        run_id=run.run_id,
        token_budget=compiled.budget.token_budget,
        tokens=compiled.budget.used,
        format=compiled.format,
        tokenizer=compiled.tokenizer,
        blocks=Jsonb([entry.model_dump(mode="json") for entry in compiled.manifest.entries]),
        memory_ids=list(compiled.memory_ids),
        left_out=[memory_id for left in compiled.budget.left_out for memory_id in left.memory_ids],
        told_seq=told_seq,
        seq=seq,
        digest=compiled.digest,
    )
    taken = {name: getattr(answer, name) for name in ("recall_id", "as_of", "omitted", "approximate", "degraded")}
    return CompiledMemory(**dict(compiled), **taken, compile_id=compile_id, at=tx.now)


async def _own_writes(context: FabricContext, run: RunContext) -> tuple[tuple[WriteNotice, ...], int, int]:
    """What the run itself proposed since it was last told: id, class, status, no content (REC-12).

    Also up to which sequence that is, and the tenant's own. More than fit come with the next compile.
    """
    async with context.transaction(run.tenant_id, "auditor") as tx:
        whose = {"run_id": run.run_id, "agent_id": run.agent_id, "user_id": run.user_id}
        rows, clock = await tx.gather(
            ("recall.own_proposals", {**whose, "count": MOST_NOTICES}), ("tenant.clock", dict[str, Any]())
        )
    notices = tuple(
        WriteNotice(proposal_id=row["proposal_id"], write_class=row["class"], status=status_of(tuple(row["actions"])))
        for row in rows
    )
    return notices, max((row["seq"] for row in rows), default=0), clock[0]["seq"] if clock else 0


@verb(
    "explain", right="read_memory", run_right="recall", effect="read", http="POST /explain", positional=(), retry=True
)
async def explain(context: FabricContext, asker: Asker, request: ExplainInput) -> Explanation:
    """Explain why a memory was visible, or which filters hid it: in a recorded recall, at a past moment, or now.

    A run asks about what it sees itself and about its own recalls; a reviewer or auditor about any recall, or any
    `run`. Raises `NotFound` for what the caller may not know of, exactly as for what does not exist.
    """
    return await explaining.explain(context, asker, request)


class RecallId(VerbInput):
    """A recorded recall."""

    recall_id: Name


@verb("replay", right="audit", effect="read", http="POST /recalls/{recall_id}/replay")
async def replay(context: FabricContext, auditor: Principal, request: RecallId) -> Replay:
    """Run a recorded recall again as of its time; returns whether the result is the same, and if not, why."""
    return await explaining.replay(context, auditor, request.recall_id)


class RecallFilters(VerbInput):
    """What `recalls.list` can be narrowed to."""

    user_id: Name | None = Field(None, description="the end user it was for")
    run_id: Name | None = None
    agent_id: Name | None = None
    memory_id: Name | None = Field(None, description="a memory that it returned")
    since: Instant | None = Field(None, description="recalled at that moment or later")
    until: Instant | None = Field(None, description="recalled before that moment")


class ListRecalls(Listing, RecallFilters):
    """Which recalls to list."""


@verb(
    "recalls.list",
    right="read_memory",
    http="GET /recalls",
    keywords=RecallFilters,
    page_key="recall_id",
    standby=True,
)
async def list_recalls(context: FabricContext, reader: Principal, request: ListRecalls) -> list[RecallSummary]:
    """List the recorded recalls, the latest first: all, or those of a `user_id`, a `run_id`, an `agent_id`.

    With `since` and `until` those from that moment on and before that. With a `memory_id` those that returned it; that
    and an agent are looked for among the latest 20,000 of the rest.
    `after` is the id of the last of the previous page. Raises `NotFound`.
    """
    most = LOOKED_THROUGH if request.memory_id is not None or request.agent_id is not None else None
    named = {name: getattr(request, name) for name in RecallFilters.model_fields}
    # Ids begin with the millisecond, and have an index; `~` comes after every id of one.
    named["first"] = first_id("rcl", request.since) if request.since is not None else None
    named["end"] = f"{first_id('rcl', request.until)}~" if request.until is not None else None
    async with reading(context, reader.tenant_id) as tx:
        await cursors.page_start(tx, "audit.recall_place", request.after)
        rows = await tx.rows("audit.recalls", most=most, after=request.after, count=request.limit, **named)
        return [RecallSummary(**row) for row in rows]


@verb("recalls.get", right="read_memory", run_right="recall", http="GET /recalls/{recall_id}", retry=True)
async def get_recall(context: FabricContext, asker: Asker, request: RecallId) -> RecallDetails:
    """Read a recorded recall: the provenance of what it returned, and whether its run would see that now.

    A run gets its own recalls, with the provenance of what it may see now, as if there were no more (REC-7); the texts
    it gets by `recall` and `get`, which are recorded. Raises `NotFound`, for another's exactly as for what does not
    exist.
    """
    async with context.read_only(asker.tenant_id, under=await context.pack_for(asker)) as tx:
        then = await explaining.own(context, tx, asker, request.recall_id)
        memories = await _returned(context, tx, then, await _view(context, tx, asker, then))
    noted = _summary(then).model_dump()
    if isinstance(asker, RunContext):
        memories = [one.model_copy(update={"text": ""}) for one in memories if one.visible and not one.withheld]
        noted |= {"returned": len(memories), "omitted": None}
    return RecallDetails(**noted, memories=tuple(memories))


async def _view(context: FabricContext, tx: Transaction, asker: Asker, then: RecordedRecall) -> View:
    """What the run that asks sees now; to a person, what the run that recalled would see."""
    if isinstance(asker, RunContext):
        return view_now(asker, await context.recall_packs(asker), tx.now)
    today = await context.packs.read_in_force(tx) or context.packs.default
    pinned = await context.registered_pack(tx.tenant_id, then.row["pack"]) if then.pinned else today
    return view_now(then.run, RecallPacks(today, pinned), tx.now, recorded=True)


async def _returned(context: FabricContext, tx: Transaction, then: RecordedRecall, view: View) -> list[Returned]:
    """What it returned, in its order, as that view has it now."""
    now = PointInTime(LATEST, tx.now)
    rows = await tx.rows("recall.filters", **filters(view, Request(limit=1), now), memory_ids=then.result_ids)
    verdicts = {row["memory_id"]: filter_verdicts(row, view, tx.now) for row in rows}
    pack = await context.packs.read_in_force(tx) or context.packs.default
    found = await MemoryBrowser(tx, context.vault, pack, {}, now).rows_with_facts(then.result_ids)
    return [_returned_memory(*found[memory_id], verdicts[memory_id]) for memory_id in then.result_ids]


def _returned_memory(row: Row, fact: dict[str, Any] | None, verdicts: tuple[FilterVerdict, ...]) -> Returned:
    return Returned(
        memory_id=row["memory_id"],
        visibility=visibility_of(verdicts),
        hidden_by=tuple(one.name for one in verdicts if not one.passed),
        text=fact["text"] if fact is not None else "",
        withheld=fact is None,
        write_class=row["class"],
        tier=row["tier"],
        classification=row["classification"],
        provenance=provenance_of(row, tuple(fact["evidence_refs"]) if fact is not None else ()),
    )


def _summary(then: RecordedRecall) -> RecallSummary:
    names = ("recall_id", "at", "seq", "run_id", "agent_id", "user_id", "pack", "as_of", "omitted", "degraded")
    return RecallSummary(
        **{name: then.row[name] for name in names},
        with_query=bool(then.row["request"].get("with_query")),
        returned=len(then.result_ids),
    )


class MemoryScope(VerbInput):
    """Memories of an entity, or for a user."""

    entity: Ceid | None = Field(None, description="what it is about")
    user_id: Name | None = Field(None, description="the end user it is for")


class MemoryFilters(MemoryScope):
    """What `memories.list` can be narrowed to."""

    tier: Tier | None = None
    write_class: WriteClass | None = None
    query: Query | None = Field(None, description="words to look for")
    state: Wanted | None = Field(None, description="by default `live`")
    as_of: AsOf | None = Field(None, description="as they were at that moment, or at that sequence number")


class ListMemories(Listing, MemoryFilters):
    """Which memories to list."""


@verb("memories.list", right="read_memory", http="GET /memories", keywords=MemoryFilters, page_key="memory_id")
async def list_memories(context: FabricContext, reader: Principal, request: ListMemories) -> list[MemorySummary]:
    """List live memories, the newest first; with a `query` those with its words, the best match first.

    They can be narrowed to an `entity`, a `user_id`, a `tier`, a `write_class`; `state` is `ended` or `all` instead of
    `live`; `as_of` a past moment lists them as they were then. `after` is the id of the last memory of the previous
    page. Raises `NotFound`, and `HistoryCollected` beyond the replay horizon.
    """
    async with context.read_only(reader.tenant_id) as tx:
        browser = await _browser(context, tx, request, request.as_of)
        if request.query is None:
            return await browser.newest(request.state or "live", request.limit, request.after)
        return await browser.with_words(request.query, request.state or "live", request.limit, request.after)


class ChangesBetween(MemoryScope):
    """Two moments to compare."""

    since: Instant
    until: Instant | None = Field(None, description="by default now")


@verb("memories.changes", right="read_memory", http="GET /memories/changes")
async def changes(context: FabricContext, reader: Principal, request: ChangesBetween) -> MemoryChanges:
    """Show which memories began and which ended after one moment up to another, and count those that were live at both.

    Raises `HistoryCollected` beyond the replay horizon.
    """
    if request.until is not None and request.since >= request.until:
        raise InvalidInput("must lie before until", field="since")
    async with context.read_only(reader.tenant_id) as tx:
        browser = await _browser(context, tx, request, request.until, "until")
        return await browser.changes(await point_in_time(context, tx, request.since, "since"))


@verb("memories.moments", right="read_memory", http="GET /memories/moments")
async def moments(context: FabricContext, reader: Principal, request: MemoryScope) -> Sequence[Turn]:
    """List the moments within the replay horizon at which memories began or ended, at most the latest 500."""
    async with context.read_only(reader.tenant_id) as tx:
        return await (await _browser(context, tx, request)).turns()


class GraphAround(VerbInput):
    """An entity, and how far to go from it."""

    entity: Ceid
    hops: Annotated[int, Field(strict=True, ge=1, le=3)] = 1


@verb("memories.graph", right="read_memory", http="GET /memories/graph", positional=("entity",))
async def graph(context: FabricContext, reader: Principal, request: GraphAround) -> Graph:
    """Show the entities up to three `hops` around one, and the live memories that link them; at most 100."""
    async with context.read_only(reader.tenant_id) as tx:
        return await (await _browser(context, tx, None)).around(request.entity, request.hops)


async def _browser(
    context: FabricContext,
    tx: Transaction,
    scope: MemoryScope | None,
    as_of: datetime | int | None = None,
    field: str = "as_of",
) -> MemoryBrowser:
    pack = await context.packs.read_in_force(tx) or context.packs.default
    horizon = replay_horizon(await context.packs.within_notice(tx))
    moment = await point_in_time(context, tx, as_of, field) if as_of is not None else PointInTime(LATEST, tx.now)
    chosen: dict[str, Any] = {name: getattr(scope, name, None) for name in FILTERS}
    if chosen["entity"] is not None:
        chosen["entity"] = pack.identity.spellings(chosen["entity"])
    return MemoryBrowser(tx, context.vault, pack, chosen, moment, horizon)
