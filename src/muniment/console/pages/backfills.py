"""Backfills: what memories would change under a pack's ontology, ordering that, and how far it came (JOB-8)."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from muniment.console.forms import read_form, redirect, text_field
from muniment.console.listing import load_listing
from muniment.console.pages.packs import in_force_now
from muniment.console.rendering import page
from muniment.console.visitors import Requires, Visitor, error_text
from muniment.errors import Conflict, InvalidInput, NotFound
from muniment.model.backfill import Backfill

router = APIRouter()

PAGE_SIZE = 20
PACKS_OFFERED = 200

Reader = Annotated[Visitor, Depends(Requires("read_packs"))]
Reviewer = Annotated[Visitor, Depends(Requires("review"))]


@router.get("/packs/backfills")
async def backfills(request: Request, visitor: Reader) -> Response:
    """The backfills, the latest first, with what waits for a person."""
    in_force = await in_force_now(visitor)
    return await _page(request, visitor, ref=in_force.pack if in_force is not None else "")


async def _page(
    request: Request, visitor: Visitor, problem: str | None = None, ref: str = "", plan: Backfill | None = None
) -> Response:
    fetch = partial(visitor.fabric.packs.backfills, visitor.principal)
    found = await load_listing(request, "packs/backfills", (), fetch, "backfill_id", size=PAGE_SIZE)
    refs = [one.ref for one in await visitor.fabric.packs.list(visitor.principal, limit=PACKS_OFFERED)][::-1]
    shown = problem or found.problem
    return page("backfills.html", visitor, problem=shown, listing=found, ref=ref, plan=plan, refs=refs)


@router.post("/packs/backfills/{act}")
async def order(request: Request, act: str, visitor: Reviewer) -> Response:
    """Plan a backfill, which changes nothing, or order it."""
    if act not in ("plan", "order"):
        raise NotFound("no such page")
    ref = text_field(await read_form(request, visitor), "ref") or ""
    try:
        made = await visitor.fabric.packs.backfill(visitor.principal, ref, dry_run=act == "plan")
    except (InvalidInput, NotFound, Conflict) as error:
        return await _page(request, visitor, error_text(error), ref)
    if act == "plan":
        return await _page(request, visitor, ref=ref, plan=made)
    return redirect(visitor, "packs/backfills", "The backfill is ordered. The worker carries it out.")
