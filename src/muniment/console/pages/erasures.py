"""Erasure: erase a person after their id was typed again, one fact, search texts for a name, and the receipts."""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from muniment.console.export import file_of, pages_of
from muniment.console.forms import raw_fields, read_form, redirect, text_field
from muniment.console.listing import RANGE, filter_values, load_listing
from muniment.console.rendering import page
from muniment.console.urls import query_fields
from muniment.console.visitors import Requires, Visitor, error_text
from muniment.errors import Conflict, InvalidInput, NotFound
from muniment.model.erasure import ErasureInput, SharedCaptures
from muniment.model.fields import build

router = APIRouter()

PAGE_SIZE = 20
REQUESTS_SHOWN = 100
_RECEIPT = ("erased_at", "erasure_id", "by", "requested_by", "subject", "user_id", "fact_id", "memories", "rows")
RECEIPT_COLUMNS = {name: name for name in (*_RECEIPT, "purged_at")}

Reader = Annotated[Visitor, Depends(Requires("read_erasures"))]
Officer = Annotated[Visitor, Depends(Requires("erase"))]


@router.get("/erasures")
async def receipts(request: Request, visitor: Reader) -> Response:
    """The receipts; with a subject or a user, what erasing them would do."""
    target = query_fields(request, "subject", "user_id")
    problem = None
    try:
        if any(target.values()):
            _erasure_input(target)
    except InvalidInput as error:
        problem = error_text(error)
    return await _erasures_page(request, visitor, target, problem=problem)


@router.get("/erasures/export")
async def export_receipts(request: Request, visitor: Reader) -> Response:
    """The receipts of a range of time, or all, as a file."""
    values = filter_values(query_fields(request, *RANGE))
    pages = pages_of(partial(visitor.fabric.erasures, visitor.principal), "erasure_id", values)
    return await file_of(request, visitor, "receipts", RECEIPT_COLUMNS, pages)


async def _erasures_page(
    request: Request, visitor: Visitor, target: dict[str, str], *, problem: str | None = None, **context: Any
) -> Response:
    fetch = partial(visitor.fabric.erasures, visitor.principal)
    found = await load_listing(request, "erasures", RANGE, fetch, "erasure_id", size=PAGE_SIZE)
    done = request.query_params.get("done")
    confirming = any(target.values()) and problem is None and visitor.may("erase")
    consents: int | None = None
    if confirming and target["subject"] and visitor.may("read_consent"):
        consents = len(await visitor.fabric.consent.list(visitor.principal, subject=target["subject"], limit=1000))
    held = None
    if confirming:
        person = {name: value or None for name, value in target.items()}
        held = await visitor.fabric.people.get(visitor.principal, **person)
    context = {"mistyped": None, "status": 400 if problem or found.problem else 200} | context
    waiting = await visitor.fabric.erasure_requests.list(visitor.principal, limit=REQUESTS_SHOWN)
    return page(
        "erasures.html",
        visitor,
        problem=problem,
        listing=found,
        waiting=waiting,
        done=next((one for one in found.items if one.erasure_id == done), None),
        target=target,
        confirming=confirming,
        to_type=target["subject"] or target["user_id"],
        consents=consents,
        held=held,
        **context,
    )


@router.post("/erasures/search")
async def search(request: Request, visitor: Officer) -> Response:
    """One page of the texts that contain a name; a form carries the name, so that no URL and no log contains it."""
    typed = raw_fields(await read_form(request, visitor), "name", "erasure_id", "after")
    query: dict[str, Any] = {name: typed[name].strip() or None for name in ("erasure_id", "after")}
    found = problem = None
    try:
        name = typed["name"].strip()
        found = await visitor.fabric.search_texts(visitor.principal, name, limit=PAGE_SIZE, **query)
    except (InvalidInput, NotFound) as error:
        problem = error_text(error)
    return page("name_search.html", visitor, problem=problem, typed=typed, found=found, removed=None)


@router.post("/erasures/memory")
async def remove_text(request: Request, visitor: Officer) -> Response:
    """Erase the text of one memory that a search found."""
    form = await read_form(request, visitor)
    memory = await visitor.fabric.retract(visitor.principal, text_field(form, "memory_id") or "", reason="erased")
    # The name stays in the field, to go on with the search.
    typed = raw_fields(form, "name", "erasure_id")
    return page("name_search.html", visitor, typed=typed, found=None, removed=memory.memory_id)


@router.get("/erasures/fact")
async def fact(request: Request, visitor: Officer) -> Response:
    """What erasing one fact would take with it."""
    fact_id = query_fields(request, "fact_id")["fact_id"]
    return await _fact_page(visitor, fact_id)


async def _fact_page(visitor: Visitor, fact_id: str, problem: str | None = None) -> Response:
    would = None
    try:
        would = await visitor.fabric.preview_erasure(visitor.principal, fact_id)
    except (InvalidInput, NotFound, Conflict) as error:
        problem = error_text(error)
    return page("erase_fact.html", visitor, problem=problem, fact_id=fact_id, would=would)


@router.post("/erasures/fact")
async def erase_fact(request: Request, visitor: Officer) -> Response:
    """Erase one fact."""
    form = await read_form(request, visitor)
    fact_id, chosen = text_field(form, "fact_id") or "", text_field(form, "capture")
    try:
        receipt = await visitor.fabric.erase_fact(visitor.principal, fact_id=fact_id, capture=_decided(chosen))
    except (InvalidInput, NotFound, Conflict) as error:
        return await _fact_page(visitor, fact_id, error_text(error))
    return redirect(visitor, "erasures", done=receipt.erasure_id)


def _decided(chosen: str | None) -> SharedCaptures | None:
    return "keep" if chosen == "keep" else "erase" if chosen == "erase" else None


@router.post("/erasures")
async def erase(request: Request, visitor: Officer) -> Response:
    """Erase a person if their id was typed again."""
    form = await read_form(request, visitor)
    target = {name: value.strip() for name, value in raw_fields(form, "subject", "user_id").items()}
    try:
        valid = _erasure_input(target)
    except InvalidInput as error:
        return await _erasures_page(request, visitor, target, problem=error_text(error))
    to_type = valid.subject or valid.user_id
    if text_field(form, "typed") != to_type:
        mistyped = f"nothing was erased: the text you typed is not {to_type}"
        return await _erasures_page(request, visitor, target, mistyped=mistyped, status=400)
    receipt = await visitor.fabric.erase(visitor.principal, subject=valid.subject, user_id=valid.user_id)
    return redirect(visitor, "erasures", done=receipt.erasure_id)


def _erasure_input(target: dict[str, str]) -> ErasureInput:
    return build(ErasureInput, {name: value or None for name, value in target.items()})
