"""Captures and refusals: both lists, one capture with its results, and the form to run it again."""

from functools import partial
from typing import Annotated, Any, cast, get_args

from fastapi import APIRouter, Depends, Request, Response

from muniment.console.forms import read_form, redirect, text_field
from muniment.console.listing import load_listing
from muniment.console.rendering import page
from muniment.console.spans import pretty
from muniment.console.visitors import Requires, Visitor, error_text
from muniment.errors import Conflict, InvalidInput
from muniment.model.candidate import GateName
from muniment.model.capture import Capture, CaptureState, RefusalEntry, RerunReason
from muniment.model.fields import CaptureKind

router = APIRouter()
Reader = Annotated[Visitor, Depends(Requires("read_captures"))]
Reviewer = Annotated[Visitor, Depends(Requires("rerun"))]


@router.get("/captures")
async def captures(request: Request, visitor: Reader) -> Response:
    """The latest captures, without their content."""
    fetch = partial(visitor.fabric.captures.list, visitor.principal)
    filters = ("kind", "state", "subject", "user_id", "run_id")
    found = await load_listing(request, "captures", filters, fetch, "capture_id")
    choices: dict[str, Any] = {"states": get_args(CaptureState), "kinds": get_args(CaptureKind)}
    return page("captures.html", visitor, listing=found, problem=found.problem, **choices)


@router.get("/captures/refusals")
async def refusals(request: Request, visitor: Reader) -> Response:
    """What gates refused, newest first."""

    async def fetch(latest: str | None, **query: Any) -> list[RefusalEntry]:
        return await visitor.fabric.refusals.list(visitor.principal, latest=latest == "yes", **query)

    filters = ("gate", "reason", "capture_id", "latest")
    found = await load_listing(request, "captures/refusals", filters, fetch, "refusal_id")
    counted = await visitor.fabric.refusals.counts(visitor.principal) if not found.filtered else ()
    context: dict[str, Any] = {"gates": get_args(GateName), "counted": counted}
    return page("refusals.html", visitor, listing=found, problem=found.problem, **context)


@router.get("/captures/{capture_id}")
async def capture(visitor: Reader, capture_id: str) -> Response:
    """One capture with its content and its results; the read is recorded."""
    return await _capture_page(visitor, capture_id)


@router.post("/captures/{capture_id}/rerun")
async def rerun(request: Request, visitor: Reviewer, capture_id: str) -> Response:
    """Have a capture consolidated again."""
    form = await read_form(request, visitor)
    reason = cast("RerunReason", text_field(form, "reason") or "requested")
    try:
        ordered = await visitor.fabric.captures.rerun(visitor.principal, capture_id, reason)
    except (Conflict, InvalidInput) as error:
        status = 409 if isinstance(error, Conflict) else 422
        return await _capture_page(visitor, capture_id, problem=error_text(error), status=status)
    return redirect(visitor, f"captures/{capture_id}", f"Queued for consolidation {ordered.number}")


async def _capture_page(visitor: Visitor, capture_id: str, **context: Any) -> Response:
    found = await visitor.fabric.captures.get(visitor.principal, capture_id)
    may_rerun = visitor.may("rerun") and found.state in ("processed", "refused", "parked")
    context |= {"payload": _payload(found.capture), "may_rerun": may_rerun, "reasons": get_args(RerunReason)}
    return page("capture.html", visitor, found=found, **context)


def _payload(capture: Capture | None) -> str:
    """What a capture holds besides its text, as JSON."""
    if capture is None or capture.content is None:
        return ""
    content = capture.content.model_dump(mode="json", exclude={"text"}, exclude_defaults=True)
    return pretty(content) if content else ""
