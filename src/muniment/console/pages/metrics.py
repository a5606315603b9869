"""Metrics: the charts of a window, breakers that stopped, and the work in hand."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from muniment.console.figures import figures
from muniment.console.forms import went
from muniment.console.registered import registered
from muniment.console.rendering import page
from muniment.console.visitors import Allowed, Visitor, form_of, text_of, told
from muniment.errors import Conflict, InvalidInput, NotFound
from muniment.model.work import Parked
from muniment.verbs.arguments import write_class

router = APIRouter()

WINDOWS = {
    "24h": ("24 hours", timedelta(hours=24)),
    "7d": ("7 days", timedelta(days=7)),
    "30d": ("30 days", timedelta(days=30)),
    "90d": ("90 days", timedelta(days=90)),
}
PARKED = 100

Reader = Annotated[Visitor, Depends(Allowed("metrics"))]
Worker = Annotated[Visitor, Depends(Allowed("read_work"))]
Admin = Annotated[Visitor, Depends(Allowed("work"))]


@router.get("/metrics")
async def measured(visitor: Reader, window: str = "30d") -> Response:
    """The charts of a window."""
    if window not in WINDOWS:
        raise InvalidInput(f"expected one of {', '.join(WINDOWS)}", field="window")
    since = visitor.fabric.access.now() - WINDOWS[window][1]
    found = await visitor.fabric.metrics(visitor.principal, since=since)
    floor: float | None = None
    if found.auto and visitor.may("read_packs"):
        with suppress(NotFound):
            floor = (await registered(visitor, found.pack)).memory_layer.audit.floor
    return page(
        "metrics.html",
        visitor,
        at="metrics",
        found=found,
        figures=figures(found, floor),
        breakers=await visitor.fabric.work.breakers(visitor.principal) if visitor.may("read_work") else [],
        windows=[(name, title) for name, (title, _) in WINDOWS.items()],
        window=window,
    )


@router.post("/metrics/resume")
async def resume(request: Request, visitor: Admin) -> Response:
    """Let a suspended class be promoted without a person again."""
    form = await form_of(request, visitor)
    which = write_class(text_of(form, "write_class"), "write_class")
    try:
        await visitor.fabric.work.resume(visitor.principal, which)
    except Conflict as error:
        return went(visitor, "metrics", told(error), at="breakers")
    return went(visitor, "metrics", "Auto-promotion goes on; its samples are counted anew", at="breakers")


@router.get("/metrics/work")
async def work(visitor: Worker, after: str | None = None) -> Response:
    """What waits, what was parked, and when the jobs ran."""
    group, asker = visitor.fabric.work, visitor.principal
    backlog = await group.backlog(asker)
    parked: Sequence[Parked] = ()
    if backlog.parked:
        parked = await group.parked(asker, limit=PARKED, after=after or None)
    return page(
        "work.html",
        visitor,
        at="metrics",
        backlog=backlog,
        jobs=await group.jobs(asker),
        parked=parked,
        more=parked[-1].capture_id if len(parked) == PARKED else None,
        after=after,
    )


@router.post("/metrics/work/requeue")
async def requeue(request: Request, visitor: Admin) -> Response:
    """Have parked captures tried again: those that were chosen, or all."""
    form = await form_of(request, visitor)
    chosen = [one for one in form.getlist("capture_id") if isinstance(one, str)]
    everything = text_of(form, "everything") is not None
    if not chosen and not everything:
        return went(visitor, "metrics/work", "Choose what to try again")
    again = await visitor.fabric.work.requeue(visitor.principal, None if everything else chosen)
    return went(visitor, "metrics/work", f"{len(again)} will be tried again")
