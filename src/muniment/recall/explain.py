"""Inquiries into what a run saw: why a memory was visible or hidden, and whether a recall replays."""

from dataclasses import replace
from datetime import datetime
from typing import Any

from muniment.context import FabricContext, RecallPacks
from muniment.database.storage import LATEST, Row, Transaction
from muniment.errors import InvalidInput, NotFound
from muniment.language.embedding import BUILTIN_EMBEDDER, Embedder, builtin_embedder
from muniment.model.context import Asker, RunContext
from muniment.model.explanation import Difference, Explanation, Replay, Why
from muniment.pack import Pack
from muniment.recall import explanation
from muniment.recall import recall as recall_handler
from muniment.recall.filters import Moment, Request, filters, reach
from muniment.recall.replay import Recorded, recorded
from muniment.recall.store import RecallDependencies, find
from muniment.recall.visibility import View, view_of
from muniment.verbs.inputs import ExplainInput


async def explain(context: FabricContext, asker: Asker, given: ExplainInput) -> Explanation:
    """Why a memory was visible to a run, or what hid it: in a recorded recall, at a moment, or now.

    Raises `NotFound` for what the caller may not know of, exactly as for what is not there.
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
    moment = then.moment if then is not None else await _moment(context, tx, given.as_of)
    at = moment or Moment(LATEST, tx.now)
    view, pack = await _view(context, tx, asker, run, then, at) if run is not None else (None, None)
    request = then.request if then is not None else Request(limit=1)
    if view is not None and request.entities is not None and request.hops:
        reached = await reach(tx, context.vault, sorted(request.entities), request.hops, filters(view, request, at))
        request = replace(request, entities=reached)
    row = await _filters(tx, view, request, at, given.memory_id)
    if row is None:
        raise NotFound("no such memory", field="memory_id")
    found = explanation.verdicts(row, view, at.at)
    if isinstance(asker, RunContext) and not explanation.may_be_told(found):
        raise NotFound("no such memory", field="memory_id")
    told = await _may_tell(tx, asker, view, request, at, row["superseded_by"])
    returned = given.memory_id in then.result_ids if then is not None else None
    visibility = explanation.visibility(found)
    prompts = await tx.rows("audit.prompts_of", recall_id=given.recall_id) if returned else []
    return Explanation(
        memory_id=given.memory_id,
        visibility=visibility,
        at=at.at,
        seq=moment.seq if moment is not None else None,
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
        superseded_by=row["superseded_by"] if told else None,
        tombstoned_at=row["tombstoned_at"],
    )


async def own(context: FabricContext, tx: Transaction, asker: Asker, recall_id: str) -> Recorded:
    """A recorded recall; to a run only its own, as if there were no others."""
    then = await recorded(tx, context.vault, recall_id)
    if isinstance(asker, RunContext) and (then.run.agent_id, then.run.user_id) != (asker.agent_id, asker.user_id):
        raise NotFound("no such recall", field="recall_id")
    return then


async def _moment(context: FabricContext, tx: Transaction, as_of: datetime | int | None) -> Moment | None:
    if as_of is None:
        return None
    return await recall_handler.moment_of(context, tx, as_of)


async def _view(
    context: FabricContext, tx: Transaction, asker: Asker, run: RunContext, then: Recorded | None, at: Moment
) -> tuple[View, Pack]:
    """What the run saw then, less what it, or who asks in its place, may not see today."""
    today = await context.packs.read_in_force(tx) or context.packs.default
    packs = await recorded_packs(context, tx, then) if then is not None else await context.recall_packs(run)
    if then is None and at.seq != LATEST:
        packs = await recall_handler.packs_then(context.packs, tx, run, packs, at.seq)
    tiers, classes = (then.tiers, then.classes) if then is not None else (None, None)
    view = view_of(
        run,
        packs.decides,
        at.at,
        tiers=tiers,
        classes=classes,
        now=today,
        limits=packs.limits,
        recorded=then is not None,
    )
    if isinstance(asker, RunContext):
        mine = recall_handler.view_now(asker, await context.recall_packs(asker), tx.now).labels
        view = replace(view, labels=[label for label in view.labels if label in mine])
    return view, packs.decides


async def recorded_packs(context: FabricContext, tx: Transaction, then: Recorded) -> RecallPacks:
    """The packs that a recorded recall was decided under: the one in force then, and the one that its run had pinned.

    Before there were activations, a recall was decided under the pack that it names alone.
    """
    decided = await context.registered_pack(tx.tenant_id, then.row["pack"])
    if not then.pinned:
        return RecallPacks(decided, decided)
    return RecallPacks(await context.packs.in_force_at(tx, then.moment.seq) or decided, decided)


async def _filters(tx: Transaction, view: View | None, request: Request, at: Moment, memory_id: str) -> Row | None:
    asked = view or _NOBODY
    return await tx.row("recall.filters", **filters(asked, request, at), memory_ids=[memory_id])


async def _may_tell(
    tx: Transaction, asker: Asker, view: View | None, request: Request, at: Moment, memory_id: str | None
) -> bool:
    """Whether the caller may know of the memory that came in its place."""
    if memory_id is None or not isinstance(asker, RunContext):
        return True
    row = await _filters(tx, view, request, at, memory_id)
    return row is not None and explanation.may_be_told(explanation.verdicts(row, view, at.at))


async def replay(context: FabricContext, asker: Asker, recall_id: str) -> Replay:
    """Run a recorded recall again as of then; raises `NotFound`."""
    async with context.transaction(asker.tenant_id, "auditor") as tx:
        then = await recorded(tx, context.vault, recall_id)
        view, pack = await _view(context, tx, asker, then.run, then, then.moment)
        embedder, reasons = recorded_embedder(context, then)
        found: list[str] = []
        if not then.query_gone:
            query = then.request.query
            place = (
                await recall_handler.place_of(embedder, query) if embedder is not None and query is not None else None
            )
            dependencies = RecallDependencies(context.vault, embedder, context.sessions, place)
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


def recorded_embedder(context: FabricContext, then: Recorded) -> tuple[Embedder | None, tuple[Why, ...]]:
    """The embedder that ranked it, where this process has it; and what cannot be as it was."""
    gone: tuple[Why, ...] = ("query_erased",) if then.query_gone else ()
    name = then.row["embedder"]
    if name is None:
        # It was away, or there was no query.
        return None, gone
    for known in (context.embedders.own, builtin_embedder() if name == BUILTIN_EMBEDDER else None):
        if known is not None and known.name == name:
            return known, gone
    return None, (*gone, "embedder")


async def _differences(tx: Transaction, view: View, then: Recorded, found: list[str]) -> tuple[Difference, ...]:
    """Where each memory stood and stands, and what moved it."""
    was = {memory_id: place for place, memory_id in enumerate(then.result_ids)}
    now = {memory_id: place for place, memory_id in enumerate(found)}
    ids = [one for one in [*was, *(one for one in now if one not in was)] if was.get(one) != now.get(one)]
    given = filters(view, then.request, then.moment)
    rows = {row["memory_id"]: row for row in await tx.rows("recall.filters", **given, memory_ids=ids)}
    return tuple(
        Difference(memory_id=one, then=was.get(one), now=now.get(one), why=_why(rows.get(one), then, one in was))
        for one in ids
    )


def _why(row: dict[str, Any] | None, then: Recorded, was_there: bool) -> Why:
    if then.query_gone:
        return "query_erased"
    if row is None or not row["has_content"]:
        return "erased"
    if not row["consent_allows"] or (not was_there and row["consent_root"] is not None):
        return "consent"
    return "moved" if row["by_label"] else "clearance"


# A view for asking the filters that ask nothing of a run.
_NOBODY = View(
    users=[],
    session_id="",
    workflow_id="",
    intents=[],
    labels=[],
    sensitive=[],
    tiers=[],
    classes=[],
    qualifiers={},
    fresh_since={"working": None, "episodic": None, "semantic": None, "durable": None},
)
