"""Metrics: charts over a period, the auto-promotion breakers, and background work."""

from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Annotated, cast

from fastapi import APIRouter, Depends, Request, Response

from muniment.console.figures import figures
from muniment.console.forms import read_form, redirect, text_field
from muniment.console.listing import load_listing
from muniment.console.pages.packs import registered_pack
from muniment.console.rendering import page
from muniment.console.storage_counts import StorageCounts
from muniment.console.visitors import Requires, Visitor, error_text
from muniment.errors import Conflict, InvalidInput, NotFound
from muniment.model.inputs import check_write_class

router = APIRouter()

WINDOWS = {
    "24h": ("24 hours", timedelta(hours=24)),
    "7d": ("7 days", timedelta(days=7)),
    "30d": ("30 days", timedelta(days=30)),
    "90d": ("90 days", timedelta(days=90)),
}
PARKED_PAGE_SIZE = 100

Reader = Annotated[Visitor, Depends(Requires("metrics"))]
WorkReader = Annotated[Visitor, Depends(Requires("read_work"))]
Admin = Annotated[Visitor, Depends(Requires("work"))]


@router.get("/metrics")
async def metrics(request: Request, visitor: Reader, window: str = "30d") -> Response:
    """The charts of a period."""
    if window not in WINDOWS:
        raise InvalidInput(f"expected one of {', '.join(WINDOWS)}", field="window")
    counts = cast("StorageCounts", request.app.state.storage_counts)
    found, counted_at = await counts.measured(visitor, visitor.fabric.access.now() - WINDOWS[window][1])
    floor: float | None = None
    if found.auto and visitor.may("read_packs"):
        with suppress(NotFound):
            floor = (await registered_pack(visitor, found.pack)).memory_layer.audit.floor
    return page(
        "metrics.html",
        visitor,
        found=found,
        figures=figures(found, floor, counted_at, visitor.zone),
        breakers=await visitor.fabric.work.breakers(visitor.principal) if visitor.may("read_work") else [],
        windows=[(name, title) for name, (title, _) in WINDOWS.items()],
        window=window,
    )


@router.post("/metrics/resume")
async def resume(request: Request, visitor: Admin) -> Response:
    """Resume the auto-promotion of a suspended class."""
    form = await read_form(request, visitor)
    suspended = check_write_class(text_field(form, "write_class"), "write_class")
    notice = "Auto-promotion resumed; its samples are counted from zero"
    try:
        await visitor.fabric.work.resume(visitor.principal, suspended)
    except Conflict as error:
        notice = error_text(error)
    return redirect(visitor, "metrics", notice, anchor="breakers")


@router.get("/metrics/work")
async def work(request: Request, visitor: WorkReader) -> Response:
    """The backlog, parked captures, and the last runs of the jobs."""
    group, who = visitor.fabric.work, visitor.principal
    backlog = await group.backlog(who)
    parked = None
    if backlog.parked:
        fetch = partial(group.parked, who)
        parked = await load_listing(request, "metrics/work", (), fetch, "capture_id", size=PARKED_PAGE_SIZE)
    problem = parked.problem if parked is not None else None
    return page("work.html", visitor, problem=problem, backlog=backlog, jobs=await group.jobs(who), parked=parked)


@router.post("/metrics/work/requeue")
async def requeue(request: Request, visitor: Admin) -> Response:
    """Queue parked captures again: the selected ones, or all."""
    form = await read_form(request, visitor)
    selected = [one for one in form.getlist("capture_id") if isinstance(one, str)]
    everything = text_field(form, "everything") is not None
    if not selected and not everything:
        return redirect(visitor, "metrics/work", "Select the captures to retry")
    again = await visitor.fabric.work.requeue(visitor.principal, None if everything else selected)
    return redirect(visitor, "metrics/work", f"{len(again)} will be retried")
