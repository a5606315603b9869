"""Recall, from the request to the recorded answer, now or as of a past time."""

from datetime import datetime

from anyio import fail_after

from muniment.context import FabricContext, RecallPacks, retry_on_pack_change
from muniment.database.storage import Transaction
from muniment.database.vectors import Vector
from muniment.errors import EmbedderUnavailable, HistoryCollected, InvalidInput, KeyRotated, MomentAmbiguous
from muniment.language.embedding import Embedder, StaticEmbedder, embedded
from muniment.language.instructions import visible_text
from muniment.model.context import RunContext
from muniment.model.recall import Recall, Record
from muniment.pack import Pack
from muniment.pack.combined import replay_horizon
from muniment.packs.store import Packs
from muniment.recall.rules import View, view_of
from muniment.recall.search import PointInTime, Request
from muniment.recall.store import RecallDependencies
from muniment.recall.store import recall as recall_
from muniment.verbs.inputs import RecallInput

# Longest wait for an embedder; after that the recall ranks by words and priority.
PATIENCE_SECONDS = 5.0


@retry_on_pack_change
async def recall(context: FabricContext, run: RunContext, given: RecallInput) -> Recall:
    """Answer a recall and record it; raises `HistoryCollected` beyond the replay horizon."""
    packs = await context.recall_packs(run)
    needed = await dependencies(context, run.tenant_id, given.query)
    for attempt in (1, 2):
        try:
            async with context.transaction(run.tenant_id, "recall", under=packs.in_force) as tx:
                return await recall_(tx, needed, run, *await prepared(context, tx, run, packs, given))
        except KeyRotated:
            # Another process rotated the tenant's key since this one read it: the second try reads it again.
            if attempt == 2:
                raise
    raise AssertionError("one of the two gave an answer or an error")


async def prepared(
    context: FabricContext, tx: Transaction, run: RunContext, packs: RecallPacks, given: RecallInput
) -> tuple[View, Pack, Request, PointInTime | None]:
    """Return the run's view, the pack that decides, the request, and the past point in time, if it has one."""
    point, then = None, packs
    if given.as_of is not None:
        point = await point_in_time(context, tx, given.as_of)
        then = await packs_as_of(context.packs, tx, run, packs, point.seq)
    decides = then.decides
    at = point.at if point is not None else tx.now
    view = view_of(run, decides, at, tiers=given.tiers, classes=given.classes, now=packs.in_force, limits=then.limits)
    most = min(one.memory_layer.recall_policy.max_recalls for one in (decides, packs.in_force))
    request = Request(
        limit=most if given.limit is None else min(given.limit, most),
        query=given.query,
        entities=dict.fromkeys(sorted(given.entities), 0) if given.entities is not None else None,
        hops=given.hops,
        decision_key=run.decision_key,
    )
    return view, decides, request, point


async def point_in_time(
    context: FabricContext, tx: Transaction, as_of: datetime | int, field: str = "as_of"
) -> PointInTime:
    """Return the point in a tenant's history of a time or a sequence.

    Raises `InvalidInput` for the future, `HistoryCollected` beyond the replay horizon, and `MomentAmbiguous` for a time
    that the tenant's clock passed twice, because it was set back; a sequence is never ambiguous.
    """
    if isinstance(as_of, int):
        row = await tx.row("recall.moment_of_number", seq=as_of)
        if row is None:
            raise InvalidInput("is a number that was not reached yet", field=field)
        point = PointInTime(as_of, row["at"])
        await _check_horizon(context, tx, point.at, field)
        return point
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
    return PointInTime(seq, as_of)


async def _check_horizon(context: FabricContext, tx: Transaction, at: datetime, field: str) -> None:
    """Raise `HistoryCollected` for a time beyond the replay horizon."""
    horizon = replay_horizon(await context.packs.within_notice(tx))
    if at < tx.now - horizon:
        raise HistoryCollected(f"lies beyond the replay horizon of {horizon.days} days", field=field)


async def packs_as_of(known: Packs, tx: Transaction, run: RunContext, packs: RecallPacks, seq: int) -> RecallPacks:
    """Return the packs that decide as of a sequence: the one in force then, and the one that the run pins (REC-7)."""
    in_force = await known.in_force_at(tx, seq) or packs.in_force
    return RecallPacks(in_force, packs.pinned if run.pack is not None else in_force)


def view_now(run: RunContext, packs: RecallPacks, now: datetime, *, recorded: bool = False) -> View:
    """Return what a run may see now."""
    return view_of(run, packs.decides, now, now=packs.in_force, limits=packs.limits, recorded=recorded)


async def dependencies(context: FabricContext, tenant_id: str, query: str | None) -> RecallDependencies:
    """Return what a recall in that tenant needs; an embedder that may be slow is called here, outside a transaction."""
    used = context.embedders.known(tenant_id)
    if used is None and query is not None:
        async with context.transaction(tenant_id, "recall") as tx:
            used = await context.embedders.read(tx)
    if used is None or not used.complete or query is None:
        return RecallDependencies(context.vault, None, context.sessions)
    return RecallDependencies(context.vault, used.in_use, context.sessions, await embed_query(used.in_use, query))


async def embed_query(embedder: Embedder | None, query: str | None) -> Vector | None:
    """Embed a query by an embedder other than the built-in; None without known words, or if it does not answer."""
    if embedder is None or query is None or isinstance(embedder, StaticEmbedder):
        return None
    try:
        with fail_after(PATIENCE_SECONDS):
            (vector,) = await embedded(embedder, [visible_text(query)])
    except (EmbedderUnavailable, TimeoutError):
        return None
    return vector if vector.any() else None


@retry_on_pack_change
async def recalled(context: FabricContext, run: RunContext, memory_id: str) -> Record | None:
    """Recall one memory for a run, None where it may not see it; the recall is recorded."""
    packs = await context.recall_packs(run)
    needed = await dependencies(context, run.tenant_id, None)
    async with context.transaction(run.tenant_id, "recall", under=packs.in_force) as tx:
        request = Request(limit=1, only=[memory_id])
        view = view_now(run, packs, tx.now)
        shown = await recall_(tx, needed, run, view, packs.decides, request)
    return next((record for record in shown.all_records if record.id == memory_id), None)
