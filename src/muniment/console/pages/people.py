"""People: everything that is held about one person, who read it, all of it to hand over, and requests to be erased."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from pydantic_core import to_json

from muniment.console.forms import raw_fields, read_form, redirect, text_field
from muniment.console.listing import Listing
from muniment.console.pages.consent import chains_of
from muniment.console.pages.erasures import REQUESTS_SHOWN
from muniment.console.rendering import HEADERS, page
from muniment.console.urls import query_fields
from muniment.console.visitors import Requires, Visitor, error_text
from muniment.errors import Conflict, InvalidInput, NotFound
from muniment.model.erasure import ErasureInput
from muniment.model.fields import build
from muniment.subject.page import render

router = APIRouter()

MEMORIES_SHOWN = 20
READS_SHOWN = 20
FILE_NAME = "access-request"

Officer = Annotated[Visitor, Depends(Requires("erase"))]
Person = dict[str, str | None]


@router.get("/people")
async def people(request: Request, visitor: Officer) -> Response:
    """The requests to be erased that wait; with a subject or a user, what is held about them."""
    typed = query_fields(request, "subject", "user_id")
    if not any(typed.values()):
        return await _start_page(visitor, typed)
    try:
        person = _person(typed)
        return await _person_page(request, visitor, typed, person)
    except (InvalidInput, NotFound) as error:
        return await _start_page(visitor, typed, error_text(error))


async def _start_page(visitor: Visitor, typed: dict[str, str], problem: str | None = None) -> Response:
    waiting = await visitor.fabric.erasure_requests.list(visitor.principal, limit=REQUESTS_SHOWN)
    return page("people.html", visitor, problem=problem, typed=typed, waiting=waiting)


async def _person_page(request: Request, visitor: Visitor, typed: dict[str, str], person: Person) -> Response:
    group, who = visitor.fabric.people, visitor.principal
    after, before = (request.query_params.get(name, "").strip() for name in ("after", "before"))
    seen = await group.view(who, **person, reads=READS_SHOWN + 1, before=before or None)
    memories = await group.memories(who, **person, limit=MEMORIES_SHOWN + 1, after=after or None)
    held, reads = seen.held, seen.reads
    texts = {one.memory_id: one.text for one in memories[:MEMORIES_SHOWN] if one.text}
    context: dict[str, Any] = {
        "typed": typed,
        "held": held,
        "captures": sum(one.captures for one in held.captures),
        "memories": _listing(typed, after, memories, "memory_id", MEMORIES_SHOWN),
        "reads": reads[:READS_SHOWN],
        "texts": texts,
        "older_reads": reads[READS_SHOWN - 1].recall_id if len(reads) > READS_SHOWN else None,
        "chains": chains_of(seen.consents),
        "asked": seen.requests,
    }
    return page("person.html", visitor, **context)


def _listing(typed: dict[str, str], after: str, found: list[Any], cursor: str, size: int) -> Listing:
    next_after = getattr(found[size - 1], cursor) if len(found) > size else None
    return Listing("people", typed, after, found[:size], next_after)


def _person(typed: dict[str, str]) -> Person:
    """Whom the fields name; raises `InvalidInput`."""
    checked = build(ErasureInput, {name: value or None for name, value in typed.items()})
    return {"subject": checked.subject, "user_id": checked.user_id}


@router.post("/people/export.{kind}")
async def save(request: Request, kind: str, visitor: Officer) -> Response:
    """Everything that is held about a person, as a file to save and hand over; a form asks, as it is recorded."""
    if kind not in ("json", "html"):
        raise NotFound("no such page")
    form = await read_form(request, visitor)
    typed = {name: value.strip() for name, value in raw_fields(form, "subject", "user_id").items()}
    person = _person(typed)
    export = await visitor.fabric.export(visitor.principal, subject=person["subject"], user_id=person["user_id"])
    whole = export.subject
    assert whole is not None, "an export about a person"
    content = to_json(whole, indent=2) if kind == "json" else render(whole).encode()
    # The name of a file says nothing about whom it is for.
    saved = {"Content-Disposition": f'attachment; filename="{FILE_NAME}.{kind}"'}
    media_type = "application/json" if kind == "json" else "text/html; charset=utf-8"
    return Response(content, media_type=media_type, headers=HEADERS | saved)


@router.post("/people/name")
async def set_name(request: Request, visitor: Officer) -> Response:
    """Set what people call a person, or remove it."""
    form = await read_form(request, visitor)
    typed = {name: text_field(form, name) or "" for name in ("subject", "user_id")}
    name = text_field(form, "display_name") if text_field(form, "remove") is None else None
    try:
        await visitor.fabric.subjects.name(visitor.principal, typed["subject"], name)
    except InvalidInput as error:
        return await _start_page(visitor, typed, error_text(error))
    return redirect(visitor, "people", "The name is saved" if name else "The name is removed", **typed)


@router.post("/people/requests/refuse")
async def refuse(request: Request, visitor: Officer) -> Response:
    """Refuse a person's request to be erased."""
    form = await read_form(request, visitor)
    try:
        await visitor.fabric.erasure_requests.refuse(visitor.principal, text_field(form, "request_id") or "")
    except (InvalidInput, NotFound, Conflict) as error:
        return await _start_page(visitor, {"subject": "", "user_id": ""}, error_text(error))
    return redirect(visitor, "people", "The request is refused. Tell the person why.")
