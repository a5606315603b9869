"""Memory: to browse and to search, over time, as a graph; and one memory's whole life."""

from datetime import datetime
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Depends, Request, Response

from muniment.console.addresses import address, asked, field, instant
from muniment.console.forms import went
from muniment.console.graph import BOX_HEIGHT, BOX_WIDTH, drawn
from muniment.console.life import life_of, state_of
from muniment.console.rendering import page
from muniment.console.slider import HALF, WIDTH, moment_at, slider
from muniment.console.spans import pretty
from muniment.console.visitors import Allowed, Visitor, form_of, text_of, told
from muniment.errors import HistoryCollected, InvalidInput, MunimentError, NotFound
from muniment.model.browse import MemoryShown, Wanted
from muniment.model.fields import Tier, WriteClass
from muniment.model.ids import made_at
from muniment.model.promoted import RetractionReason

router = APIRouter()
Reader = Annotated[Visitor, Depends(Allowed("read_memory"))]

PAGE = 50
CONFIRMATION = "retract"
# What a person may say of it: the other reasons belong to what does them.
REASONS: dict[RetractionReason, str] = {
    "wrong": "it does not hold, or never did",
    "deprecated": "it held, and is of no use any more",
    "corrected": "somebody else has set it right",
}


@router.get("/memory")
async def browse(request: Request, visitor: Reader) -> Response:
    """The tenant's memories, by what is asked for."""
    typed = asked(request, "query", "entity", "user_id", "tier", "write_class", "state", "after")
    given: dict[str, Any] = {name: value or None for name, value in typed.items()}
    found: list[MemoryShown] = []
    problem = None
    try:
        found = await visitor.fabric.memories.list(visitor.principal, limit=PAGE + 1, **given)
    except MunimentError as error:
        problem = _beside(error)
    return _asked_for(
        "memories.html",
        visitor,
        typed,
        problem,
        memories=found[:PAGE],
        next=found[PAGE - 1].memory_id if len(found) > PAGE else None,
        narrowed=any(value for name, value in typed.items() if name != "after"),
        tiers=get_args(Tier),
        classes=get_args(WriteClass),
        states=get_args(Wanted),
    )


@router.get("/memory/over-time")
async def over_time(request: Request, visitor: Reader) -> Response:
    """The memory of a user, an entity or the tenant as it was at a moment, or what changed between two."""
    typed = asked(request, "user_id", "entity", "at", "since", "slide", "after")
    whose: dict[str, Any] = {"user_id": typed["user_id"] or None, "entity": typed["entity"] or None}
    now = visitor.fabric.access.now()
    shown: dict[str, Any] = {"memories": [], "changes": None, "next": None, "slider": None, "at_moment": now}
    problem = None
    memories, who = visitor.fabric.memories, visitor.principal
    try:
        at, since = _slid(typed["slide"]) or instant(typed["at"], "at"), instant(typed["since"], "since")
        shown["at_moment"] = at or now
        shown["slider"] = slider(await memories.moments(who, **whose), at or now, now)
        if since is not None:
            shown["changes"] = await memories.changes(who, since=since, until=at, **whose)
        else:
            found = await memories.list(who, as_of=at, limit=PAGE + 1, after=typed["after"] or None, **whose)
            shown["memories"] = found[:PAGE]
            shown["next"] = found[PAGE - 1].memory_id if len(found) > PAGE else None
        typed["at"] = typed["at"] or (at.isoformat() if at is not None else "")
    except MunimentError as error:
        problem = _beside(error)
    more = {"field": field, "slider_width": WIDTH, "slider_half": HALF}
    return _asked_for("memory_over_time.html", visitor, typed, problem, **shown, **more)


@router.get("/memory/graph")
async def graph(request: Request, visitor: Reader) -> Response:
    """The entities around one, drawn."""
    typed = asked(request, "entity", "hops")
    found = problem = None
    try:
        if typed["entity"]:
            hops = int(typed["hops"]) if typed["hops"] in ("1", "2", "3") else 1
            found = await visitor.fabric.memories.graph(visitor.principal, typed["entity"], hops=hops)
    except MunimentError as error:
        problem = _beside(error)
    drawing = drawn(found) if found is not None else None
    box = BOX_WIDTH, BOX_HEIGHT
    return _asked_for("memory_graph.html", visitor, typed, problem, graph=found, drawing=drawing, box=box)


def _asked_for(template: str, visitor: Visitor, typed: dict[str, str], problem: str | None, **shown: Any) -> Response:
    """A page with what was asked for, or with what was wrong about it beside the form."""
    status = 200 if problem is None else 400
    return page(template, visitor, status=status, at="memory", typed=typed, problem=problem, address=address, **shown)


@router.get("/memory/{memory_id}")
async def one(memory_id: str, visitor: Reader) -> Response:
    """One memory with its whole life."""
    return await _one(memory_id, visitor)


@router.post("/memory/{memory_id}/retract")
async def retract(
    memory_id: str, request: Request, visitor: Annotated[Visitor, Depends(Allowed("retract"))]
) -> Response:
    """Withdraw it for good."""
    form = await form_of(request, visitor)
    given = text_of(form, "reason")
    reason: RetractionReason | None = next((name for name in REASONS if name == given), None)
    try:
        if text_of(form, "confirmation") != CONFIRMATION:
            raise InvalidInput(f"type {CONFIRMATION} to withdraw it; nothing was done", field="confirmation")
        if reason is None:
            raise InvalidInput(f"expected one of {', '.join(REASONS)}", field="reason")
        await visitor.fabric.retract(visitor.principal, memory_id, reason=reason)
    except InvalidInput as error:
        return await _one(memory_id, visitor, problem=told(error), reason=reason, status=400)
    return went(visitor, f"memory/{memory_id}", "Retracted: no run recalls it from now on.")


async def _one(
    memory_id: str, visitor: Visitor, *, problem: str | None = None, reason: str | None = None, status: int = 200
) -> Response:
    trail = await visitor.fabric.trail(visitor.principal, memory_id)
    now = visitor.fabric.access.now()
    memory = trail.memory
    state = state_of(memory, now)
    return page(
        "memory.html",
        visitor,
        status=status,
        at="memory",
        trail=trail,
        memory=memory,
        state=state,
        steps=life_of(trail, now),
        value=pretty(memory.value) if memory.value is not None else None,
        pretty=pretty,
        made_at=made_at,
        may_retract=memory.retracted_at is None and memory.tombstoned_at is None and visitor.may("retract"),
        reasons=REASONS,
        confirmation=CONFIRMATION,
        chosen=reason,
        problem=problem,
        address=address,
    )


def _slid(value: str) -> datetime | None:
    """The moment that the slider stands at, if it was that which was sent."""
    try:
        return moment_at(value) if value else None
    except ValueError:
        raise InvalidInput("expected seconds since 1970", field="slide") from None


def _beside(error: MunimentError) -> str:
    """What to say beside the form; raises what no other input would mend."""
    if not isinstance(error, InvalidInput | HistoryCollected | NotFound):
        raise error
    return told(error) + ("; an entity is written like customer:cus_77" if error.field == "entity" else "")
