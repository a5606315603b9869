"""Contradictions: the open ones by age, both sides of one, and ways to settle it."""

from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Request, Response

from muniment.console.addresses import address, asked
from muniment.console.differences import differences, newer, older
from muniment.console.forms import typed as typed_in
from muniment.console.forms import went
from muniment.console.rendering import page
from muniment.console.visitors import Allowed, Visitor, form_of, text_of, told
from muniment.errors import Conflict, Denied, InvalidInput, MunimentError, NotFound, NotPromotable
from muniment.model.contradiction import Contradiction, ContradictionShown, ResolutionMethod, Side

router = APIRouter()
Reader = Annotated[Visitor, Depends(Allowed("read_queue"))]
Reviewer = Annotated[Visitor, Depends(Allowed("review"))]

PAGE = 30
FIELDS = ("way", "keep", "existing", "incoming", "note")


@router.get("/contradictions")
async def contradictions(request: Request, visitor: Reader) -> Response:
    """The open ones, the oldest first, and that one beside them."""
    return await _shown(request, visitor, None)


@router.get("/contradictions/{contradiction_id}")
async def contradiction(request: Request, visitor: Reader, contradiction_id: str) -> Response:
    """One of them, open or not."""
    return await _shown(request, visitor, contradiction_id)


@router.post("/contradictions/{contradiction_id}/resolve")
async def resolve(request: Request, visitor: Reviewer, contradiction_id: str) -> Response:
    """Settle it in the way that was chosen; what another way asks for is left aside."""
    form = await form_of(request, visitor)
    way = text_of(form, "way")
    try:
        if way is None:
            raise InvalidInput("choose how to settle it", field="way")
        keeps, coexists = way in ("supersede", "retract"), way == "coexist"
        settled = await visitor.fabric.contradictions.resolve(
            visitor.principal,
            contradiction_id,
            cast("ResolutionMethod", way),
            keep=cast("Side | None", text_of(form, "keep")) if keeps else None,
            existing=_qualifiers(text_of(form, "existing"), "existing") if coexists else None,
            incoming=_qualifiers(text_of(form, "incoming"), "incoming") if coexists else None,
            note=text_of(form, "note"),
        )
    except (InvalidInput, Denied, Conflict, NotPromotable) as error:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        return await _shown(request, visitor, contradiction_id, problem=error, typed=typed_in(form, *FIELDS))
    return went(visitor, "contradictions", f"Settled: {settled.outcome or way}")


async def _shown(
    request: Request,
    visitor: Visitor,
    contradiction_id: str | None,
    *,
    problem: MunimentError | None = None,
    typed: dict[str, str] | None = None,
) -> Response:
    given = asked(request, "after", "closed")
    group = visitor.fabric.contradictions
    complaint = told(problem) if problem is not None else None
    found: list[Contradiction] = []
    try:
        found = await group.list(
            visitor.principal, limit=PAGE + 1, after=given["after"] or None, closed=given["closed"] == "yes"
        )
    except (InvalidInput, NotFound) as error:
        complaint = told(error)
    shown = found[:PAGE]
    first = contradiction_id or (shown[0].contradiction_id if shown else None)
    one = await group.get(visitor.principal, first) if first is not None else None
    following = shown[-1].contradiction_id if len(found) > PAGE else None
    return page(
        "contradictions.html",
        visitor,
        status=200 if complaint is None else 409 if isinstance(problem, Conflict) else 422,
        at="contradictions",
        found=shown,
        one=one,
        sides=_sides(one) if one is not None else None,
        closed=given["closed"] == "yes",
        next=address("contradictions", closed=given["closed"], after=following) if following else None,
        problem=complaint,
        typed=dict.fromkeys(FIELDS, "") | {"way": "supersede", "keep": "incoming"} | (typed or {}),
    )


def _sides(one: ContradictionShown) -> dict[str, Any]:
    """Both texts, with what tells them apart."""
    candidate = one.proposal.candidate
    parts = differences(one.existing.text, one.incoming.text if one.incoming is not None else candidate.text)
    return {"existing": older(parts), "incoming": newer(parts)}


def _qualifiers(written: str | None, side: str) -> dict[str, str] | None:
    """Qualifiers as they are written, `region=de`, by commas or lines; raises `InvalidInput`."""
    found: dict[str, str] = {}
    for part in (written or "").replace("\n", ",").split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not part.strip():
            continue
        if not (name and equals and value):
            raise InvalidInput("expected qualifiers such as region=de", field=side)
        found[name] = value
    return found or None
