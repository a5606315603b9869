"""Audit: the log, security events, the chain and its verification, archives, and the trail of a memory."""

from collections.abc import AsyncGenerator, Sequence
from functools import partial
from typing import Annotated, Any, cast, get_args

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic_core import from_json, to_json

from muniment.console.export import file_of, pages_of
from muniment.console.forms import raw_fields, read_form
from muniment.console.listing import Listing, load_listing
from muniment.console.progress import Progress, respond
from muniment.console.rendering import HEADERS, page
from muniment.console.urls import console_url, parse_time, query_fields
from muniment.console.visitors import Requires, Visitor, error_text
from muniment.errors import InvalidInput, MunimentError, NotFound, StorageUnavailable
from muniment.model.archive import ArchiveCheck
from muniment.model.chain import Head, Verification
from muniment.model.events import Event, EventType

router = APIRouter()

PAGE_SIZE = 50
# The latest memories that a trail can be chosen from.
MEMORIES_OFFERED = 20
# One transaction may write many events: so many are shown at first, all of them on request.
MOST_SHOWN = 75
# The columns of an export.
COLUMNS = {name: name for name in ("seq", "at", "type", "actor", "event_id")} | {"data": "items"}
# The log has no index by actor: so many events are searched for one page.
SEARCHED = 1000
TYPES: tuple[EventType, ...] = get_args(EventType)
SECURITY: EventType = "memory.security"

Auditor = Annotated[Visitor, Depends(Requires("audit"))]
Before = Annotated[int, Query(ge=0, le=2**62)]


@router.get("/audit")
async def log(request: Request, visitor: Auditor, before: Before = 0) -> Response:
    """The log, newest first, optionally filtered."""
    filters = _filters(request)
    problem: str | None = None
    found: dict[str, Any] = {"events": [], "more": None, "hidden": 0}
    try:
        found = await _events(visitor, filters, before, whole="whole" in request.query_params)
    except InvalidInput as error:
        problem = error_text(error)
    context: dict[str, Any] = {"types": TYPES, "filters": filters, "before": before}
    context |= {"whole_url": console_url("audit", **filters, before=before, whole="yes")}
    return page("audit.html", visitor, problem=problem, **context, **_urls("audit", filters, filters, found), **found)


def _urls(path: str, typed: dict[str, str], filters: dict[str, str], found: dict[str, Any]) -> dict[str, Any]:
    """The first and the next page of the log under a path, and what its filters find as files."""
    return {
        "first_url": console_url(path, **typed),
        "next_url": console_url(path, **typed, before=found["more"]) if found["more"] else None,
        "files": Listing("audit", filters, "", ()).files,
    }


def _filters(request: Request) -> dict[str, str]:
    """The filters of the log, as they were typed; raises `InvalidInput`."""
    filters = query_fields(request, "type", "actor", "about", "since", "until")
    if filters["type"] and filters["type"] not in TYPES:
        raise InvalidInput("expected a type of event", field="type")
    return filters


def _narrowed(filters: dict[str, str]) -> dict[str, Any]:
    """The filters as the log takes them, but for the actor; raises `InvalidInput`."""
    return {
        "types": [cast("EventType", filters["type"])] if filters["type"] else None,
        "about": filters["about"] or None,
        "since": parse_time(filters["since"], "since"),
        "until": parse_time(filters["until"], "until"),
    }


@router.get("/audit/export")
async def export(request: Request, visitor: Auditor) -> Response:
    """The whole log in the range and by the filters, in its order, as a file: CSV or JSON Lines."""
    filters = _filters(request)

    async def fetch(limit: int, after: int | None, **narrowed: Any) -> Sequence[Event]:
        return await visitor.fabric.events(visitor.principal, after=after or 0, limit=limit, **narrowed)

    async def pages() -> AsyncGenerator[Sequence[Event]]:
        async for found in pages_of(fetch, "seq", _narrowed(filters)):
            yield [one for one in found if not filters["actor"] or one.actor == filters["actor"]]

    return await file_of(request, visitor, "log", COLUMNS, pages())


async def _events(visitor: Visitor, filters: dict[str, str], before: int, *, whole: bool = False) -> dict[str, Any]:
    """A page of the log, how many of its events are not shown, and the sequence number that the next page is before."""
    actor = filters["actor"]
    limit = SEARCHED if actor else PAGE_SIZE
    events = await visitor.fabric.events(
        visitor.principal, after=before, limit=limit, latest=True, **_narrowed(filters)
    )
    found = [one for one in events if not actor or one.actor == actor]
    # A page ends with a whole transaction, as a page of the log does.
    last = found[PAGE_SIZE - 1].seq if actor and len(found) > PAGE_SIZE else 0
    on_page = [one for one in found if one.seq >= last]
    more = last if len(on_page) < len(found) else events[-1].seq if len(events) >= limit else None
    shown = on_page if whole else on_page[:MOST_SHOWN]
    return {"events": shown, "more": more, "hidden": len(on_page) - len(shown)}


@router.get("/audit/security")
async def security(request: Request, visitor: Auditor, before: Before = 0) -> Response:
    """Denied attempts, newest first, optionally of an actor or in a range of time."""
    typed = query_fields(request, "actor", "since", "until")
    filters = {"type": SECURITY, "about": "", **typed}
    problem: str | None = None
    found: dict[str, Any] = {"events": [], "more": None, "hidden": 0}
    try:
        found = await _events(visitor, filters, before, whole=True)
    except InvalidInput as error:
        problem = error_text(error)
    context: dict[str, Any] = {"filters": typed, "before": before, **_urls("audit/security", typed, filters, found)}
    return page("audit_security.html", visitor, problem=problem, **context, **found)


@router.get("/audit/chain")
async def chain(visitor: Auditor) -> Response:
    """The head of the chain, and the form to verify it."""
    return await _chain_page(visitor)


async def _chain_page(
    visitor: Visitor, *, text: str = "", found: Verification | None = None, problem: str | None = None
) -> Response:
    head: Head | None = found.head if found is not None else None
    if found is None:
        try:
            head = await visitor.fabric.chain_head(visitor.principal)
        except NotFound:
            head = None
    return page("audit_chain.html", visitor, problem=problem, head=head, found=found, text=text)


@router.post("/audit/chain")
async def verify(request: Request, visitor: Auditor) -> Response:
    """Verify the chain, and a head that was exported earlier."""
    text = raw_fields(await read_form(request, visitor), "head")["head"].strip()

    async def work(on_progress: Progress) -> Response:
        try:
            head = _parse_head(text) if text else None
            found = await visitor.fabric.verify(visitor.principal, head=head, on_progress=on_progress)
        except StorageUnavailable:
            raise
        except MunimentError as error:
            return await _chain_page(visitor, text=text, problem=error_text(error))
        return await _chain_page(visitor, text=text, found=found)

    return await respond(request, work)


def _parse_head(text: str) -> dict[str, Any]:
    try:
        head = from_json(text)
    except ValueError:
        head = None
    if not isinstance(head, dict):
        raise InvalidInput("expected the JSON of an exported head", field="head")
    return cast("dict[str, Any]", head)


@router.get("/audit/head.json")
async def head(visitor: Auditor) -> Response:
    """Download the head of the chain, to keep outside the database administrators' reach."""
    found = await visitor.fabric.chain_head(visitor.principal)
    disposition = f'attachment; filename="muniment-head-{found.batch}.json"'
    content = to_json(found, indent=2) + b"\n"
    return Response(content, media_type="application/json", headers=HEADERS | {"Content-Disposition": disposition})


@router.get("/audit/archives")
async def archives(request: Request, visitor: Auditor) -> Response:
    """The archives of old captures."""
    return await _archives_page(request, visitor)


async def _archives_page(request: Request, visitor: Visitor, found: ArchiveCheck | None = None) -> Response:
    fetch = partial(visitor.fabric.archives, visitor.principal)
    listing = await load_listing(request, "audit/archives", (), fetch, "archive_id")
    return page("audit_archives.html", visitor, problem=listing.problem, listing=listing, found=found)


@router.post("/audit/archives")
async def check_archives(request: Request, visitor: Auditor) -> Response:
    """Check every archive file."""
    await read_form(request, visitor)

    async def work(on_progress: Progress) -> Response:
        found = await visitor.fabric.verify_archives(visitor.principal, on_progress=on_progress)
        return await _archives_page(request, visitor, found)

    return await respond(request, work)


@router.get("/audit/trail")
async def trail(request: Request, visitor: Auditor) -> Response:
    """The provenance of a memory: from its promotion back to its capture, and forward to its uses."""
    memory_id = query_fields(request, "memory_id")["memory_id"]
    fabric, who = visitor.fabric, visitor.principal
    context: dict[str, Any] = {"memory_id": memory_id, "found": None, "latest": ()}
    problem = None
    try:
        if memory_id:
            context["found"] = await fabric.trail(who, memory_id)
        elif visitor.may("read_memory"):
            context["latest"] = await fabric.memories.list(who, state="all", limit=MEMORIES_OFFERED)
    except (NotFound, InvalidInput) as error:
        problem = error_text(error)
    return page("audit_trail.html", visitor, status=404 if problem else 200, problem=problem, **context)
