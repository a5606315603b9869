"""Captures and refusals: both lists, one capture with its results, and the form to run it again."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated, Any, cast, get_args

from fastapi import APIRouter, Depends, Request, Response

from muniment.console.export import file_of, pages_of
from muniment.console.forms import read_form, redirect, text_field
from muniment.console.listing import filter_values, load_listing
from muniment.console.rendering import page
from muniment.console.spans import pretty
from muniment.console.urls import query_fields
from muniment.console.visitors import Requires, Visitor, error_text
from muniment.errors import Conflict, InvalidInput
from muniment.model.candidate import GateName
from muniment.model.capture import Capture, CaptureState, RefusalEntry, RerunReason
from muniment.model.fields import CaptureKind

router = APIRouter()
Reader = Annotated[Visitor, Depends(Requires("read_captures"))]
Reviewer = Annotated[Visitor, Depends(Requires("rerun"))]
FILTERS = ("kind", "state", "subject", "user_id", "run_id", "since", "until")
REFUSAL_FILTERS = ("gate", "reason", "capture_id", "latest", "since", "until")
_CAPTURE = ("captured_at", "capture_id", "kind", "state", "author", "source", "origin", "classification", "subject")
_NUMBERS = (
    "user_id",
    "session_id",
    "run_id",
    "observed_at",
    "pack",
    "archive",
    "consolidations",
    "proposed",
    "refused",
)
CAPTURE_COLUMNS = {name: name for name in (*_CAPTURE, *_NUMBERS)}
_REFUSAL = ("at", "gate", "reason", "capture_id", "consolidation", "ordinal", "extractor", "rejection", "latest")
REFUSAL_COLUMNS = {name: name for name in _REFUSAL}


@router.get("/captures")
async def captures(request: Request, visitor: Reader) -> Response:
    """The latest captures, without their content."""
    fetch = partial(visitor.fabric.captures.list, visitor.principal)
    found = await load_listing(request, "captures", FILTERS, fetch, "capture_id")
    choices: dict[str, Any] = {"states": get_args(CaptureState), "kinds": get_args(CaptureKind)}
    return page("captures.html", visitor, listing=found, problem=found.problem, **choices)


@router.get("/captures/export")
async def export_captures(request: Request, visitor: Reader) -> Response:
    """The captures that the filters find, without their content, as a file."""
    fetch = partial(visitor.fabric.captures.list, visitor.principal)
    pages = pages_of(fetch, "capture_id", filter_values(query_fields(request, *FILTERS)))
    return await file_of(request, visitor, "captures", CAPTURE_COLUMNS, pages)


def _refusals(visitor: Visitor) -> Callable[..., Awaitable[Sequence[RefusalEntry]]]:
    async def fetch(latest: str | None, **query: Any) -> list[RefusalEntry]:
        return await visitor.fabric.refusals.list(visitor.principal, latest=latest == "yes", **query)

    return fetch


@router.get("/captures/refusals/export")
async def export_refusals(request: Request, visitor: Reader) -> Response:
    """The refusals that the filters find, as a file."""
    values = filter_values(query_fields(request, *REFUSAL_FILTERS))
    pages = pages_of(_refusals(visitor), "refusal_id", values)
    return await file_of(request, visitor, "refusals", REFUSAL_COLUMNS, pages)


@router.get("/captures/refusals")
async def refusals(request: Request, visitor: Reader) -> Response:
    """What gates refused, newest first."""
    fetch = _refusals(visitor)
    found = await load_listing(request, "captures/refusals", REFUSAL_FILTERS, fetch, "refusal_id")
    counted = await visitor.fabric.refusals.counts(visitor.principal) if not found.filtered else ()
    # Where running all of a reason again stopped.
    go_on = request.query_params.get("go_on", "")
    context: dict[str, Any] = {"gates": get_args(GateName), "counted": counted, "go_on": go_on}
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
