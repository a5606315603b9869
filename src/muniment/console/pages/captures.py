"""Captures and refusals: lists of both, one capture with what came of it, and the form to run it again."""

from typing import Annotated, Any, cast, get_args

from fastapi import APIRouter, Depends, Request, Response
from pydantic_core import to_json

from muniment.console.addresses import address, asked
from muniment.console.forms import went
from muniment.console.rendering import page
from muniment.console.visitors import Allowed, Visitor, form_of, text_of, told
from muniment.errors import Conflict, InvalidInput, NotFound
from muniment.model.candidate import GateName
from muniment.model.capture import Capture
from muniment.model.capture_history import CaptureEntry, CaptureState, RefusalEntry, RerunReason
from muniment.model.fields import CaptureKind

router = APIRouter()
Reader = Annotated[Visitor, Depends(Allowed("read_captures"))]
Reviewer = Annotated[Visitor, Depends(Allowed("rerun"))]

PAGE = 50
STATES: tuple[str, ...] = get_args(CaptureState)
KINDS: tuple[str, ...] = get_args(CaptureKind)
GATES: tuple[str, ...] = get_args(GateName)
_CAPTURES = ("kind", "state", "subject", "user_id", "run_id")
_REFUSALS = ("gate", "reason", "capture_id")


@router.get("/captures")
async def captures(request: Request, visitor: Reader) -> Response:
    """The latest captures, by what is asked for; without their content."""
    typed = asked(request, *_CAPTURES, "after")
    given: dict[str, Any] = {name: value or None for name, value in typed.items()}
    found: list[CaptureEntry] = []
    problem = None
    try:
        found = await visitor.fabric.captures.list(visitor.principal, limit=PAGE + 1, **given)
    except (InvalidInput, NotFound) as error:
        problem = told(error)
    return page(
        "captures.html",
        visitor,
        status=200 if problem is None else 400,
        at="captures",
        typed=typed,
        found=found[:PAGE],
        next=found[PAGE - 1].capture_id if len(found) > PAGE else None,
        problem=problem,
        narrowed=any(typed[name] for name in _CAPTURES),
        states=STATES,
        kinds=KINDS,
        address=address,
    )


@router.get("/captures/refusals")
async def refusals(request: Request, visitor: Reader) -> Response:
    """What gates refused, the latest first."""
    typed = asked(request, *_REFUSALS, "latest", "after")
    given: dict[str, Any] = {name: typed[name] or None for name in (*_REFUSALS, "after")}
    found: list[RefusalEntry] = []
    problem = None
    try:
        found = await visitor.fabric.refusals.list(
            visitor.principal, limit=PAGE + 1, latest=typed["latest"] == "yes", **given
        )
    except (InvalidInput, NotFound) as error:
        problem = told(error)
    return page(
        "refusals.html",
        visitor,
        status=200 if problem is None else 400,
        at="captures",
        typed=typed,
        found=found[:PAGE],
        next=found[PAGE - 1].refusal_id if len(found) > PAGE else None,
        problem=problem,
        narrowed=any(typed[name] for name in (*_REFUSALS, "latest")),
        gates=GATES,
        address=address,
    )


@router.get("/captures/{capture_id}")
async def capture(visitor: Reader, capture_id: str) -> Response:
    """One capture, opened, with what came of it; that it was read is recorded."""
    return await _shown(visitor, capture_id)


@router.post("/captures/{capture_id}/rerun")
async def rerun(request: Request, visitor: Reviewer, capture_id: str) -> Response:
    """Have it consolidated again."""
    form = await form_of(request, visitor)
    try:
        ordered = await visitor.fabric.captures.rerun(
            visitor.principal, capture_id, cast("RerunReason", text_of(form, "reason") or "requested")
        )
    except (Conflict, InvalidInput) as error:
        return await _shown(
            visitor, capture_id, problem=told(error), status=409 if isinstance(error, Conflict) else 422
        )
    said = f"It waits to be consolidated again, as number {ordered.number}"
    return went(visitor, f"captures/{capture_id}", said)


async def _shown(visitor: Visitor, capture_id: str, *, problem: str | None = None, status: int = 200) -> Response:
    found = await visitor.fabric.captures.get(visitor.principal, capture_id)
    return page(
        "capture.html",
        visitor,
        status=status,
        at="captures",
        found=found,
        payload=_payload(found.capture),
        problem=problem,
        may_rerun=visitor.may("rerun") and found.state in ("processed", "refused", "parked"),
        reasons=get_args(RerunReason),
        address=address,
    )


def _payload(capture: Capture | None) -> str:
    """What a capture holds beside its text, as it is read."""
    if capture is None or capture.content is None:
        return ""
    held = capture.content.model_dump(mode="json", exclude={"text"}, exclude_defaults=True)
    return to_json(held, indent=2).decode() if held else ""
