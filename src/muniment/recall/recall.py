"""Recall: from the request to the recorded answer, now or as of a past time.

Promoted memory only, through the run's view; every recall is recorded.
"""

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb
from pydantic_core import to_json

from muniment.context import FabricContext, RecallPacks, retry_on_pack_change
from muniment.database.rows import open_memory, record_of
from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import LATEST, NamedStatement, Row, Transaction
from muniment.errors import (
    KeyRotated,
    PackChanged,
    SealBroken,
)
from muniment.language.embedding import Embedder
from muniment.model.capture import TENANT_HOLDER, holder_of
from muniment.model.context import RunContext
from muniment.model.ids import make_id
from muniment.model.inputs import RecallInput
from muniment.model.recall import ConflictSet, Recall, Record
from muniment.model.review_views import RecallPreview
from muniment.pack import Pack
from muniment.recall.dependencies import RecallDependencies, dependencies
from muniment.recall.entities import spelled
from muniment.recall.index_search import IndexSearch
from muniment.recall.past import packs_as_of, point_in_time
from muniment.recall.rules import View, users_seen_by, view_of
from muniment.recall.scope_index import IndexOutdated, Scope, ScopeTooLarge
from muniment.recall.search import (
    Found,
    ParsedQuery,
    PointInTime,
    Request,
    Search,
    filters,
    find_without_query,
    follow_hops,
)
from muniment.sessions.store import SessionStore
from muniment.tracing import with_span

log = logging.getLogger("muniment.recall")

# What a recall's record keeps of its run as it is, beside its columns.
OF_RUN = ("role", "session_id", "workflow_id", "intent_id", "qualifiers", "trace_id")


@retry_on_pack_change
async def recall(context: FabricContext, run: RunContext, options: RecallInput) -> Recall:
    """Answer a recall and record it; raises `HistoryCollected` beyond the replay horizon."""
    packs = await context.recall_packs(run)
    needed = await dependencies(context, run.tenant_id, options.query)
    for attempt in (1, 2):
        try:
            if (answer := await _recall_from_index(context, run, packs, needed, options)) is not None:
                return answer
            async with context.transaction(run.tenant_id, "recall", under=packs.in_force) as tx:
                return await find_and_record(tx, needed, run, *await _prepare(context, tx, run, packs, options))
        except KeyRotated:
            # Another process rotated the tenant's key since this one read it: the second try reads it again.
            if attempt == 2:
                raise
    raise AssertionError("one of the two gave an answer or an error")


async def _recall_from_index(
    context: FabricContext, run: RunContext, packs: RecallPacks, needed: RecallDependencies, options: RecallInput
) -> Recall | None:
    """Answer a recall from the index of its scope, and record it; None if the statements have to answer it.

    First the index is used as it is: one round trip. If something visible changed since it was read, a second
    transaction brings it up to date, and checks and records the answer in the same snapshot.
    """
    if options.query is None or options.as_of is not None or options.hops or not context.scopes.limit:
        return None
    for refresh in (False, True):
        scope = _held_scope(context, run, needed.embedder)
        if scope is None and not refresh:
            continue
        async with context.transaction(run.tenant_id, "recall", one_plan=True) as tx:
            view, decides, request, _ = await _prepare(context, tx, run, packs, options)
            if refresh:
                scope = await _read_scope(context, tx, run, needed.embedder)
            if scope is None:
                return None
            if scope.pack != packs.in_force.ref:
                if not refresh:
                    continue
                context.packs.forget_in_force(run.tenant_id)
                raise PackChanged("another pack was put in force at this moment; try again")
            try:
                answer = await find_and_record(tx, needed, run, view, decides, request, scope=scope)
            except ScopeTooLarge:
                context.scopes.mark_too_large(run.tenant_id, scope)
                return None
            except KeyRotated:
                # The part has the user's key as it was wrapped before the rotation: it is read again with the rest.
                if refresh:
                    raise
            except IndexOutdated:
                if refresh and scope.is_current:
                    # The number was that of this snapshot: the index itself was wrong.
                    log.warning("tenant %s: the index in memory was not as the database is; dropped", run.tenant_id)
                    context.scopes.counts.mismatched += 1
                    context.scopes.forget(run.tenant_id)
            else:
                context.scopes.counts.used += 1
                return answer
    return None


def _held_scope(context: FabricContext, run: RunContext, embedder: Embedder | None) -> Scope | None:
    """Return the scope that is held for a run."""
    name = embedder.name if embedder is not None else None
    return context.scopes.find(run.tenant_id, users_seen_by(run), name)


async def _read_scope(context: FabricContext, tx: Transaction, run: RunContext, by: Embedder | None) -> Scope | None:
    """Read the scope of a run, with the vectors by an embedder, or bring it up to date."""
    name, dimensions = (by.name, by.dimensions) if by is not None else (None, 0)
    return await context.index.read_scope(context.storage, tx, users_seen_by(run), name, dimensions)


async def _prepare(
    context: FabricContext, tx: Transaction, run: RunContext, packs: RecallPacks, options: RecallInput
) -> tuple[View, Pack, Request, PointInTime | None]:
    """Return the run's view, the pack that decides, the request, and the past point in time, if it has one."""
    point, then = None, packs
    if options.as_of is not None:
        point = await point_in_time(context, tx, options.as_of)
        then = await packs_as_of(context.packs, tx, run, packs, point.seq)
    decides = then.decides
    at = point.at if point is not None else tx.now
    view = view_of(
        run,
        decides,
        at,
        tiers=options.tiers,
        classes=options.classes,
        now=packs.in_force,
        limits=then.limits,
        valid_at=options.valid_at,
    )
    most = min(one.memory_layer.recall_policy.max_recalls for one in (decides, packs.in_force))
    request = Request(
        limit=most if options.limit is None else min(options.limit, most),
        query=options.query,
        entities=spelled(options.entities, packs.in_force),
        hops=options.hops,
        decision_key=run.decision_key,
    )
    return view, decides, request, point


def view_now(run: RunContext, packs: RecallPacks, now: datetime, *, recorded: bool = False) -> View:
    """Return what a run may see now."""
    return view_of(run, packs.decides, now, now=packs.in_force, limits=packs.limits, recorded=recorded)


@retry_on_pack_change
async def recall_memory(context: FabricContext, run: RunContext, memory_id: str) -> Record | None:
    """Recall one memory for a run; None if the run may not see it. The recall is recorded."""
    packs = await context.recall_packs(run)
    needed = await dependencies(context, run.tenant_id, None)
    async with context.transaction(run.tenant_id, "recall", under=packs.in_force) as tx:
        request = Request(limit=1, only=[memory_id])
        view = view_now(run, packs, tx.now)
        shown = await find_and_record(tx, needed, run, view, packs.decides, request)
    return next((record for record in shown.all_records if record.id == memory_id), None)


# ---- inside the transaction ----


@with_span("recall")
async def find_and_record(
    tx: Transaction,
    dependencies: RecallDependencies,
    run: RunContext,
    view: View,
    pack: Pack,
    request: Request,
    as_of: PointInTime | None = None,
    scope: Scope | None = None,
) -> Recall:
    """Find, rank, limit, open and record; nothing is opened that is not returned.

    With a `scope` it is ranked from the index; raises `IndexOutdated` if that is not up to date, and `ScopeTooLarge`.
    """
    holder = holder_of(None, run.user_id)
    opened = await dependencies.vault.tenant(tx)  # Cached from here on: after the commit nothing can be read.
    found = await find(tx, dependencies, view, pack, request, as_of, holder, scope)
    recall_id = make_id("rcl", tx.now)
    record = {
        "recall_id": recall_id,
        "agent_id": run.agent_id,
        "run_id": run.run_id,
        "user_id": run.user_id,
        "pack": pack.ref,
        "embedder": found.embedder,
        "request": Jsonb(_recorded(run, view, request, pack), to_json),
        "result_ids": found.ids,
        "omitted": found.omitted,
        "as_of": as_of.at if as_of is not None else None,
        "as_of_seq": as_of.seq if as_of is not None else None,
        "degraded": list(found.degraded),
        "candidates": found.candidates,
        **await _sealed_query(tx, dependencies.vault, recall_id, request.query, holder, found),
    }
    at = as_of.seq if as_of is not None else LATEST
    of_cluster, required = tx.connection.of_cluster, None
    if opened is None:
        statement: NamedStatement = ("recall.record_unopened", record)
    else:
        statement = ("recall.record_by_values" if of_cluster else "recall.record", record)
    if scope is not None:
        checks = scope.checks(record, filters(view, request, PointInTime(LATEST, tx.now)))
        if of_cluster:
            required = ("scopes.require", checks)
        else:
            statement = ("scopes.record", checks)
    records, seq, degraded = await _open_and_record(tx, dependencies, run, found, at, statement, required)
    return Recall(
        recall_id=recall_id,
        at=tx.now,
        seq=seq,
        as_of=as_of.at if as_of is not None else None,
        valid_at=view.valid_at or tx.now,
        pack=pack.ref,
        embedder=found.embedder,
        approximate=found.candidates is not None,
        **_arranged(found, records),
        degraded=(*found.degraded, *degraded),
    )


async def preview_recall(
    tx: Transaction, dependencies: RecallDependencies, view: View, pack: Pack, request: Request
) -> RecallPreview:
    """Recall without recording it, and without the session store."""
    found = await find(tx, dependencies, view, pack, request)
    rows = await tx.rows("recall.bodies", memory_ids=found.ids, held=[], seq=LATEST)
    opened = [await _record(tx, dependencies.vault, row, row["content"], found.scores) for row in rows]
    records = {one.id: one for one in opened if one is not None}
    degraded = found.degraded if len(records) == len(found.ids) else (*found.degraded, "seal_broken")
    return RecallPreview(**_arranged(found, records), degraded=degraded)


def _arranged(found: Found, records: Mapping[str, Record]) -> dict[str, Any]:
    """Arrange the opened records in the order and the parts in which they were found."""
    return {
        "records": tuple(records[memory_id] for memory_id in found.plain if memory_id in records),
        "low_confidence": tuple(records[memory_id] for memory_id in found.low if memory_id in records),
        "conflicts": tuple(
            ConflictSet(
                contradiction_ids=tuple(ids),
                records=tuple(
                    records[member].model_copy(update={"contradiction": True})
                    for member in members
                    if member in records
                ),
            )
            for ids, members in found.sets
        ),
        "omitted": found.omitted,
    }


async def find(
    tx: Transaction,
    dependencies: RecallDependencies,
    view: View,
    pack: Pack,
    request: Request,
    as_of: PointInTime | None = None,
    holder: str = TENANT_HOLDER,
    scope: Scope | None = None,
) -> Found:
    """Find what the run may see of the request, in order; nothing is opened but links, nothing recorded."""
    point = as_of or PointInTime(LATEST, tx.now)
    request = await follow_hops(tx, dependencies.vault, view, request, point)
    where = filters(view, request, point)
    if request.query is None:
        return await find_without_query(tx, request, where, pack)
    query = await ParsedQuery.of(
        tx, dependencies.vault, request.query, dependencies.embedder, holder, dependencies.query_vector
    )
    if scope is not None:
        own: list[str] = []
        if request.decision_key is not None:
            own = [row["memory_id"] for row in await tx.rows("recall.of_decision", decision_key=request.decision_key)]
        found = IndexSearch(scope.parts, view, request, pack, query, point.at, own).find()
        if not scope.is_current:
            raise IndexOutdated
        if found is None:
            raise ScopeTooLarge
        # A user without a key may have been given one since: that changes nothing visible, and is read again.
        return replace(found, holder_key=scope.holder_key if scope.holder_key[1] is not None else None)
    return await Search(tx, request, where, pack, query, point.at).find()


async def _sealed_query(
    tx: Transaction, vault: Vault, recall_id: str, query: str | None, holder: str, found: Found
) -> dict[str, str | bytes | None]:
    """Seal the query under the key of the run's user; under the tenant's while that user has none."""
    if query is None or await vault.tenant(tx) is None:
        return {"holder": None, "query": None}
    key: SubjectKey | None = None
    if found.holder_key is None:
        key = (await vault.keys(tx, [holder], skip_broken=True)).get(holder)
    elif found.holder_key[1] is not None:
        with suppress(SealBroken):
            key = await vault.open_key(tx, holder, found.holder_key[0], found.holder_key[1])
    if key is None:
        holder, key = TENANT_HOLDER, await vault.existing_tenant_data_key(tx)
    if key is None:
        return {"holder": None, "query": None}
    return {"holder": holder, "query": key.seal("recalls.query", recall_id, query.encode())}


async def _open_and_record(
    tx: Transaction,
    dependencies: RecallDependencies,
    run: RunContext,
    found: Found,
    seq: int,
    record: NamedStatement,
    required: NamedStatement | None,
) -> tuple[dict[str, Record], int, tuple[str, ...]]:
    """Open what was found and record the recall; returns the records by id, the sequence, and what was degraded.

    Raises `IndexOutdated` if nothing was recorded, because the statement did not or because the `required` one failed.
    If the session store holds nothing, the bodies are read and the recall is recorded and committed in one round trip.
    """
    ids = found.ids
    degraded: list[str] = []
    held: dict[str, bytes] = {}
    if found.working and run.session_id is not None:
        held = await dependencies.sessions.held(tx.tenant_id, run.session_id, sorted(found.working), tx.now)
        if dependencies.sessions.away:
            degraded.append("session_store")
    rows: list[Row] = []
    if held:
        rows = await tx.rows("recall.bodies", memory_ids=ids, held=list(held), seq=seq)
        # A body from the session store that does not open is not ours: the database has the true one.
        forged = [
            row["memory_id"]
            for row in rows
            if row["content"] is None and await open_memory(tx, dependencies.vault, row, held[row["memory_id"]]) is None
        ]
        if forged:
            stored = await tx.rows("recall.bodies", memory_ids=forged, held=[], seq=seq)
            again = {row["memory_id"]: row for row in stored}
            rows = [again.get(row["memory_id"], row) for row in rows]
        (recorded,) = await tx.commit_if(required, record) or ([],)
    else:
        bodies: NamedStatement = ("recall.bodies", {"memory_ids": ids, "held": [], "seq": seq})
        rows, recorded = await tx.commit_if(required, bodies, record) or ([], [])
    if not recorded:
        raise IndexOutdated
    records: dict[str, Record] = {}
    for row in rows:
        content = row["content"] if row["content"] is not None else held[row["memory_id"]]
        if (one := await _record(tx, dependencies.vault, row, content, found.scores)) is not None:
            records[one.id] = one
    if len(records) < len(ids):
        degraded.append("seal_broken")
    await _fill(dependencies.sessions, tx, run, found, rows)
    return records, recorded[0]["seq"], tuple(degraded)


async def _fill(sessions: SessionStore, tx: Transaction, run: RunContext, found: Found, rows: list[Row]) -> None:
    """Put the working memories into the session store that it did not have."""
    fresh = {row["memory_id"]: row for row in rows if row["memory_id"] in found.working and row["content"] is not None}
    if not fresh or run.session_id is None or sessions.away:
        return
    ends = {name: row["ends_at"] or datetime.max.replace(tzinfo=tx.now.tzinfo) for name, row in fresh.items()}
    bodies = {name: bytes(row["content"]) for name, row in fresh.items()}
    await sessions.keep(tx.tenant_id, run.session_id, bodies, ends, tx.now)


async def _record(
    tx: Transaction, vault: Vault, row: Row, content: bytes, scores: Mapping[str, dict[str, float]]
) -> Record | None:
    """Return the record of a memory, or None if its content does not open."""
    opened = await open_memory(tx, vault, row, content)
    if opened is None:
        return None
    return record_of(row, opened, scores.get(row["memory_id"]) or {"priority": row["priority"]})


def _recorded(run: RunContext, view: View, request: Request, pack: Pack) -> dict[str, Any]:
    # All that decided the answer except the query, as ids and labels: no content that an erasure would have to reach.
    return {
        **{name: getattr(run, name) for name in OF_RUN},
        "decision_key": run.decision_key,
        "classification_allowed": sorted(run.classification_allowed),
        "tiers": view.tiers,
        "classes": view.classes,
        "entities": sorted(request.entities) if request.entities is not None else None,
        "hops": request.hops,
        "pinned": run.pack is not None,
        "only": request.only,
        "limit": request.limit,
        "most_seen": request.most_seen,
        "with_query": request.query is not None,
        "valid_at": view.valid_at,
        "relevance_floor": request.floor_under(pack),
    }
