"""Recollecting: a recall from the caller's words to the answer, now or as of a past moment."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from anyio import fail_after

from muniment.embedding import Embedder, StaticEmbedder, embedded
from muniment.errors import EmbedderUnavailable, HistoryCollected, InvalidInput, KeyRotated
from muniment.fabric.desk import Desk
from muniment.fabric.inputs import RecallInput
from muniment.governance.packs import Packs
from muniment.model.context import RunContext
from muniment.model.fields import build
from muniment.model.recall import Recall, Record
from muniment.pack import Pack
from muniment.pipeline.finding import Moment, Request
from muniment.pipeline.recall import Means
from muniment.pipeline.recall import recall as recall_
from muniment.pipeline.senses import Vector
from muniment.policy.instructions import as_seen
from muniment.policy.visibility import View, view_of
from muniment.storage.session import Transaction

# A recall waits no longer for an embedder: words and priority rank without it.
PATIENCE_SECONDS = 5.0


async def asked(desk: Desk, run: RunContext, query: str | None, narrowed: Mapping[str, Any]) -> RecallInput:
    """What a run asks for, checked; raises `InvalidInput`, `Denied`."""
    if not isinstance(run, RunContext):
        raise InvalidInput("recall takes a RunContext", field="run")
    given = build(RecallInput, {"query": query, **narrowed})
    await desk.authorise(run, "recall")
    return given


async def recall(desk: Desk, run: RunContext, query: str | None, narrowed: Mapping[str, Any]) -> Recall:
    """The answer, recorded; raises `HistoryCollected` beyond the replay horizon."""
    given = await asked(desk, run, query, narrowed)
    pack = await desk.pack_to_record(run)
    works_with = await means(desk, run.tenant_id, given.query)
    for attempt in (1, 2):
        try:
            async with desk.transaction(run.tenant_id, "recall") as tx:
                return await recall_(tx, works_with, run, *await prepared(desk, tx, run, pack, given))
        except KeyRotated:
            # Another process rotated the tenant's key since this one read it: the second look has it.
            if attempt == 2:
                raise
    raise AssertionError("one of the two gave an answer or an error")


async def prepared(
    desk: Desk, tx: Transaction, run: RunContext, pack: Pack, given: RecallInput
) -> tuple[View, Pack, Request, Moment | None]:
    """What the recall stage takes: the view, the pack that decides, the request, and the moment if it is not now."""
    moment = None
    decides = pack
    if given.as_of is not None:
        moment = await moment_of(tx, given.as_of, pack)
        decides = await pack_then(desk.packs, tx, run, pack, moment)
    at = moment.at if moment is not None else tx.now
    view = view_of(run, decides, at, tiers=given.tiers, classes=given.classes, now=pack)
    most = decides.memory_layer.recall_policy.max_recalls
    request = Request(
        limit=most if given.limit is None else min(given.limit, most),
        query=given.query,
        entities=dict.fromkeys(sorted(given.entities), 0) if given.entities is not None else None,
        hops=given.hops,
        decision_key=run.decision_key,
    )
    return view, decides, request, moment


async def moment_of(tx: Transaction, as_of: datetime, pack: Pack, field: str = "as_of") -> Moment:
    """The tenant's number then; raises `InvalidInput` for the future, `HistoryCollected` beyond the replay horizon."""
    if as_of > tx.now:
        raise InvalidInput("lies in the future", field=field)
    horizon = pack.memory_layer.retention.replay_horizon
    if as_of < tx.now - horizon:
        raise HistoryCollected(f"lies beyond the replay horizon of {horizon.days} days", field=field)
    row = await tx.row("recall.moment", at=as_of)
    return Moment(row["seq"] or 0 if row is not None else 0, as_of)


async def pack_then(packs: Packs, tx: Transaction, run: RunContext, pack: Pack, moment: Moment) -> Pack:
    """The pack that decided then: the one the run pins, else today's if it was registered, else the last that was."""
    if run.pack is not None:
        return pack
    today = await tx.row("tenant.pack_registered_at", pack=pack.ref)
    if today is not None and today["seq"] <= moment.seq:
        return pack
    return await packs.read_at(tx, moment.seq) or pack


async def means(desk: Desk, tenant_id: str, query: str | None) -> Means:
    """What a recall in that tenant works with; an embedder that may take long is asked here, while nothing is held."""
    used = desk.embedders.known(tenant_id)
    if used is None and query is not None:
        async with desk.transaction(tenant_id, "recall") as tx:
            used = await desk.embedders.look(tx)
    if used is None or not used.complete or query is None:
        return Means(desk.vault, None, desk.sessions)
    return Means(desk.vault, used.in_use, desk.sessions, await place_of(used.in_use, query))


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


async def recalled(desk: Desk, run: RunContext, memory_id: str) -> Record | None:
    """The memory as a run recalls it now, None where it cannot; recorded as the recall that it is."""
    pack = await desk.pack_to_record(run)
    works_with = await means(desk, run.tenant_id, None)
    async with desk.transaction(run.tenant_id, "recall") as tx:
        request = Request(limit=1, only=[memory_id])
        shown = await recall_(tx, works_with, run, view_of(run, pack, tx.now), pack, request)
    return next((record for record in shown.all_records if record.id == memory_id), None)
