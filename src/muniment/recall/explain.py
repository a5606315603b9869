"""Recorded recalls read back: why a memory was visible or hidden to a run, and whether a recall replays."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from muniment.context import FabricContext, RecallPacks
from muniment.database.sealing import Vault
from muniment.database.storage import LATEST, Row, Transaction
from muniment.errors import InvalidInput, NotFound, SealBroken
from muniment.language.embedding import BUILTIN_EMBEDDER, Embedder, builtin_embedder
from muniment.model.context import Asker, RunContext
from muniment.model.explanation import Difference, Explanation, Replay, Why
from muniment.model.fields import Tier, WriteClass
from muniment.model.inputs import ExplainInput
from muniment.pack import Pack
from muniment.recall.dependencies import RecallDependencies, embed_query
from muniment.recall.past import packs_as_of, point_in_time
from muniment.recall.recall import OF_RUN, find, view_now
from muniment.recall.rules import (
    NO_VIEW,
    View,
    filter_verdicts,
    may_be_told,
    relevance_of,
    view_of,
    visibility_of,
)
from muniment.recall.search import Found, PointInTime, Request, filters, follow_hops

# ---- the record of a recall ----


@dataclass(frozen=True)
class RecordedRecall:
    """A recorded recall: its run, request and time; `query_gone` if its query cannot be opened any more."""

    row: Row
    run: RunContext
    request: Request
    moment: PointInTime
    query_gone: bool
    # Whether the run pinned its pack.
    pinned: bool
    # What it was narrowed to.
    tiers: list[Tier]
    classes: list[WriteClass]
    # What it returned, in its order.
    result_ids: list[str]
    # When its records had to hold in the world; None for one from before there was such a time.
    valid_at: datetime | None


async def recorded(tx: Transaction, vault: Vault, recall_id: str) -> RecordedRecall:
    """Read a recorded recall as the request it was; raises `NotFound`."""
    row = await tx.row("recall.recorded", recall_id=recall_id)
    if row is None:
        raise NotFound("no such recall", field="recall_id")
    stored: dict[str, Any] = row["request"]
    query = await _query(tx, vault, row)
    run = RunContext(
        **{name: stored[name] for name in OF_RUN},
        **{name: row[name] for name in ("run_id", "agent_id", "user_id", "pack")},
        tenant_id=tx.tenant_id,
        roles={stored["role"]},
        decision_key=stored.get("decision_key"),
        classification_allowed=stored["classification_allowed"],
    )
    request = Request(
        limit=stored["limit"],
        query=query,
        entities=dict.fromkeys(stored["entities"], 0) if stored["entities"] is not None else None,
        hops=stored.get("hops", 0),
        only=stored.get("only"),
        decision_key=stored.get("decision_key"),
        candidates=row["candidates"],
        most_seen=stored.get("most_seen", Request.most_seen),
        # One from before there was a floor left nothing out.
        relevance_floor=stored.get("relevance_floor", 0.0),
    )
    at = PointInTime(row["seq"], row["at"])
    if row["as_of"] is not None:
        at = PointInTime(row["as_of_seq"], row["as_of"])
    return RecordedRecall(
        row,
        run,
        request,
        at,
        query_gone=bool(stored.get("with_query")) and query is None,
        pinned=bool(stored.get("pinned")),
        tiers=stored["tiers"],
        classes=stored["classes"],
        result_ids=row["result_ids"],
        valid_at=datetime.fromisoformat(stored["valid_at"]) if stored.get("valid_at") is not None else None,
    )


async def _query(tx: Transaction, vault: Vault, row: Row) -> str | None:
    if row["query"] is None:
        return None
    try:
        key = await vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
        return key.open("recalls.query", row["recall_id"], row["query"]).decode()
    except SealBroken:
        return None


# ---- explanations and replays ----


async def explain(context: FabricContext, asker: Asker, options: ExplainInput) -> Explanation:
    """Explain why a memory was visible to a run, or what hid it: in a recorded recall, at a past time, or now.

    Raises `NotFound` for what the caller may not know of, exactly as for what does not exist.
    """
    if options.run is not None and isinstance(asker, RunContext):
        raise InvalidInput("a run explains what it sees itself", field="run")
    if options.run is not None and options.run.tenant_id != asker.tenant_id:
        raise NotFound("no such memory", field="memory_id")
    async with context.transaction(asker.tenant_id, "auditor", under=await context.pack_for(asker)) as tx:
        return await _explained(context, tx, asker, options)


async def _explained(context: FabricContext, tx: Transaction, asker: Asker, options: ExplainInput) -> Explanation:
    then = await own(context, tx, asker, options.recall_id) if options.recall_id is not None else None
    run = then.run if then is not None else asker if isinstance(asker, RunContext) else options.run
    past = then.moment if then is not None else None
    if past is None and options.as_of is not None:
        past = await point_in_time(context, tx, options.as_of)
    at = past or PointInTime(LATEST, tx.now)
    view, pack = await _view(context, tx, asker, run, then, at, options.valid_at) if run is not None else (None, None)
    valid_at = view.valid_at if view is not None else options.valid_at or at.at
    request = then.request if then is not None else Request(limit=1)
    if view is not None:
        request = await follow_hops(tx, context.vault, view, request, at)
    row = await _filters(tx, view or replace(NO_VIEW, valid_at=valid_at), request, at, options.memory_id)
    if row is None:
        raise NotFound("no such memory", field="memory_id")
    found = filter_verdicts(row, view, at.at, valid_at)
    if isinstance(asker, RunContext) and not may_be_told(found):
        raise NotFound("no such memory", field="memory_id")
    may_tell = await _may_tell(tx, asker, view, request, at, row["superseded_by"])
    returned = options.memory_id in then.result_ids if then is not None else None
    visibility = visibility_of(found)
    prompts = await tx.rows("audit.prompts_of", recall_id=options.recall_id) if returned else []
    return Explanation(
        memory_id=options.memory_id,
        visibility=visibility,
        at=at.at,
        seq=past.seq if past is not None else None,
        recall_id=options.recall_id,
        returned=returned,
        **await _missed(context, tx, then, view, pack, row, returned=returned is not False or visibility != "visible"),
        valid_at=valid_at,
        prompts=tuple(one["compile_id"] for one in prompts if options.memory_id in one["memory_ids"]),
        pack=pack.ref if pack is not None else None,
        filters=found,
        promoted_at=row["promoted_at"],
        expires_at=row["ends_at"],
        retracted_at=row["retracted_at"],
        retracted_by=None if isinstance(asker, RunContext) else row["retracted_by"],
        retraction_reason=row["reason"],
        superseded_by=row["superseded_by"] if may_tell else None,
        tombstoned_at=row["tombstoned_at"],
    )


async def _missed(
    context: FabricContext,
    tx: Transaction,
    then: RecordedRecall | None,
    view: View | None,
    pack: Pack | None,
    row: Row,
    *,
    returned: bool,
) -> dict[str, Any]:
    """Return why a recorded recall did not return a memory that its run could see, with its relevance to the query.

    The memory is searched for alone, as the recall would have done, first without the floor (REC-13).
    """
    if returned or then is None or view is None or pack is None:
        return {}
    if not row["wanted"]:
        return {"missed": "narrowed"}
    embedder, gone = recorded_embedder(context, then)
    floor = then.request.floor_under(pack)
    if then.request.query is None or then.request.candidates is not None or gone or not floor:
        return {"missed": "cut"}
    vector = await embed_query(embedder, then.request.query)
    dependencies = RecallDependencies(context.vault, embedder, context.sessions, vector)
    alone = replace(then.request, only=[row["memory_id"]], limit=1)

    async def search(least: float) -> Found:
        request = replace(alone, relevance_floor=least)
        return await find(tx, dependencies, view, pack, request, then.moment)

    if row["memory_id"] in (await search(floor)).ids:
        return {"missed": "cut"}
    score = (await search(0.0)).scores.get(row["memory_id"])
    near = relevance_of(score) if score is not None else None
    return {"missed": "irrelevant", "relevance": near, "relevance_floor": floor}


async def own(context: FabricContext, tx: Transaction, asker: Asker, recall_id: str) -> RecordedRecall:
    """Read a recorded recall; a run reads only its own, as if there were no others."""
    then = await recorded(tx, context.vault, recall_id)
    if isinstance(asker, RunContext) and (then.run.agent_id, then.run.user_id) != (asker.agent_id, asker.user_id):
        raise NotFound("no such recall", field="recall_id")
    return then


async def _view(
    context: FabricContext,
    tx: Transaction,
    asker: Asker,
    run: RunContext,
    then: RecordedRecall | None,
    at: PointInTime,
    valid_at: datetime | None = None,
) -> tuple[View, Pack]:
    """Return what the run saw then, less what it, or the run that asks, may not see today; and the deciding pack."""
    today = await context.packs.read_in_force(tx) or context.packs.default
    packs = await recorded_packs(context, tx, then) if then is not None else await context.recall_packs(run)
    if then is None and at.seq != LATEST:
        packs = await packs_as_of(context.packs, tx, run, packs, at.seq)
    narrowed: dict[str, Any] = {"tiers": then.tiers, "classes": then.classes} if then is not None else {}
    view = view_of(
        run,
        packs.decides,
        at.at,
        **narrowed,
        now=today,
        limits=packs.limits,
        recorded=then is not None,
        valid_at=valid_at,
    )
    if then is not None:
        view = replace(view, valid_at=then.valid_at)
    if isinstance(asker, RunContext):
        mine = view_now(asker, await context.recall_packs(asker), tx.now).labels
        view = replace(view, labels=[label for label in view.labels if label in mine])
    return view, packs.decides


async def recorded_packs(context: FabricContext, tx: Transaction, then: RecordedRecall) -> RecallPacks:
    """Return the packs that decided a recorded recall: the one in force then, and the one that its run had pinned.

    Before there were activations, the pack that a recall names was the only one that decided.
    """
    decided = await context.registered_pack(tx.tenant_id, then.row["pack"])
    if not then.pinned:
        return RecallPacks(decided, decided)
    return RecallPacks(await context.packs.in_force_at(tx, then.moment.seq) or decided, decided)


async def _filters(tx: Transaction, view: View, request: Request, at: PointInTime, memory_id: str) -> Row | None:
    return await tx.row("recall.filters", **filters(view, request, at), memory_ids=[memory_id])


async def _may_tell(
    tx: Transaction, asker: Asker, view: View | None, request: Request, at: PointInTime, memory_id: str | None
) -> bool:
    """Whether the caller may know of the memory that superseded it."""
    if memory_id is None or not isinstance(asker, RunContext):
        return True
    row = await _filters(tx, view or NO_VIEW, request, at, memory_id)
    return row is not None and may_be_told(filter_verdicts(row, view, at.at))


async def replay(context: FabricContext, asker: Asker, recall_id: str) -> Replay:
    """Run a recorded recall again as of then; raises `NotFound`."""
    async with context.transaction(asker.tenant_id, "auditor") as tx:
        then = await recorded(tx, context.vault, recall_id)
        view, pack = await _view(context, tx, asker, then.run, then, then.moment)
        embedder, reasons = recorded_embedder(context, then)
        found: list[str] = []
        if not then.query_gone:
            vector = await embed_query(embedder, then.request.query)
            dependencies = RecallDependencies(context.vault, embedder, context.sessions, vector)
            found = (await find(tx, dependencies, view, pack, then.request, then.moment)).ids
        differences = await _differences(tx, view, then, found) if found != then.result_ids else ()
        return Replay(
            recall_id=recall_id,
            at=then.moment.at,
            seq=then.moment.seq,
            pack=pack.ref,
            same=found == then.result_ids and not then.query_gone,
            then=tuple(then.result_ids),
            now=tuple(found),
            differences=differences,
            reasons=reasons,
        )


def recorded_embedder(context: FabricContext, then: RecordedRecall) -> tuple[Embedder | None, tuple[Why, ...]]:
    """Return the embedder that ranked a recall, if this process has it, and the reasons why a replay may differ."""
    gone: tuple[Why, ...] = ("query_erased",) if then.query_gone else ()
    name = then.row["embedder"]
    if name is None:
        # It was away, or there was no query.
        return None, gone
    for known in (context.embedders.own, builtin_embedder() if name == BUILTIN_EMBEDDER else None):
        if known is not None and known.name == name:
            return known, gone
    return None, (*gone, "embedder")


async def _differences(tx: Transaction, view: View, then: RecordedRecall, found: list[str]) -> tuple[Difference, ...]:
    """Return each memory whose position differs, with both positions and the reason."""
    was = {memory_id: position for position, memory_id in enumerate(then.result_ids)}
    now = {memory_id: position for position, memory_id in enumerate(found)}
    ids = [one for one in [*was, *(one for one in now if one not in was)] if was.get(one) != now.get(one)]
    where = filters(view, then.request, then.moment)
    rows = {row["memory_id"]: row for row in await tx.rows("recall.filters", **where, memory_ids=ids)}
    return tuple(
        Difference(memory_id=one, then=was.get(one), now=now.get(one), why=_why(rows.get(one), then, one in was))
        for one in ids
    )


def _why(row: dict[str, Any] | None, then: RecordedRecall, was_there: bool) -> Why:
    if then.query_gone:
        return "query_erased"
    if row is None or not row["has_content"]:
        return "erased"
    if not row["consent_allows"] or (not was_there and row["consent_root"] is not None):
        return "consent"
    return "moved" if row["by_label"] else "clearance"
