"""Contradictions: the open ones by age, both sides of one, and the form to settle it."""

from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Request, Response

from muniment.console.differences import differences, newer, older
from muniment.console.forms import number_field, parse_qualifiers, raw_fields, read_form, redirect, text_field
from muniment.console.listing import load_listing
from muniment.console.rendering import page
from muniment.console.visitors import Requires, Visitor, error_text
from muniment.errors import Conflict, Denied, InvalidInput, MunimentError, NotPromotable
from muniment.model.contradiction import Contradiction, ContradictionDetails, ResolutionMethod, Side
from muniment.model.proposal import Proposal

router = APIRouter()
Reader = Annotated[Visitor, Depends(Requires("read_queue"))]
Reviewer = Annotated[Visitor, Depends(Requires("review"))]

PAGE_SIZE = 30
FIELDS = ("way", "keep", "existing", "incoming", "note")


@router.get("/contradictions")
async def contradictions(request: Request, visitor: Reader) -> Response:
    """The open contradictions, oldest first, with the first of them beside the list."""
    return await _contradictions_page(request, visitor, None)


@router.get("/contradictions/{contradiction_id}")
async def contradiction(request: Request, visitor: Reader, contradiction_id: str) -> Response:
    """One contradiction, open or settled, beside the list."""
    return await _contradictions_page(request, visitor, contradiction_id)


@router.post("/contradictions/{contradiction_id}/resolve")
async def resolve(request: Request, visitor: Reviewer, contradiction_id: str) -> Response:
    """Settle a contradiction; fields that belong to another method are ignored."""
    form = await read_form(request, visitor)
    method = text_field(form, "way")
    try:
        if method is None:
            raise InvalidInput("choose how to settle it", field="way")
        keeps, coexists = method in ("supersede", "retract"), method == "coexist"
        keep, note = text_field(form, "keep"), text_field(form, "note")
        if keeps and keep is None:
            raise InvalidInput("choose which one to keep", field="keep")
        settled = await visitor.fabric.contradictions.resolve(
            visitor.principal,
            contradiction_id,
            cast("ResolutionMethod", method),
            keep=cast("Side | None", keep) if keeps else None,
            existing=parse_qualifiers(text_field(form, "existing"), "existing") if coexists else None,
            incoming=parse_qualifiers(text_field(form, "incoming"), "incoming") if coexists else None,
            note=note,
            version=number_field(form, "version", None),
        )
    except (InvalidInput, Denied, Conflict, NotPromotable) as error:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        return await _contradictions_page(request, visitor, contradiction_id, error, raw_fields(form, *FIELDS))
    return redirect(visitor, "contradictions", f"Resolved: {settled.outcome or method}")


async def _contradictions_page(
    request: Request,
    visitor: Visitor,
    contradiction_id: str | None,
    error: MunimentError | None = None,
    typed: dict[str, str] | None = None,
) -> Response:
    group = visitor.fabric.contradictions

    async def fetch(closed: str | None, **query: Any) -> list[Contradiction]:
        return await group.list(visitor.principal, closed=closed == "yes", **query)

    found = await load_listing(request, "contradictions", ("closed",), fetch, "contradiction_id", size=PAGE_SIZE)
    problem = error_text(error) if error is not None else found.problem
    shown = contradiction_id or (found.items[0].contradiction_id if found.items else None)
    one = await group.get(visitor.principal, shown) if shown is not None else None
    recommended = one.recommendation if one is not None and one.contradiction.open else None
    keep = recommended.keep if recommended is not None else None
    return page(
        "contradictions.html",
        visitor,
        status=200 if problem is None else 409 if isinstance(error, Conflict) else 422,
        problem=problem,
        listing=found,
        one=one,
        recommended=recommended,
        incoming=_waiting(one) if one is not None else None,
        sides=_sides(one) if one is not None else None,
        closed=found.filters["closed"] == "yes",
        # What is recommended is chosen; nothing where nothing is.
        typed=dict.fromkeys(FIELDS, "") | {"way": "supersede" if keep else "", "keep": keep or ""} | (typed or {}),
    )


def _waiting(one: ContradictionDetails) -> Proposal | None:
    """The incoming proposal, while it waits for a decision."""
    return one.proposal if one.contradiction.open and one.incoming is None else None


def _sides(one: ContradictionDetails) -> dict[str, Any]:
    """Both texts with their differences."""
    candidate = one.proposal.candidate
    parts = differences(one.existing.text, one.incoming.text if one.incoming is not None else candidate.text)
    return {"existing": older(parts), "incoming": newer(parts)}
