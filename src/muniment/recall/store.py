"""Stage 5, recall: promoted memory only, through the run's view; every recall is recorded, and can be read back."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.types.json import Jsonb
from pydantic_core import from_json

from muniment.database.rows import open_memory, provenance_of, scope_of
from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import LATEST, NamedStatement, Row, Transaction
from muniment.database.vectors import Vector
from muniment.errors import NotFound, SealBroken
from muniment.language.embedding import Embedder
from muniment.model.capture import TENANT_HOLDER, holder_of
from muniment.model.compiled import Compiled, CompiledMemory
from muniment.model.context import RunContext
from muniment.model.ids import make_id
from muniment.model.recall import ConflictSet, Recall, Record
from muniment.model.review_views import RecallPreview
from muniment.pack import Pack
from muniment.recall.rules import View
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

# What a recall's record keeps of its run as it is, beside its columns.
_OF_RUN = ("role", "session_id", "workflow_id", "intent_id", "qualifiers", "trace_id")


@dataclass(frozen=True)
class RecallDependencies:
    """What a recall needs: keys, the embedder in use (None: none that this process has), the session store.

    `query_vector` is the query's vector by an embedder other than the built-in, which is called before the transaction.
    """

    vault: Vault
    embedder: Embedder | None
    sessions: SessionStore
    query_vector: Vector | None = None


@with_span("recall")
async def recall(
    tx: Transaction,
    dependencies: RecallDependencies,
    run: RunContext,
    view: View,
    pack: Pack,
    request: Request,
    as_of: PointInTime | None = None,
) -> Recall:
    """Find, rank, limit, open and record; nothing is opened that is not returned."""
    holder = holder_of(None, run.user_id)
    await dependencies.vault.tenant(tx)  # Cached from here on: after the commit nothing can be read.
    found = await find(tx, dependencies, view, pack, request, as_of, holder)
    recall_id = make_id("rcl", tx.now)
    record = {
        "recall_id": recall_id,
        "agent_id": run.agent_id,
        "run_id": run.run_id,
        "user_id": run.user_id,
        "pack": pack.ref,
        "embedder": found.embedder,
        "request": Jsonb(_recorded(run, view, request)),
        "result_ids": found.ids,
        "omitted": found.omitted,
        "as_of": as_of.at if as_of is not None else None,
        "as_of_seq": as_of.seq if as_of is not None else None,
        "degraded": list(found.degraded),
        "candidates": found.candidates,
        **await _sealed_query(tx, dependencies.vault, recall_id, request.query, holder, found),
    }
    at = as_of.seq if as_of is not None else LATEST
    records, seq, degraded = await _opened(tx, dependencies, run, found, at, ("recall.record", record))
    return Recall(
        recall_id=recall_id,
        at=tx.now,
        seq=seq,
        as_of=as_of.at if as_of is not None else None,
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
    return await Search(tx, request, where, pack, query, point.at).find()


def record_compiled(
    tx: Transaction, run: RunContext, answer: Recall, compiled: Compiled, told_seq: int
) -> CompiledMemory:
    """Record, with the commit, which memories of a recall went into a prompt, in which blocks (REC-8).

    `told_seq` is the sequence up to which the run has been told of its own proposals.
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
        digest=compiled.digest,
    )
    taken = {name: getattr(answer, name) for name in ("recall_id", "as_of", "omitted", "approximate", "degraded")}
    return CompiledMemory(**dict(compiled), **taken, compile_id=compile_id, at=tx.now)


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


async def _opened(
    tx: Transaction, dependencies: RecallDependencies, run: RunContext, found: Found, seq: int, record: NamedStatement
) -> tuple[dict[str, Record], int, tuple[str, ...]]:
    """Open what was found and record the recall; returns the records by id, the sequence, and what was degraded.

    Where the session store holds nothing, reading the bodies, the record and the commit are one round trip.
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
        recorded = (await tx.commit_with(record))[0]
    else:
        rows, recorded = await tx.commit_with(("recall.bodies", {"memory_ids": ids, "held": [], "seq": seq}), record)
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
    fact = from_json(opened)
    names = ("entity", "predicate", "subject", "classification", "tier", "priority", "confidence")
    return Record(
        **{name: row[name] for name in names},
        id=row["memory_id"],
        text=fact["text"],
        value=fact["value"],
        write_class=row["class"],
        scope=scope_of(row),
        score=scores.get(row["memory_id"]) or {"priority": row["priority"]},
        provenance=provenance_of(row, tuple(fact["evidence_refs"])),
    )


def _recorded(run: RunContext, view: View, request: Request) -> dict[str, Any]:
    # All that decided the answer except the query, as ids and labels: no content that an erasure would have to reach.
    return {
        **{name: getattr(run, name) for name in _OF_RUN},
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
    }


@dataclass(frozen=True)
class RecordedRecall:
    """A recorded recall: its run, request and time; `query_gone` if its query cannot be opened any more."""

    row: Row
    run: RunContext
    request: Request
    moment: PointInTime
    query_gone: bool

    @property
    def result_ids(self) -> list[str]:
        """What it returned, in its order."""
        return self.row["result_ids"]

    @property
    def pinned(self) -> bool:
        """Whether the run pinned its pack."""
        return bool(self.row["request"].get("pinned"))

    @property
    def tiers(self) -> Any:
        """The tiers that it was narrowed to."""
        return self.row["request"]["tiers"]

    @property
    def classes(self) -> Any:
        """The classes that it was narrowed to."""
        return self.row["request"]["classes"]


async def recorded(tx: Transaction, vault: Vault, recall_id: str) -> RecordedRecall:
    """Read a recorded recall as the request it was; raises `NotFound`."""
    row = await tx.row("recall.recorded", recall_id=recall_id)
    if row is None:
        raise NotFound("no such recall", field="recall_id")
    stored: dict[str, Any] = row["request"]
    query = await _query(tx, vault, row)
    run = RunContext(
        **{name: stored[name] for name in _OF_RUN},
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
    )
    at = PointInTime(row["seq"], row["at"])
    if row["as_of"] is not None:
        at = PointInTime(row["as_of_seq"], row["as_of"])
    return RecordedRecall(row, run, request, at, bool(stored.get("with_query")) and query is None)


async def _query(tx: Transaction, vault: Vault, row: Row) -> str | None:
    if row["query"] is None:
        return None
    try:
        key = await vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
        return key.open("recalls.query", row["recall_id"], row["query"]).decode()
    except SealBroken:
        return None
