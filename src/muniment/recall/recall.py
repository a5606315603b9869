"""Recollecting: a recall from the caller's words to the answer, now or as of a past moment."""

from datetime import datetime

from anyio import fail_after

from muniment.candidates.comparison import Vector
from muniment.context import FabricContext, RecallPacks, retry_on_pack_change
from muniment.database.storage import Transaction
from muniment.errors import EmbedderUnavailable, HistoryCollected, InvalidInput, KeyRotated, MomentAmbiguous
from muniment.language.embedding import Embedder, StaticEmbedder, embedded
from muniment.language.instructions import as_seen
from muniment.model.context import RunContext
from muniment.model.recall import Recall, Record
from muniment.pack import Pack
from muniment.packs.store import Packs
from muniment.recall.filters import Moment, Request
from muniment.recall.pinning import replay_horizon
from muniment.recall.store import RecallDependencies
from muniment.recall.store import recall as recall_
from muniment.recall.visibility import View, view_of
from muniment.verbs.inputs import RecallInput

# A recall waits no longer for an embedder: words and priority rank without it.
PATIENCE_SECONDS = 5.0


@retry_on_pack_change
async def recall(context: FabricContext, run: RunContext, given: RecallInput) -> Recall:
    """The answer, recorded; raises `HistoryCollected` beyond the replay horizon."""
    packs = await context.recall_packs(run)
    works_with = await dependencies(context, run.tenant_id, given.query)
    for attempt in (1, 2):
        try:
            async with context.transaction(run.tenant_id, "recall", under=packs.in_force) as tx:
                return await recall_(tx, works_with, run, *await prepared(context, tx, run, packs, given))
        except KeyRotated:
            # Another process rotated the tenant's key since this one read it: the second look has it.
            if attempt == 2:
                raise
    raise AssertionError("one of the two gave an answer or an error")


async def prepared(
    context: FabricContext, tx: Transaction, run: RunContext, packs: RecallPacks, given: RecallInput
) -> tuple[View, Pack, Request, Moment | None]:
    """What the recall stage takes: the view, the pack that decides, the request, and the moment if it is not now."""
    moment, then = None, packs
    if given.as_of is not None:
        moment = await moment_of(context, tx, given.as_of)
        then = await packs_then(context.packs, tx, run, packs, moment.seq)
    decides = then.decides
    at = moment.at if moment is not None else tx.now
    view = view_of(run, decides, at, tiers=given.tiers, classes=given.classes, now=packs.in_force, limits=then.limits)
    most = min(one.memory_layer.recall_policy.max_recalls for one in (decides, packs.in_force))
    request = Request(
        limit=most if given.limit is None else min(given.limit, most),
        query=given.query,
        entities=dict.fromkeys(sorted(given.entities), 0) if given.entities is not None else None,
        hops=given.hops,
        decision_key=run.decision_key,
    )
    return view, decides, request, moment


async def moment_of(context: FabricContext, tx: Transaction, as_of: datetime | int, field: str = "as_of") -> Moment:
    """The tenant's sequence number then, or the moment of that number.

    Raises `InvalidInput` for the future, `HistoryCollected` beyond the replay horizon, and `MomentAmbiguous` for a time
    that the tenant's clock passed twice, since it was brought back over it; a number is never ambiguous.
    """
    if isinstance(as_of, int):
        row = await tx.row("recall.moment_of_number", seq=as_of)
        if row is None:
            raise InvalidInput("is a number that was not reached yet", field=field)
        moment = Moment(as_of, row["at"])
        await _check_horizon(context, tx, moment.at, field)
        return moment
    if as_of > tx.now:
        raise InvalidInput("lies in the future", field=field)
    await _check_horizon(context, tx, as_of, field)
    row = await tx.row("recall.moment", at=as_of)
    seq, earlier = (row["seq"] or 0, row["earlier"]) if row is not None else (0, None)
    if earlier is not None:
        raise MomentAmbiguous(
            f"was twice, since the tenant's clock was brought back: as number {earlier} and as number {seq}; "
            "ask by one of the numbers",
            field=field,
            numbers=(earlier, seq),
        )
    return Moment(seq, as_of)


async def _check_horizon(context: FabricContext, tx: Transaction, at: datetime, field: str) -> None:
    """Raises `HistoryCollected` for a moment beyond the replay horizon."""
    horizon = replay_horizon(await context.packs.within_notice(tx))
    if at < tx.now - horizon:
        raise HistoryCollected(f"lies beyond the replay horizon of {horizon.days} days", field=field)


async def packs_then(known: Packs, tx: Transaction, run: RunContext, packs: RecallPacks, seq: int) -> RecallPacks:
    """The packs that decide as of a sequence number: the one in force then, and the one that the run pins (REC-7)."""
    in_force = await known.in_force_at(tx, seq) or packs.in_force
    return RecallPacks(in_force, packs.pinned if run.pack is not None else in_force)


def view_now(run: RunContext, packs: RecallPacks, now: datetime, *, recorded: bool = False) -> View:
    """What a run sees at this moment."""
    return view_of(run, packs.decides, now, now=packs.in_force, limits=packs.limits, recorded=recorded)


async def dependencies(context: FabricContext, tenant_id: str, query: str | None) -> RecallDependencies:
    """What a recall in that tenant works with; an embedder that may take long is asked here, while nothing is held."""
    used = context.embedders.known(tenant_id)
    if used is None and query is not None:
        async with context.transaction(tenant_id, "recall") as tx:
            used = await context.embedders.look(tx)
    if used is None or not used.complete or query is None:
        return RecallDependencies(context.vault, None, context.sessions)
    return RecallDependencies(context.vault, used.in_use, context.sessions, await place_of(used.in_use, query))


async def place_of(embedder: Embedder, query: str) -> Vector | None:
    """Where a query lies by an embedder other than the built-in; None if nowhere, or if it is away."""
    if isinstance(embedder, StaticEmbedder):
        return None
    try:
        with fail_after(PATIENCE_SECONDS):
            (vector,) = await embedded(embedder, [as_seen(query)])
    except (EmbedderUnavailable, TimeoutError):
        return None
    return vector if vector.any() else None


@retry_on_pack_change
async def recalled(context: FabricContext, run: RunContext, memory_id: str) -> Record | None:
    """The memory as a run recalls it now, None where it cannot; recorded as the recall that it is."""
    packs = await context.recall_packs(run)
    works_with = await dependencies(context, run.tenant_id, None)
    async with context.transaction(run.tenant_id, "recall", under=packs.in_force) as tx:
        request = Request(limit=1, only=[memory_id])
        view = view_now(run, packs, tx.now)
        shown = await recall_(tx, works_with, run, view, packs.decides, request)
    return next((record for record in shown.all_records if record.id == memory_id), None)
