"""Why visible: every filter that a memory meets in a recall, a run or a moment; and recalls run again."""

from datetime import datetime
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Request, Response

from muniment.console.addresses import address, asked, field, instant
from muniment.console.registered import registered
from muniment.console.rendering import page
from muniment.console.visitors import Allowed, Visitor, told
from muniment.errors import HistoryCollected, InvalidInput, MunimentError, NotFound
from muniment.model.context import RunContext
from muniment.model.explanation import Explanation, FilterName, FilterVerdict
from muniment.model.promoted import PromotedMemory
from muniment.pack import Pack

router = APIRouter()

# Recalls to pick from.
LATEST = 12
# What each filter lets through, as REC-1 has it.
ASKS: dict[FilterName, str] = {
    "user": "the run's own user, or the tenant's own",
    "session": "working memory: the run's own session",
    "workflow": "episodic memory: the run's user or workflow",
    "intent": "no intent, the run's, or one above it",
    "classification": "a label that the run and its role may see",
    "qualifiers": "none that disagrees with the run's, and all it must have said",
    "consent": "a sensitive label: a consent that holds today",
    "content": "its content is still there",
    "promoted": "promoted by then",
    "retracted": "not withdrawn by then",
    "expired": "not past its end by then",
    "freshness": "no older than the pack's window for its tier",
}
VISIBLE: dict[str, str] = {
    "visible": "Every filter lets it through",
    "hidden": "Hidden",
    "not_yet_promoted": "Not promoted yet at that moment",
    "expired": "Expired by that moment",
    "retracted": "Withdrawn by that moment",
    "tombstoned": "Its content is gone",
}
MOVED: dict[str, str] = {
    "consent": "its consent has ended, or has come back",
    "erased": "it was erased since",
    "clearance": "the run's role may not see its label today",
    "moved": "what was before or after it changed",
    "query_erased": "what was asked for was erased",
    "embedder": "the embedder of then is not here",
}
_RUN = ("user_id", "session_id", "workflow_id", "intent_id", "role", "labels", "qualifiers", "pack")


@router.get("/why")
async def why(request: Request, visitor: Annotated[Visitor, Depends(Allowed("read_memory"))]) -> Response:
    """Which filters hide a memory, or that none does."""
    typed = asked(request, "memory_id", "of", "recall_id", "as_of", *_RUN)
    typed["of"] = typed["of"] if typed["of"] in ("recall", "run", "moment") else _meant(typed)
    shown: dict[str, Any] = {"explained": None, "memory": None, "recalls": (), "pack": None, "run": None}
    problem = None
    try:
        if not any(typed[name] for name in ("memory_id", "recall_id")):
            shown["recalls"] = await visitor.fabric.recalls.list(visitor.principal, limit=LATEST)
        if typed["memory_id"]:
            shown |= await _looked_into(visitor, typed, asking=bool(request.query_params.get("of")))
    except (InvalidInput, NotFound, HistoryCollected) as error:
        problem = told(error)
    return page(
        "why.html",
        visitor,
        status=200 if problem is None else 400,
        at="why",
        typed=typed,
        problem=problem,
        asks=ASKS,
        visible=VISIBLE,
        field=field,
        address=address,
        inputs=_inputs,
        **shown,
    )


@router.get("/why/replay")
async def replay(request: Request, visitor: Annotated[Visitor, Depends(Allowed("audit"))]) -> Response:
    """A recorded recall, run again as of then."""
    typed = asked(request, "recall_id")
    found = problem = None
    try:
        if typed["recall_id"]:
            found = await visitor.fabric.replay(visitor.principal, typed["recall_id"])
    except (InvalidInput, NotFound, HistoryCollected) as error:
        problem = told(error)
    return page(
        "replay.html",
        visitor,
        status=200 if problem is None else 400,
        at="why",
        typed=typed,
        replay=found,
        problem=problem,
        moved=MOVED,
        address=address,
    )


def _meant(typed: dict[str, str]) -> str:
    """What a link without a choice is about."""
    if typed["recall_id"]:
        return "recall"
    return "run" if any(typed[name] for name in _RUN) else "moment" if typed["as_of"] else "recall"


async def _looked_into(visitor: Visitor, typed: dict[str, str], *, asking: bool) -> dict[str, Any]:
    """The explanation; where nothing is chosen yet, the recalls that can be."""
    fabric, who, memory_id = visitor.fabric, visitor.principal, typed["memory_id"]
    if not asking and typed["of"] == "recall" and not typed["recall_id"]:
        recalls = await fabric.recalls.list(who, memory_id=memory_id, limit=LATEST)
        return {"memory": await fabric.get(who, memory_id), "recalls": recalls}
    run = None
    if typed["of"] == "recall":
        if not typed["recall_id"]:
            raise InvalidInput("is required: a recall's answer carries it", field="recall_id")
        explained = await fabric.explain(who, memory_id=memory_id, recall_id=typed["recall_id"])
    else:
        run = _run(who.tenant_id, typed) if typed["of"] == "run" else None
        as_of = instant(typed["as_of"], "as_of")
        explained = await fabric.explain(who, memory_id=memory_id, run=run, as_of=as_of)
    memory = await fabric.get(who, memory_id)
    pack = await _pack(visitor, explained)
    return {"explained": explained, "memory": memory, "run": run, "pack": _said(pack, memory, run)}


def _run(tenant_id: str, typed: dict[str, str]) -> RunContext:
    """The run that is asked about; raises `InvalidInput`."""
    given: dict[str, Any] = {name: typed[name] or None for name in _RUN if name not in ("role", "labels", "qualifiers")}
    if typed["role"]:
        given |= {"role": typed["role"], "roles": {typed["role"]}}
    if typed["labels"]:
        given["classification_allowed"] = frozenset(typed["labels"].replace(",", " ").split())
    qualifiers = [part.strip().partition("=") for part in typed["qualifiers"].split(",") if part.strip()]
    if any(not equals for _, equals, _ in qualifiers):
        raise InvalidInput("expected pairs such as region=de, apart by commas", field="qualifiers")
    given["qualifiers"] = {name.strip(): value.strip() for name, _, value in qualifiers}
    return RunContext(tenant_id=tenant_id, run_id="console", agent_id="console", **given)


async def _pack(visitor: Visitor, explained: Explanation) -> Pack | None:
    if explained.pack is None or not visitor.may("read_packs"):
        return None
    try:
        return await registered(visitor, explained.pack)
    except MunimentError:
        return None  # A fabric's own that was never registered: its name is all there is to show.


def _said(pack: Pack | None, memory: PromotedMemory, run: RunContext | None) -> dict[str, Any] | None:
    """What the pack says that matters here."""
    if pack is None:
        return None
    policy = pack.memory_layer.recall_policy
    return {
        "ref": pack.ref,
        "freshness": policy.freshness[memory.tier],
        "confidence": policy.confidence,
        "most": policy.max_recalls,
        "labels": pack.labels,
        "sensitive": tuple(one.name for one in pack.classifications if one.sensitive),
        "role": pack.labels_for(run.role) if run is not None else None,
    }


def _inputs(one: FilterVerdict, side: str) -> list[tuple[str, datetime | None, str]]:
    """What one side of a filter had, by name: a moment, or words."""
    given: dict[str, Any] = one.memory if side == "memory" else one.asked
    return [(name, _moment(value), _plain(value)) for name, value in given.items()]


def _moment(value: Any) -> datetime | None:
    if isinstance(value, str) and value[:4].isdigit() and "T" in value:
        return datetime.fromisoformat(value)
    return value if isinstance(value, datetime) else None


def _plain(value: Any) -> str:
    match value:
        case None:
            return "none"
        case dict():
            pairs = cast("dict[str, Any]", value).items()
            return ", ".join(f"{name}={_plain(inner)}" for name, inner in pairs) or "none"
        case list() | tuple() | set() | frozenset():
            # Among names nothing stands for what is not bound to any.
            return ", ".join("unscoped" if one is None else _plain(one) for one in cast("list[Any]", value)) or "none"
        case _:
            return str(value)
