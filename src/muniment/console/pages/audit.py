"""Audit: the log, what was denied, the chain and its verification, archives, and the trail of any memory."""

from typing import Annotated, Any, cast, get_args

from fastapi import APIRouter, Depends, Query, Request, Response
from pydantic_core import from_json, to_json

from muniment.console.forms import typed
from muniment.console.rendering import HEADERS, page
from muniment.console.running import Progress, answered
from muniment.console.visitors import Allowed, Visitor, form_of, told
from muniment.errors import InvalidInput, MunimentError, NotFound, StorageUnavailable
from muniment.model.archive import ArchiveCheck
from muniment.model.chain import Head, Verification
from muniment.model.events import EventType

router = APIRouter()

AT_ONCE = 50
AT_MOST = 75
LOOKED_THROUGH = 1000
ARCHIVES = 50
TYPES: tuple[EventType, ...] = get_args(EventType)
SECURITY: EventType = "memory.security"
_NUMBER = 2**62

Auditor = Annotated[Visitor, Depends(Allowed("audit"))]
Before = Annotated[int, Query(ge=0, le=_NUMBER)]


@router.get("/audit")
async def log(
    visitor: Auditor,
    type: str | None = None,  # noqa: A002  the name of the field
    actor: str | None = None,
    about: str | None = None,
    before: Before = 0,
    whole: str | None = None,
) -> Response:
    """The log, the latest first: all of it, or what was asked for."""
    given = {"type": type or "", "actor": (actor or "").strip(), "about": (about or "").strip()}
    if given["type"] and given["type"] not in TYPES:
        raise InvalidInput("expected a type of event", field="type")
    problem: str | None = None
    found: dict[str, Any] = {"events": [], "more": None, "left": 0}
    try:
        found = await _events(visitor, given, before, whole=whole is not None)
    except InvalidInput as error:
        problem = told(error)
    return page(
        "audit.html",
        visitor,
        status=400 if problem else 200,
        at="audit",
        types=TYPES,
        given=given,
        before=before,
        problem=problem,
        **found,
    )


async def _events(visitor: Visitor, given: dict[str, str], before: int, *, whole: bool = False) -> dict[str, Any]:
    """A page of the log, how many more it would have, and the number that the next one comes before."""
    actor = given["actor"]
    # The log is not kept by who did it: so many of its events are looked through at once.
    limit = LOOKED_THROUGH if actor else AT_ONCE
    events = await visitor.fabric.events(
        visitor.principal,
        after=before,
        limit=limit,
        types=[cast("EventType", given["type"])] if given["type"] else None,
        about=given["about"] or None,
        latest=True,
    )
    found = [one for one in events if not actor or one.actor == actor]
    # A page ends with a whole transaction, as that of the log does.
    last = found[AT_ONCE - 1].seq if actor and len(found) > AT_ONCE else 0
    shown = [one for one in found if one.seq >= last]
    more = last if len(shown) < len(found) else events[-1].seq if len(events) >= limit else None
    # One transaction may have written many hundreds: they are there for who wants to see them all.
    seen = shown if whole else shown[:AT_MOST]
    return {"events": seen, "more": more, "left": len(shown) - len(seen)}


@router.get("/audit/security")
async def denied(visitor: Auditor, before: Before = 0) -> Response:
    """What was denied, the latest first."""
    found = await _events(visitor, {"type": SECURITY, "actor": "", "about": ""}, before, whole=True)
    return page("audit_security.html", visitor, at="audit", before=before, **found)


@router.get("/audit/chain")
async def chain(visitor: Auditor) -> Response:
    """The head of the chain, and the form to verify it."""
    return await _chain(visitor)


async def _chain(
    visitor: Visitor, *, text: str = "", found: Verification | None = None, problem: str | None = None
) -> Response:
    head: Head | None = found.head if found is not None else None
    if found is None:
        try:
            head = await visitor.fabric.chain_head(visitor.principal)
        except NotFound:
            head = None
    shown: dict[str, Any] = {"head": head, "found": found, "text": text, "problem": problem}
    return page("audit_chain.html", visitor, status=400 if problem else 200, at="audit", **shown)


@router.post("/audit/chain")
async def verify(request: Request, visitor: Auditor) -> Response:
    """Verify the chain, and a head that was kept elsewhere."""
    text = typed(await form_of(request, visitor), "head")["head"].strip()

    async def work(on_progress: Progress) -> Response:
        try:
            given = _head(text) if text else None
            found = await visitor.fabric.verify(visitor.principal, head=given, on_progress=on_progress)
        except StorageUnavailable:
            raise
        except MunimentError as error:
            return await _chain(visitor, text=text, problem=told(error))
        return await _chain(visitor, text=text, found=found)

    return await answered(request, work)


def _head(text: str) -> dict[str, Any]:
    try:
        given = from_json(text)
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise InvalidInput("expected a head as it was exported, in JSON", field="head")
    return cast("dict[str, Any]", given)


@router.get("/audit/head.json")
async def head(visitor: Auditor) -> Response:
    """The head of the chain, to keep where the database's keepers cannot reach."""
    found = await visitor.fabric.chain_head(visitor.principal)
    name = f"muniment-head-{found.batch}.json"
    return Response(
        to_json(found, indent=2) + b"\n",
        media_type="application/json",
        headers=HEADERS | {"Content-Disposition": f'attachment; filename="{name}"'},
    )


@router.get("/audit/archives")
async def archives(visitor: Auditor, after: str | None = None) -> Response:
    """The archives that old captures went to."""
    return await _archives(visitor, after)


async def _archives(visitor: Visitor, after: str | None = None, found: ArchiveCheck | None = None) -> Response:
    listed = await visitor.fabric.archives(visitor.principal, limit=ARCHIVES, after=after or None)
    more = listed[-1].archive_id if len(listed) == ARCHIVES else None
    return page("audit_archives.html", visitor, at="audit", archives=listed, more=more, after=after, found=found)


@router.post("/audit/archives")
async def check_archives(request: Request, visitor: Auditor) -> Response:
    """Look at every archive file."""
    await form_of(request, visitor)

    async def work(on_progress: Progress) -> Response:
        found = await visitor.fabric.verify_archives(visitor.principal, on_progress=on_progress)
        return await _archives(visitor, found=found)

    return await answered(request, work)


@router.get("/audit/trail")
async def trail(visitor: Auditor, memory_id: str | None = None) -> Response:
    """The papers of a memory, from its promotion back to its capture and forward to what used it."""
    given = (memory_id or "").strip()
    found = None
    problem: str | None = None
    if given:
        try:
            found = await visitor.fabric.trail(visitor.principal, given)
        except (NotFound, InvalidInput) as error:
            problem = told(error)
    return page(
        "audit_trail.html",
        visitor,
        status=404 if problem else 200,
        at="audit",
        memory_id=given,
        found=found,
        problem=problem,
    )
