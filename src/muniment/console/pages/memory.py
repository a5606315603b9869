"""Memory: browsing and searching, memory over time, the entity graph, and one memory with its history."""

from datetime import datetime
from functools import partial
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Depends, Request, Response

from muniment.console.forms import read_form, redirect, text_field
from muniment.console.graph import BOX_HEIGHT, BOX_WIDTH, OfferedEntity, draw, offered_entities
from muniment.console.listing import INPUT_ERRORS, input_problem, load_listing
from muniment.console.pages.packs import registered_pack
from muniment.console.rendering import page
from muniment.console.sealed_words import redirect_to_found, words_of
from muniment.console.slider import HALF, WIDTH, slider, time_from_seconds
from muniment.console.timeline import state_of, timeline
from muniment.console.urls import parse_time, query_fields
from muniment.console.visitors import Requires, Visitor, error_text
from muniment.errors import Conflict, InvalidInput
from muniment.model.browse import MemorySummary, Wanted
from muniment.model.fields import Tier, WriteClass
from muniment.model.ids import made_at
from muniment.model.promoted import PromotedMemory, StatedReason
from muniment.promotion.rules import undo_until

router = APIRouter()
Reader = Annotated[Visitor, Depends(Requires("read_memory"))]

FILTERS = ("query", "entity", "user_id", "tier", "write_class", "state")
CONFIRMATION = "retract"
# The latest memories whose entities are offered for the graph.
MEMORIES_SEARCHED = 50
# The reasons that a person may give; the others are set by the action that causes them.
REASONS: dict[StatedReason, str] = {
    "wrong": "it is not true, or never was",
    "deprecated": "it was true, but is no longer useful",
    "corrected": "it has been corrected elsewhere",
}


@router.get("/memory")
async def browse(request: Request, visitor: Reader) -> Response:
    """The tenant's memories."""
    fetch = partial(visitor.fabric.memories.list, visitor.principal)
    words = words_of(request, visitor, "query")
    found = await load_listing(request, "memory", FILTERS, fetch, "memory_id", words=words)
    choices: dict[str, Any] = {"tiers": get_args(Tier), "classes": get_args(WriteClass), "states": get_args(Wanted)}
    return page("memories.html", visitor, listing=found, problem=found.problem, **choices)


@router.post("/memory/search")
async def search(request: Request, visitor: Reader) -> Response:
    """Lead to what was asked for; words that are looked for are sealed in the address."""
    form = await read_form(request, visitor)
    typed = {name: text_field(form, name) or "" for name in FILTERS}
    return redirect_to_found(visitor, "memory", "query", typed)


@router.get("/memory/over-time")
async def over_time(request: Request, visitor: Reader) -> Response:
    """The memory of a user, an entity or the tenant as it was at a time, or what changed between two."""
    typed = query_fields(request, "user_id", "entity", "at", "since", "slide")
    scope: dict[str, Any] = {"user_id": typed["user_id"] or None, "entity": typed["entity"] or None}
    now = visitor.fabric.access.now()
    context: dict[str, Any] = {"listing": None, "changes": None, "slider": None, "at": now}
    problem = None
    memories, who = visitor.fabric.memories, visitor.principal
    try:
        at, since = (
            time_from_seconds(typed["slide"]) or parse_time(typed["at"], "at"),
            parse_time(typed["since"], "since"),
        )
        typed["at"] = typed["at"] or (at.isoformat() if at is not None else "")
        context["at"] = at or now
        context["slider"] = slider(await memories.moments(who, **scope), at or now, now)
        if since is not None:
            context["changes"] = await memories.changes(who, since=since, until=at, **scope)
        else:

            async def fetch(limit: int, after: str | None, **_: Any) -> list[MemorySummary]:
                return await memories.list(who, as_of=at, limit=limit, after=after, **scope)

            filters = ("user_id", "entity", "at", "slide")
            context["listing"] = await load_listing(request, "memory/over-time", filters, fetch, "memory_id")
            problem = context["listing"].problem
    except INPUT_ERRORS as error:
        problem = input_problem(error)
    sizes: dict[str, Any] = {"slider_width": WIDTH, "slider_half": HALF}
    return page("memory_over_time.html", visitor, problem=problem, typed=typed, **sizes, **context)


@router.get("/memory/graph")
async def graph(request: Request, visitor: Reader) -> Response:
    """The entities around one, drawn."""
    typed = query_fields(request, "entity", "hops")
    found = problem = None
    entities: list[OfferedEntity] = []
    memories, who = visitor.fabric.memories, visitor.principal
    try:
        if typed["entity"]:
            hops = int(typed["hops"]) if typed["hops"] in ("1", "2", "3") else 1
            found = await memories.graph(who, typed["entity"], hops=hops)
        else:
            entities = offered_entities(await memories.list(who, limit=MEMORIES_SEARCHED))
    except INPUT_ERRORS as error:
        problem = input_problem(error)
    drawing = draw(found) if found is not None else None
    context: dict[str, Any] = {"typed": typed, "graph": found, "drawing": drawing, "box": (BOX_WIDTH, BOX_HEIGHT)}
    context |= {"entities": entities, "searched": MEMORIES_SEARCHED}
    return page("memory_graph.html", visitor, problem=problem, **context)


@router.get("/memory/{memory_id}")
async def memory(memory_id: str, visitor: Reader) -> Response:
    """One memory with its history."""
    return await _memory_page(memory_id, visitor)


@router.post("/memory/{memory_id}/retract")
async def retract(
    memory_id: str, request: Request, visitor: Annotated[Visitor, Depends(Requires("retract"))]
) -> Response:
    """Retract a memory for good."""
    form = await read_form(request, visitor)
    typed = text_field(form, "reason")
    reason: StatedReason | None = next((name for name in REASONS if name == typed), None)
    try:
        if text_field(form, "confirmation") != CONFIRMATION:
            raise InvalidInput(f"type {CONFIRMATION} to confirm; nothing was retracted", field="confirmation")
        if reason is None:
            raise InvalidInput(f"expected one of {', '.join(REASONS)}", field="reason")
        await visitor.fabric.retract(visitor.principal, memory_id, reason=reason)
    except InvalidInput as error:
        return await _memory_page(memory_id, visitor, problem=error_text(error), reason=reason)
    return redirect(visitor, f"memory/{memory_id}", "Retracted. It will not be recalled again.")


@router.post("/memory/{memory_id}/undo")
async def undo(memory_id: str, request: Request, visitor: Annotated[Visitor, Depends(Requires("retract"))]) -> Response:
    """Undo what policy promoted, and bring back what it had superseded."""
    await read_form(request, visitor)
    try:
        done = await visitor.fabric.undo(visitor.principal, memory_id)
    except Conflict as error:
        return redirect(visitor, f"memory/{memory_id}", f"Not undone: {error.message}")
    said = "Undone"
    if done.restored:
        said += f": {len(done.restored)} restored"
    if done.not_restored:
        said += f", {len(done.not_restored)} not restored: look at the queue"
    return redirect(visitor, f"memory/{memory_id}", said)


async def _undo_until(visitor: Visitor, memory: PromotedMemory) -> datetime | None:
    """Return until when the promotion of a live memory by policy can be undone; None where it cannot (PRO-8)."""
    if memory.approver != "auto" or not visitor.may("read_packs"):
        return None
    in_force = await visitor.fabric.packs.in_force(visitor.principal)
    until = undo_until(memory.approver, memory.promoted_at, await registered_pack(visitor, in_force.pack))
    return until if until is not None and visitor.fabric.access.now() <= until else None


async def _memory_page(
    memory_id: str, visitor: Visitor, *, problem: str | None = None, reason: str | None = None
) -> Response:
    trail = await visitor.fabric.trail(visitor.principal, memory_id)
    now = visitor.fabric.access.now()
    memory = trail.memory
    may_retract = memory.retracted_at is None and memory.tombstoned_at is None and visitor.may("retract")
    return page(
        "memory.html",
        visitor,
        problem=problem,
        trail=trail,
        memory=memory,
        state=state_of(memory, now),
        steps=timeline(trail, now),
        made_at=made_at,
        may_retract=may_retract,
        undo_until=await _undo_until(visitor, memory) if may_retract else None,
        reasons=REASONS,
        confirmation=CONFIRMATION,
        chosen=reason,
    )
