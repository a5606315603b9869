"""Captures for those who audit and review: listed, read, run again; and what gates refused from them."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from muniment.http.bodies import Page, RerunBody, page
from muniment.http.caller import Asking, May
from muniment.http.idempotency import IdempotentRoute
from muniment.http.lists import Listing
from muniment.model.candidate import GateName
from muniment.model.capture_history import CaptureEntry, CaptureHistory, CaptureState, RefusalEntry, Rerun
from muniment.model.fields import CaptureKind, Ceid, Instant, Name, Source

router = APIRouter(tags=["captures"], route_class=IdempotentRoute)

Reader = Annotated[Asking, Depends(May("read_captures"))]
Reviewer = Annotated[Asking, Depends(May("rerun"))]
QueueReader = Annotated[Asking, Depends(May("read_queue"))]


class CaptureListing(Listing):
    """Which captures."""

    kind: CaptureKind | None = None
    source: Source | None = Field(default=None, description="the kind of principal that captured it")
    subject: Ceid | None = Field(default=None, description="what it is about")
    user_id: Name | None = Field(default=None, description="the end user it was captured for")
    session_id: Name | None = None
    run_id: Name | None = None
    since: Instant | None = Field(default=None, description="captured at that moment or later")
    until: Instant | None = Field(default=None, description="captured before that moment")
    state: CaptureState | None = Field(default=None, description="archived ones are listed with `archived` alone")


class RefusalListing(Listing):
    """Which refusals."""

    gate: GateName | None = None
    reason: Name | None = Field(default=None, description="the code of the reason, such as `consent_missing`")
    since: Instant | None = Field(default=None, description="refused at that moment or later")
    capture_id: Name | None = None
    latest: bool = Field(default=False, description="only where the capture was not consolidated again since")


@router.get("/captures")
async def list_(asking: Reader, listing: Annotated[CaptureListing, Query()]) -> Page[CaptureEntry]:
    """Captures without their content, the latest first; to a reviewer those that a proposal or refusal came from."""
    found = await asking.fabric.captures.list(asking.principal, **listing.asked())
    return page(found, listing.limit, "capture_id")


@router.get("/captures/{capture_id}")
async def get(asking: Reader, capture_id: str) -> CaptureHistory:
    """One capture, opened, with what came of it; that it was read is recorded."""
    return await asking.fabric.captures.get(asking.principal, capture_id)


@router.post("/captures/{capture_id}/rerun")
async def rerun(asking: Reviewer, capture_id: str, body: RerunBody) -> Rerun:
    """Have a capture consolidated again; what was proposed from it before is not proposed again."""
    return await asking.fabric.captures.rerun(asking.principal, capture_id, body.reason)


@router.get("/refusals")
async def refusals(asking: QueueReader, listing: Annotated[RefusalListing, Query()]) -> Page[RefusalEntry]:
    """What gates refused, the latest first: which gate and why, never what was said."""
    found = await asking.fabric.refusals.list(asking.principal, **listing.asked())
    return page(found, listing.limit, "refusal_id")
