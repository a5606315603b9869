"""Erasure: forget a person, after their id was typed once more; and the receipts."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response

from muniment.console.forms import typed, went
from muniment.console.rendering import page
from muniment.console.visitors import Allowed, Visitor, form_of, text_of, told
from muniment.errors import InvalidInput, NotFound
from muniment.model.erasure import Erasure, ErasureInput
from muniment.model.fields import build
from muniment.model.name_search import NameSearch

router = APIRouter()

AT_ONCE = 20

Reader = Annotated[Visitor, Depends(Allowed("read_erasures"))]
Officer = Annotated[Visitor, Depends(Allowed("erase"))]


@router.get("/erasures")
async def receipts(
    visitor: Reader,
    subject: str | None = None,
    user_id: str | None = None,
    after: str | None = None,
    done: str | None = None,
) -> Response:
    """The receipts; with a subject or a user, what erasing them would do."""
    given = {"subject": (subject or "").strip(), "user_id": (user_id or "").strip()}
    problem = None
    if any(given.values()):
        try:
            build(ErasureInput, {name: value or None for name, value in given.items()})
        except InvalidInput as error:
            problem = told(error)
    return await _shown(visitor, given, after=after, done=done, problem=problem, status=400 if problem else 200)


async def _shown(
    visitor: Visitor,
    given: dict[str, str],
    *,
    after: str | None = None,
    done: str | None = None,
    problem: str | None = None,
    mistyped: str | None = None,
    status: int = 200,
) -> Response:
    found: list[Erasure] = await visitor.fabric.erasures(visitor.principal, limit=AT_ONCE, after=after or None)
    consents: int | None = None
    asked = any(given.values()) and problem is None and visitor.may("erase")
    if asked and given["subject"] and visitor.may("read_consent"):
        consents = len(await visitor.fabric.consent.list(visitor.principal, subject=given["subject"], limit=1000))
    shown: dict[str, Any] = {
        "receipts": found,
        "more": found[-1].erasure_id if len(found) == AT_ONCE else None,
        "after": after,
        "done": next((one for one in found if one.erasure_id == done), None),
        "given": given,
        "asked": asked,
        "to_type": given["subject"] or given["user_id"],
        "consents": consents,
        "problem": problem,
        "mistyped": mistyped,
    }
    return page("erasures.html", visitor, status=status, at="erasures", **shown)


@router.post("/erasures/search")
async def search(request: Request, visitor: Officer) -> Response:
    """A page of the texts that hold a name; it comes in a form, so that no address and no log holds it."""
    form = await form_of(request, visitor)
    given = typed(form, "name", "erasure_id", "after")
    wanted: dict[str, Any] = {"limit": AT_ONCE}
    wanted |= {"erasure_id": given["erasure_id"].strip() or None, "after": given["after"].strip() or None}
    try:
        found = await visitor.fabric.search_texts(visitor.principal, given["name"].strip(), **wanted)
    except (InvalidInput, NotFound) as error:
        return _searched(visitor, given, problem=told(error))
    return _searched(visitor, given, found=found)


def _searched(
    visitor: Visitor,
    given: dict[str, str],
    *,
    found: NameSearch | None = None,
    gone: str | None = None,
    problem: str | None = None,
) -> Response:
    shown: dict[str, Any] = {"given": given, "found": found, "gone": gone, "problem": problem}
    return page("name_search.html", visitor, status=400 if problem else 200, at="erasures", **shown)


@router.post("/erasures/memory")
async def take_away(request: Request, visitor: Officer) -> Response:
    """Take the text of one memory away that a search found."""
    form = await form_of(request, visitor)
    gone = await visitor.fabric.retract(visitor.principal, text_of(form, "memory_id") or "", reason="erased")
    return _searched(visitor, {}, gone=gone.memory_id)


@router.post("/erasures")
async def erase(request: Request, visitor: Officer) -> Response:
    """Erase whom the officer named, if they typed the id once more."""
    form = await form_of(request, visitor)
    given = {name: value.strip() for name, value in typed(form, "subject", "user_id").items()}
    try:
        asked = build(ErasureInput, {name: value or None for name, value in given.items()})
    except InvalidInput as error:
        return await _shown(visitor, given, problem=told(error), status=400)
    to_type = asked.subject or asked.user_id
    if text_of(form, "typed") != to_type:
        return await _shown(visitor, given, mistyped=f"nothing was erased: what was typed is not {to_type}", status=400)
    receipt = await visitor.fabric.erase(visitor.principal, subject=asked.subject, user_id=asked.user_id)
    return went(visitor, "erasures", done=receipt.erasure_id)
