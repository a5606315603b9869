"""Why visible: the filters that a memory meets in a recall, for a run or at a time; recorded recalls, and replay."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Request, Response

from muniment.console.export import file_of, pages_of
from muniment.console.forms import read_form, text_field
from muniment.console.listing import INPUT_ERRORS, filter_values, input_problem, load_listing
from muniment.console.pages.packs import registered_pack
from muniment.console.rendering import page
from muniment.console.sealed_words import redirect_to_found, words_of
from muniment.console.urls import parse_time, query_fields
from muniment.console.visitors import Requires, Visitor
from muniment.errors import InvalidInput, MunimentError
from muniment.model.context import RunContext
from muniment.model.explanation import Explanation, FilterName, FilterVerdict
from muniment.model.promoted import PromotedMemory
from muniment.model.recall import RecallSummary
from muniment.recall.verbs import LOOKED_THROUGH

router = APIRouter()
Reader = Annotated[Visitor, Depends(Requires("read_memory"))]

# How many recalls are offered to choose from.
RECALLS_OFFERED = 12
# Around a moment: how far from it recalls are shown, among how many of the latest, and beside how many memories.
AROUND = timedelta(minutes=30)
RECALLS_SEARCHED = 1000
BELIEVED_SHOWN = 50
MOMENT_FIELDS = ("user_id", "agent_id", "at", "query")
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
# What each filter lets through (REC-1).
FILTERS: dict[FilterName, str] = {
    "user": "belongs to the run's user, or to the whole tenant",
    "session": "working memory: belongs to the run's session",
    "session_end": "working memory: its session has not ended",
    "workflow": "episodic memory: belongs to the run's user or workflow",
    "intent": "has no intent, the run's intent, or a parent of it",
    "classification": "has a label that the run and its role may see",
    "qualifiers": "has no qualifier that disagrees with the run, and every required one matches",
    "consent": "sensitive labels: covered by a consent in force today",
    "content": "its content has not been erased",
    "promoted": "was promoted by then",
    "retracted": "was not retracted by then",
    "expired": "had not expired by then",
    "freshness": "no older than the pack allows for its tier",
    "validity": "holds in the world at that time",
}
VISIBILITY: dict[str, str] = {
    "visible": "Every filter lets it through",
    "hidden": "Hidden",
    "not_yet_promoted": "Not promoted yet at that time",
    "expired": "Expired by that time",
    "not_valid": "It does not hold at that time",
    "retracted": "Retracted by that time",
    "tombstoned": "Its content has been erased",
}
REPLAY_REASONS: dict[str, str] = {
    "consent": "its consent has ended, or was granted again",
    "erased": "it has been erased since",
    "clearance": "the run's role may not see its label today",
    "moved": "its place changed because others came or went",
    "query_erased": "the query has been erased",
    "embedder": "the embedder used then is not available",
}
RECALL_FILTERS = ("user_id", "run_id", "agent_id", "memory_id", "since", "until")
_RECALL = ("at", "recall_id", "run_id", "agent_id", "user_id", "pack", "as_of", "with_query", "returned", "omitted")
RECALL_COLUMNS = {name: name for name in (*_RECALL, "degraded")}
_RUN_FIELDS = ("user_id", "session_id", "workflow_id", "intent_id", "role", "labels", "qualifiers", "pack")


@router.get("/why")
async def why(request: Request, visitor: Reader) -> Response:
    """Which filters hide a memory, or that none does."""
    typed = query_fields(request, "memory_id", "of", "recall_id", "as_of", *_RUN_FIELDS)
    chosen = typed["of"] in ("recall", "run", "moment")
    typed["of"] = typed["of"] if chosen else _default_choice(typed)
    context: dict[str, Any] = {"explained": None, "memory": None, "recalls": (), "pack": None}
    problem = None
    try:
        if not typed["memory_id"] and not typed["recall_id"]:
            context["recalls"] = await visitor.fabric.recalls.list(visitor.principal, limit=RECALLS_OFFERED)
        if typed["memory_id"]:
            context |= await _explain(visitor, typed, chosen=chosen)
    except INPUT_ERRORS as error:
        problem = input_problem(error)
    texts: dict[str, Any] = {"filters": FILTERS, "visibility": VISIBILITY, "filter_inputs": _filter_inputs}
    return page("why.html", visitor, problem=problem, typed=typed, **texts, **context)


@router.get("/why/replay")
async def replay(request: Request, visitor: Annotated[Visitor, Depends(Requires("audit"))]) -> Response:
    """A recorded recall, run again as of its time."""
    recall_id = query_fields(request, "recall_id")["recall_id"]
    fabric, who = visitor.fabric, visitor.principal
    found = problem = None
    recent: Sequence[RecallSummary] = ()
    try:
        if recall_id:
            found = await fabric.replay(who, recall_id)
        elif visitor.may("read_memory"):
            recent = await fabric.recalls.list(who, limit=RECALLS_OFFERED)
    except INPUT_ERRORS as error:
        problem = input_problem(error)
    context: dict[str, Any] = {"recall_id": recall_id, "replay": found, "recent": recent, "reasons": REPLAY_REASONS}
    return page("replay.html", visitor, problem=problem, **context)


@router.get("/why/believed")
async def believed(request: Request, visitor: Reader) -> Response:
    """What was known at a moment for a user, what an agent was told around it, and why."""
    words = words_of(request, visitor, "query")
    typed = query_fields(request, *MOMENT_FIELDS) | {"query": words.text}
    context: dict[str, Any] = {"memories": (), "nearest": None, "recalls": (), "at": None, "more": False}
    problem = None
    try:
        if words.problem is not None:
            raise words.problem
        if (at := parse_time(typed["at"], "at")) is not None:
            context |= await _believed(visitor, typed, at)
    except INPUT_ERRORS as error:
        problem = input_problem(error)
    recent = () if context["at"] else await visitor.fabric.recalls.list(visitor.principal, limit=RECALLS_OFFERED)
    return page("believed.html", visitor, problem=problem, typed=typed, recent=recent, **context)


@router.post("/why/believed")
async def ask_believed(request: Request, visitor: Reader) -> Response:
    """Lead to what was asked for; words that are looked for are sealed in the address."""
    form = await read_form(request, visitor)
    typed = {name: text_field(form, name) or "" for name in MOMENT_FIELDS}
    return redirect_to_found(visitor, "why/believed", "query", typed)


async def _believed(visitor: Visitor, typed: dict[str, str], at: datetime) -> dict[str, Any]:
    fabric, who = visitor.fabric, visitor.principal
    user, agent, query = (typed[name] or None for name in ("user_id", "agent_id", "query"))
    memories = await fabric.memories.list(who, user_id=user, query=query, as_of=at, limit=BELIEVED_SHOWN + 1)
    # At either end of the calendar there is no time around.
    since, until = (max(at, _FIRST + AROUND) - AROUND, min(at, _LAST - AROUND) + AROUND)
    named: dict[str, Any] = {"user_id": user, "agent_id": agent, "since": since, "until": until}
    near = await fabric.recalls.list(who, limit=RECALLS_SEARCHED, **named)
    near.sort(key=lambda one: abs(one.at - at))
    shown = {"memories": memories[:BELIEVED_SHOWN], "more": len(memories) > BELIEVED_SHOWN}
    nearest = await fabric.recalls.get(who, near[0].recall_id) if near else None
    return {**shown, "nearest": nearest, "recalls": near[1 : RECALLS_OFFERED + 1], "at": at}


@router.get("/why/recalls")
async def recalls(request: Request, visitor: Reader) -> Response:
    """The latest recalls."""
    fetch = partial(visitor.fabric.recalls.list, visitor.principal)
    found = await load_listing(request, "why/recalls", RECALL_FILTERS, fetch, "recall_id")
    return page("recalls.html", visitor, listing=found, problem=found.problem, searched=LOOKED_THROUGH)


@router.get("/why/recalls/export")
async def export_recalls(request: Request, visitor: Reader) -> Response:
    """The recalls that the filters find, never their queries, as a file."""
    fetch = partial(visitor.fabric.recalls.list, visitor.principal)
    pages = pages_of(fetch, "recall_id", filter_values(query_fields(request, *RECALL_FILTERS)))
    return await file_of(request, visitor, "recalls", RECALL_COLUMNS, pages)


@router.get("/why/recalls/{recall_id}")
async def recall(recall_id: str, visitor: Reader) -> Response:
    """One recall with what it returned."""
    return page("recall.html", visitor, recall=await visitor.fabric.recalls.get(visitor.principal, recall_id))


def _default_choice(typed: dict[str, str]) -> str:
    """What to explain where the link does not say."""
    if typed["recall_id"]:
        return "recall"
    return "run" if any(typed[name] for name in _RUN_FIELDS) else "moment" if typed["as_of"] else "recall"


async def _explain(visitor: Visitor, typed: dict[str, str], *, chosen: bool) -> dict[str, Any]:
    """The explanation; where no recall is chosen yet, recalls to choose from."""
    fabric, who, memory_id = visitor.fabric, visitor.principal, typed["memory_id"]
    if not chosen and typed["of"] == "recall" and not typed["recall_id"]:
        recalls = await fabric.recalls.list(who, memory_id=memory_id, limit=RECALLS_OFFERED)
        return {"memory": await fabric.get(who, memory_id), "recalls": recalls}
    run = None
    if typed["of"] == "recall":
        if not typed["recall_id"]:
            raise InvalidInput("is required; every recall returns its id", field="recall_id")
        explained = await fabric.explain(who, memory_id=memory_id, recall_id=typed["recall_id"])
    else:
        run = _run_context(who.tenant_id, typed) if typed["of"] == "run" else None
        as_of = parse_time(typed["as_of"], "as_of")
        explained = await fabric.explain(who, memory_id=memory_id, run=run, as_of=as_of)
    memory = await fabric.get(who, memory_id)
    return {"explained": explained, "memory": memory, "pack": await _pack_rules(visitor, explained, memory, run)}


def _run_context(tenant_id: str, typed: dict[str, str]) -> RunContext:
    """The run that was described in the form; raises `InvalidInput`."""
    fields: dict[str, Any] = {
        name: typed[name] or None for name in _RUN_FIELDS if name not in ("role", "labels", "qualifiers")
    }
    if typed["role"]:
        fields |= {"role": typed["role"], "roles": {typed["role"]}}
    if typed["labels"]:
        fields["classification_allowed"] = frozenset(typed["labels"].replace(",", " ").split())
    qualifiers = [part.strip().partition("=") for part in typed["qualifiers"].split(",") if part.strip()]
    if any(not equals for _, equals, _ in qualifiers):
        raise InvalidInput("expected pairs such as region=de, separated by commas", field="qualifiers")
    fields["qualifiers"] = {name.strip(): value.strip() for name, _, value in qualifiers}
    return RunContext(tenant_id=tenant_id, run_id="console", agent_id="console", **fields)


async def _pack_rules(
    visitor: Visitor, explained: Explanation, memory: PromotedMemory, run: RunContext | None
) -> dict[str, Any] | None:
    """The rules of the pack that recall applies to the memory; None if the visitor may not read packs."""
    if explained.pack is None or not visitor.may("read_packs"):
        return None
    try:
        pack = await registered_pack(visitor, explained.pack)
    except MunimentError:
        return None  # A pack that was never registered: only its name is known.
    policy = pack.memory_layer.recall_policy
    return {
        "freshness": policy.freshness[memory.tier],
        "confidence": policy.confidence,
        "max_recalls": policy.max_recalls,
        "labels": pack.labels,
        "sensitive": tuple(one.name for one in pack.classifications if one.sensitive),
        "role": pack.labels_for(run.role) if run is not None else None,
    }


def _filter_inputs(one: FilterVerdict, side: str) -> list[tuple[str, datetime | None, str]]:
    """What one side of a filter compared, by name: a time, or text."""
    inputs: dict[str, Any] = one.memory if side == "memory" else one.asked
    return [(name, _as_time(value), _as_text(value, name)) for name, value in inputs.items()]


def _as_time(value: Any) -> datetime | None:
    if isinstance(value, str) and value[:4].isdigit() and "T" in value:
        return datetime.fromisoformat(value)
    return value if isinstance(value, datetime) else None


def _as_text(value: Any, name: str = "") -> str:
    match value:
        case None:
            return "none"
        case dict():
            pairs = cast("dict[str, Any]", value).items()
            return ", ".join(f"{name}={_as_text(inner)}" for name, inner in pairs) or "none"
        case list() | tuple() | set() | frozenset():
            # In a list of users or intents, None stands for memories that are not bound to one.
            none = f"no {name.removesuffix('s')}"
            return ", ".join(none if one is None else _as_text(one) for one in cast("list[Any]", value)) or "none"
        case _:
            return str(value)
