"""Explaining what a run saw: why a memory was visible or hidden, and whether a recall replays."""

from dataclasses import replace
from typing import Any

from muniment.context import FabricContext, RecallPacks
from muniment.database.storage import LATEST, Row, Transaction
from muniment.errors import InvalidInput, NotFound
from muniment.language.embedding import BUILTIN_EMBEDDER, Embedder, builtin_embedder
from muniment.model.context import Asker, RunContext
from muniment.model.explanation import Difference, Explanation, Replay, Why
from muniment.pack import Pack
from muniment.recall import recall as recall_handler
from muniment.recall.rules import NO_VIEW, View, filter_verdicts, may_be_told, view_of, visibility_of
from muniment.recall.search import PointInTime, Request, filters, follow_hops
from muniment.recall.store import RecallDependencies, RecordedRecall, find, recorded
from muniment.verbs.inputs import ExplainInput


async def explain(context: FabricContext, asker: Asker, given: ExplainInput) -> Explanation:
    """Explain why a memory was visible to a run, or what hid it: in a recorded recall, at a past time, or now.

    Raises `NotFound` for what the caller may not know of, exactly as for what does not exist.
    """
    if given.run is not None and isinstance(asker, RunContext):
        raise InvalidInput("a run explains what it sees itself", field="run")
    if given.run is not None and given.run.tenant_id != asker.tenant_id:
        raise NotFound("no such memory", field="memory_id")
    async with context.transaction(asker.tenant_id, "auditor", under=await context.pack_for(asker)) as tx:
        return await _explained(context, tx, asker, given)


async def _explained(context: FabricContext, tx: Transaction, asker: Asker, given: ExplainInput) -> Explanation:
    then = await own(context, tx, asker, given.recall_id) if given.recall_id is not None else None
    run = then.run if then is not None else asker if isinstance(asker, RunContext) else given.run
    past = then.moment if then is not None else None
    if past is None and given.as_of is not None:
        past = await recall_handler.point_in_time(context, tx, given.as_of)
    at = past or PointInTime(LATEST, tx.now)
    view, pack = await _view(context, tx, asker, run, then, at) if run is not None else (None, None)
    request = then.request if then is not None else Request(limit=1)
    if view is not None:
        request = await follow_hops(tx, context.vault, view, request, at)
    row = await _filters(tx, view, request, at, given.memory_id)
    if row is None:
        raise NotFound("no such memory", field="memory_id")
    found = filter_verdicts(row, view, at.at)
    if isinstance(asker, RunContext) and not may_be_told(found):
        raise NotFound("no such memory", field="memory_id")
    may_tell = await _may_tell(tx, asker, view, request, at, row["superseded_by"])
    returned = given.memory_id in then.result_ids if then is not None else None
    visibility = visibility_of(found)
    prompts = await tx.rows("audit.prompts_of", recall_id=given.recall_id) if returned else []
    return Explanation(
        memory_id=given.memory_id,
        visibility=visibility,
        at=at.at,
        seq=past.seq if past is not None else None,
        recall_id=given.recall_id,
        returned=returned,
        missed=None if returned is not False or visibility != "visible" else "cut" if row["wanted"] else "narrowed",
        prompts=tuple(one["compile_id"] for one in prompts if given.memory_id in one["memory_ids"]),
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


async def own(context: FabricContext, tx: Transaction, asker: Asker, recall_id: str) -> RecordedRecall:
    """Read a recorded recall; a run reads only its own, as if there were no others."""
    then = await recorded(tx, context.vault, recall_id)
    if isinstance(asker, RunContext) and (then.run.agent_id, then.run.user_id) != (asker.agent_id, asker.user_id):
        raise NotFound("no such recall", field="recall_id")
    return then


async def _view(
    context: FabricContext, tx: Transaction, asker: Asker, run: RunContext, then: RecordedRecall | None, at: PointInTime
) -> tuple[View, Pack]:
    """Return what the run saw then, less what it, or the run that asks, may not see today; and the deciding pack."""
    today = await context.packs.read_in_force(tx) or context.packs.default
    packs = await recorded_packs(context, tx, then) if then is not None else await context.recall_packs(run)
    if then is None and at.seq != LATEST:
        packs = await recall_handler.packs_as_of(context.packs, tx, run, packs, at.seq)
    tiers, classes = (then.tiers, then.classes) if then is not None else (None, None)
    narrowed = {"tiers": tiers, "classes": classes}
    view = view_of(run, packs.decides, at.at, **narrowed, now=today, limits=packs.limits, recorded=then is not None)
    if isinstance(asker, RunContext):
        mine = recall_handler.view_now(asker, await context.recall_packs(asker), tx.now).labels
        view = replace(view, labels=[label for label in view.labels if label in mine])
    return view, packs.decides


async def recorded_packs(context: FabricContext, tx: Transaction, then: RecordedRecall) -> RecallPacks:
    """Return the packs that decided a recorded recall: the one in force then, and the one that its run had pinned.

    Before there were activations, the pack that a recall names decided alone.
    """
    decided = await context.registered_pack(tx.tenant_id, then.row["pack"])
    if not then.pinned:
        return RecallPacks(decided, decided)
    return RecallPacks(await context.packs.in_force_at(tx, then.moment.seq) or decided, decided)


async def _filters(tx: Transaction, view: View | None, request: Request, at: PointInTime, memory_id: str) -> Row | None:
    return await tx.row("recall.filters", **filters(view or NO_VIEW, request, at), memory_ids=[memory_id])


async def _may_tell(
    tx: Transaction, asker: Asker, view: View | None, request: Request, at: PointInTime, memory_id: str | None
) -> bool:
    """Whether the caller may know of the memory that superseded it."""
    if memory_id is None or not isinstance(asker, RunContext):
        return True
    row = await _filters(tx, view, request, at, memory_id)
    return row is not None and may_be_told(filter_verdicts(row, view, at.at))


async def replay(context: FabricContext, asker: Asker, recall_id: str) -> Replay:
    """Run a recorded recall again as of then; raises `NotFound`."""
    async with context.transaction(asker.tenant_id, "auditor") as tx:
        then = await recorded(tx, context.vault, recall_id)
        view, pack = await _view(context, tx, asker, then.run, then, then.moment)
        embedder, reasons = recorded_embedder(context, then)
        found: list[str] = []
        if not then.query_gone:
            vector = await recall_handler.embed_query(embedder, then.request.query)
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
    """Return the embedder that ranked a recall, where this process has it, and why a replay may differ."""
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
