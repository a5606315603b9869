"""The verbs of items: put, get, search, list namespaces, ask to delete, and say what waits.

An item is an ordinary fact: class `preference`, predicate `item`, about an entity made of the digests of its names. It
passes the gates, waits or is promoted by policy, and is read by a recall, like any other.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Annotated, Any

from pydantic import Field

from muniment.candidates.propose import submit
from muniment.capture.rules import check_user, proposal_input, run_fields
from muniment.context import FabricContext, RecallPacks
from muniment.database.sealing import SubjectKey
from muniment.database.storage import LATEST, Row, Transaction
from muniment.errors import NotFound, NotPromotable
from muniment.items import rules, store
from muniment.model.candidate import Refusal
from muniment.model.context import RunContext
from muniment.model.fields import Json, Label, OpenName, Probability, Query, Text, build
from muniment.model.inputs import RecallInput, VerbInput
from muniment.model.item import (
    ITEM_PREDICATE,
    Item,
    Items,
    ItemWaiting,
    ItemWritten,
    Namespace,
    Namespaces,
    Part,
)
from muniment.model.recall import Recall, RecallAnswer, Record
from muniment.pack import Pack
from muniment.recall import recall as recalling
from muniment.recall.dependencies import RecallDependencies, dependencies
from muniment.recall.entities import spelled
from muniment.recall.recall import find_and_record, preview_recall, view_now
from muniment.recall.rules import View, filter_verdicts, may_be_told
from muniment.recall.search import PointInTime, Request, filters
from muniment.review.by_policy import promote_if_eligible
from muniment.verbs.declaration import verb

# Items that a filter or an offset looks through, and namespaces that are listed.
MOST_LOOKED_AT = 1000
MOST_SECONDS = 100 * 365 * 86400
_WRITE_CLASS = "preference"


class Named(VerbInput):
    """An item by its names."""

    namespace: Annotated[Namespace, Field(min_length=1)] = Field(description="its parts, from the root on; at most 8")
    key: Part


class PutItem(Named):
    """A value to keep."""

    value: Json = Field(description="any JSON value; it is sealed, together with the names")
    text: Text | None = Field(None, description="what it is found by; by default the strings of the value")
    ttl: Annotated[float, Field(strict=True, gt=0, le=MOST_SECONDS, allow_inf_nan=False)] | None = Field(
        None, description="seconds for which it holds; reading does not extend it"
    )
    origin: OpenName | None = Field(None, description="such as `tool:langgraph`, if the credential may speak for it")
    classification: Label = "INTERNAL"
    confidence: Probability = 0.95
    idempotency_key: OpenName | None = None


@verb(
    "items.put",
    right="propose",
    http="POST /items",
    status=201,
    positional=("namespace", "key", "value"),
    retry=True,
)
async def put(context: FabricContext, run: RunContext, request: PutItem) -> ItemWritten:
    """Put a value under a namespace and a key: a proposal, which supersedes the value that is there once promoted.

    It is promoted at once where the pack lets policy promote it, and otherwise waits for a person: until then
    `items.get` returns the value before it. What a gate refuses is returned as `refused`, with gate and reason.
    """
    content = rules.content_of(request.namespace, request.key, request.value)
    text = request.text or rules.text_of(request.key, request.value)
    says: dict[str, Any] = {"label": request.classification, "confidence": request.confidence}
    fact = await _fact(context, run, request, content, text, **says)
    fact["idempotency_key"] = request.idempotency_key
    if request.ttl is not None:
        fact["valid_until"] = context.now() + timedelta(seconds=request.ttl)
    pack, item = await context.pack_for(run), proposal_input(run_fields(run), fact)
    check_user(run, [item])
    made = await submit(context, run.principal, pack, item)
    named: dict[str, Any] = {"namespace": request.namespace, "key": request.key}
    if isinstance(made, Refusal):
        return ItemWritten(**named, status="refused", gate=made.gate, reason=made.reason)
    memory_id: str | None = None
    with suppress(NotPromotable):
        memory_id = await promote_if_eligible(context, run.tenant_id, made.proposal_id)
    if memory_id is None:
        memory_id = await _repeated(context, run, fact["entity"], made.proposal_id)
    status = "pending" if memory_id is None else "kept"
    return ItemWritten(**named, status=status, proposal_id=made.proposal_id, memory_id=memory_id)


async def _fact(
    context: FabricContext,
    run: RunContext,
    request: "PutItem | DeleteItem",
    content: Mapping[str, Any],
    text: str,
    *,
    label: str,
    confidence: float,
) -> dict[str, Any]:
    await context.open_tenant(run.tenant_id)
    key = await context.own_key(run.tenant_id)
    assert key is not None, "the tenant was opened"
    return {
        "write_class": _WRITE_CLASS,
        "entity": rules.entity_of(key.digest, run.user_id, request.namespace, request.key),
        "predicate": ITEM_PREDICATE,
        "value": content,
        "text": text,
        "confidence": confidence,
        "classification": label,
        "origin": request.origin,
    }


async def _repeated(context: FabricContext, run: RunContext, entity: str, proposal_id: str) -> str | None:
    """Return the memory that a proposal only repeats, if the run sees it; None if the proposal waits."""
    packs = await context.recall_packs(run)
    async with context.transaction(run.tenant_id, "auditor") as tx:
        rows = await store.waiting(tx, run.agent_id, run.user_id, entities=[entity])
        found = [row["memory_id"] for row in rows if row["proposal_id"] == proposal_id and row["memory_id"] is not None]
        return next(iter(await _known(tx, view_now(run, packs, tx.now), found)), None)


async def _known(tx: Transaction, view: View, memory_ids: Iterable[str]) -> set[str]:
    """Return those of the memories that a run may know of: it sees them, or saw them before they ended."""
    if not (wanted := sorted(set(memory_ids))):
        return set()
    where = filters(view, Request(limit=1), PointInTime(LATEST, tx.now))
    rows = await tx.rows("recall.filters", **where, memory_ids=wanted)
    return {row["memory_id"] for row in rows if may_be_told(filter_verdicts(row, view, tx.now))}


class DeleteItem(Named):
    """An item to delete."""

    origin: OpenName | None = None


@verb("items.delete", right="propose", http="POST /items/delete", positional=("namespace", "key"), retry=True)
async def delete(context: FabricContext, run: RunContext, request: DeleteItem) -> ItemWritten:
    """Ask that an item is deleted: a request that a person decides; until then it stays (ADP-4).

    The person whom it is about has it forgotten at once by `me.forget` with its `memory_id`. A request that waits
    already is returned again. Raises `NotFound` if the run sees no such item.
    """
    key = await _key(context, run)
    answer = await _recalled(context, run, entities=[_entity(key, run, request)], limit=1)
    found = _items(answer, {})
    if key is None or not found:
        raise NotFound("no such item", field="key")
    named: dict[str, Any] = {"namespace": request.namespace, "key": request.key}
    if before := [one for one in await _waiting(context, run, key, request) if one.asks == "delete"]:
        return ItemWritten(**named, status="pending", proposal_id=before[0].proposal_id)
    content, text = rules.deletion_of(request.namespace, request.key), f"forget the item {request.key}"
    says: dict[str, Any] = {"label": found[0].classification, "confidence": found[0].confidence}
    fact = await _fact(context, run, request, content, text, **says)
    pack, targets = await context.pack_for(run), tuple(record.id for record in answer.all_records)
    item = proposal_input(run_fields(run), fact)
    check_user(run, [item])
    made = await submit(context, run.principal, pack, item, retracts=targets)
    if isinstance(made, Refusal):
        return ItemWritten(**named, status="refused", gate=made.gate, reason=made.reason)
    return ItemWritten(**named, status="pending", proposal_id=made.proposal_id)


@verb("items.get", right="recall", effect="read", http="POST /items/get", positional=("namespace", "key"), retry=True)
async def get(context: FabricContext, run: RunContext, request: Named) -> Item | None:
    """Get the item of that namespace and key, as a recall that is recorded; None if there is none that the run sees.

    `pending` counts the values that this agent put on the key and that wait for a person.
    """
    if (key := await _key(context, run)) is None:
        return None
    found = _items(await _recalled(context, run, entities=[_entity(key, run, request)], limit=1), _names(request))
    if not found:
        return None
    waits = await _waiting(context, run, key, request)
    return found[0].model_copy(update={"pending": sum(one.asks == "put" for one in waits)})


class SearchItems(VerbInput):
    """What to search for."""

    namespace: Namespace = Field((), description="the parts that the namespaces begin with, each whole; none is all")
    query: Query | None = Field(None, description="what it is about; by default the newest come first")
    where: Annotated[dict[str, Json], Field(max_length=64)] | None = Field(
        None, description="fields of the value: a value to be equal to, or `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`"
    )
    limit: Annotated[int, Field(strict=True, ge=1, le=10_000)] = Field(
        10, description="the number of items at most; the pack in force bounds it"
    )
    offset: Annotated[int, Field(strict=True, ge=0, le=MOST_LOOKED_AT)] = Field(0, description="how many to leave out")


@verb("items.search", right="recall", effect="read", http="POST /items/search", positional=("namespace",), retry=True)
async def search(context: FabricContext, run: RunContext, request: SearchItems) -> Items:
    """Search the items in a namespace and below it; it is recorded as a recall.

    With a query the most relevant come first, otherwise the newest. `where` and an offset look through the first
    1,000; what was not returned is counted in `omitted`.
    """
    if request.where is not None:
        rules.check_filter(request.where)
    if (key := await _key(context, run)) is None:
        return Items()
    entities = frozenset({rules.entities_under(key.digest, run.user_id, request.namespace)})
    if request.where is None and not request.offset:
        answer = await _recalled(context, run, entities=entities, limit=request.limit, query=request.query)
        return Items(recall_id=answer.recall_id, items=tuple(_items(answer, {})), omitted=answer.omitted)
    return await _search_filtered(context, run, request, entities)


async def _search_filtered(
    context: FabricContext, run: RunContext, request: SearchItems, entities: frozenset[str]
) -> Items:
    """Look through what the run sees, filter it, and record what is returned as a recall of those memories."""
    packs = await context.recall_packs(run)
    needed = await dependencies(context, run.tenant_id, request.query)
    async with context.transaction(run.tenant_id, "recall", under=packs.in_force) as tx:
        view = view_now(run, packs, tx.now)
        everything = Request(limit=MOST_LOOKED_AT, query=request.query, entities=spelled(entities, packs.in_force))
        looked_at = await preview_recall(tx, needed, view, packs.decides, everything)
        found = [one for one in _items(looked_at, {}) if rules.matches(one.value, request.where or {})]
        last = request.offset + min(request.limit, most_recalls(packs))
        chosen = found[request.offset : last]
        shown = await _recall_only(tx, needed, run, view, packs.decides, [one.memory_id for one in chosen])
        left_out = looked_at.omitted + len(found) - len(chosen)
        return Items(recall_id=shown.recall_id, items=tuple(chosen), omitted=left_out)


def most_recalls(packs: RecallPacks) -> int:
    """Return the most records that a recall returns under these packs."""
    return min(one.memory_layer.recall_policy.max_recalls for one in (packs.decides, packs.in_force))


async def _recall_only(
    tx: Transaction, needed: RecallDependencies, run: RunContext, view: View, pack: Pack, memory_ids: Sequence[str]
) -> Recall:
    """Recall these memories as far as the run sees them, and record that."""
    request = Request(limit=max(len(memory_ids), 1), only=list(memory_ids))
    return await find_and_record(tx, needed, run, view, pack, request)


class ListNamespaces(VerbInput):
    """Which namespaces to list."""

    prefix: Namespace = Field((), description="the parts that they begin with, each whole; `*` is any part")
    suffix: Namespace = Field((), description="the parts that they end with, each whole; `*` is any part")
    max_depth: Annotated[int, Field(strict=True, ge=1, le=1000)] | None = Field(
        None, description="cut them after so many parts"
    )
    limit: Annotated[int, Field(strict=True, ge=1, le=MOST_LOOKED_AT)] = 100
    offset: Annotated[int, Field(strict=True, ge=0, le=MOST_LOOKED_AT)] = 0


@verb("items.namespaces", right="recall", effect="read", http="POST /items/namespaces", positional=(), retry=True)
async def namespaces(context: FabricContext, run: RunContext, request: ListNamespaces) -> Namespaces:
    """List the namespaces that have an item which the run sees, in alphabetical order; at most 1,000 are looked at."""
    if (key := await _key(context, run)) is None:
        return Namespaces()
    packs = await context.recall_packs(run)
    needed = await dependencies(context, run.tenant_id, None)
    under = rules.entities_under(key.digest, run.user_id, rules.whole_parts(request.prefix))
    async with context.transaction(run.tenant_id, "recall", under=packs.in_force) as tx:
        view = view_now(run, packs, tx.now)
        wanted = Request(limit=1, entities=spelled(frozenset({under}), packs.in_force))
        seen = filters(view, wanted, PointInTime(LATEST, tx.now))
        some = await store.one_of_each_namespace(tx, seen, MOST_LOOKED_AT)
        answer = await _recall_only(tx, needed, run, view, packs.decides, some) if some else None
    every = {one.namespace for one in _items(answer, {})} if answer is not None else set[tuple[str, ...]]()
    found = {
        one[: request.max_depth]
        for one in every
        if rules.begins_with(one, request.prefix) and rules.ends_with(one, request.suffix)
    }
    return Namespaces(namespaces=tuple(sorted(found)[request.offset : request.offset + request.limit]))


class NamedOrAll(VerbInput):
    """An item, or all in a namespace and below it."""

    namespace: Namespace = Field((), description="its parts; without a key all in it and below it")
    key: Part | None = None


@verb("items.status", right="recall", effect="read", http="POST /items/status", positional=("namespace", "key"))
async def status(context: FabricContext, run: RunContext, request: NamedOrAll) -> list[ItemWaiting]:
    """List what this agent put there, or asked to delete, that waits for a person; the latest first, at most 100."""
    key = await _key(context, run)
    return await _waiting(context, run, key, request) if key is not None else []


# ---- what all of them use ----


async def _key(context: FabricContext, run: RunContext) -> SubjectKey | None:
    """Return the key of the digests of names; None in a tenant without any writes."""
    return await context.own_key(run.tenant_id)


def _entity(key: SubjectKey | None, run: RunContext, request: Named) -> str:
    if key is None:
        raise NotFound("no such item", field="key")
    return rules.entity_of(key.digest, run.user_id, request.namespace, request.key)


def _names(request: Named) -> dict[str, Any]:
    """Return the names that were asked for: they are given back as they were, where the pack masks them too."""
    return {"namespace": request.namespace, "key": request.key}


async def _recalled(context: FabricContext, run: RunContext, **fields: Any) -> Recall:
    return await recalling.recall(context, run, build(RecallInput, fields))


async def _waiting(
    context: FabricContext, run: RunContext, key: SubjectKey, request: Named | NamedOrAll
) -> list[ItemWaiting]:
    """Read what the agent waits for. A duplicate counts as waiting unless the run may know what it repeats."""
    if request.key is not None:
        filters = {"entities": [rules.entity_of(key.digest, run.user_id, request.namespace, request.key)]}
    else:
        filters = {"under": [rules.entities_under(key.digest, run.user_id, request.namespace)[:-1]]}
    packs = await context.recall_packs(run)
    async with context.transaction(run.tenant_id, "auditor") as tx:
        rows: list[Row] = await store.waiting(tx, run.agent_id, run.user_id, **filters)
        repeated = [row["memory_id"] for row in rows if row["memory_id"] is not None]
        known = await _known(tx, view_now(run, packs, tx.now), repeated)
    return [
        ItemWaiting(
            proposal_id=row["proposal_id"],
            asks="delete" if row["action"] == "retract" else "put",
            at=row["enqueued_at"],
        )
        for row in rows
        if row["memory_id"] not in known
    ]


def _items(answer: RecallAnswer, names: Mapping[str, Any]) -> list[Item]:
    """Return the items of an answer, those in doubt last; a conflict is one item, with its other values."""
    found = [item for record in (*answer.records, *answer.low_confidence) if (item := _item(record, names))]
    for conflict in answer.conflicts:
        by_key: dict[str | None, list[Item]] = {}
        for record in sorted(conflict.records, key=lambda one: one.provenance.promoted_at, reverse=True):
            if item := _item(record, names):
                by_key.setdefault(record.entity, []).append(item)
        for newest, *others in by_key.values():
            found.append(newest.model_copy(update={"conflicts": tuple(one.value for one in others)}))
    return found


def _item(record: Record, names: Mapping[str, Any]) -> Item | None:
    content = rules.read_content(record.value)
    if content is None:
        return None
    return Item(
        namespace=names.get("namespace", content[0]),
        key=names.get("key", content[1]),
        value=content[2],
        memory_id=record.id,
        created_at=record.provenance.observed_at,
        updated_at=record.provenance.promoted_at,
        valid_until=record.valid_until,
        classification=record.classification,
        confidence=record.confidence,
        score=record.score,
    )
