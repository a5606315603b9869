"""Refused: what the gates refused is run again by reason, and exceptions are proposed as a change of the pack."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, cast, get_args

from fastapi import APIRouter, Depends, Request, Response

from muniment.console.forms import read_form, redirect, text_field
from muniment.console.pages.packs import as_yaml
from muniment.console.rendering import page
from muniment.console.sealed_words import redirect_to_found, words_of
from muniment.console.urls import query_fields
from muniment.console.visitors import Requires, Visitor, error_text
from muniment.errors import Conflict, InvalidInput, MunimentError, NotFound
from muniment.loops import in_thread
from muniment.model.activation import PackDifference
from muniment.model.candidate import GateName
from muniment.model.capture import RerunReason
from muniment.packs.exceptions import ExceptionKind, free_version, with_exception

router = APIRouter()
Reader = Annotated[Visitor, Depends(Requires("read_captures"))]
Reviewer = Annotated[Visitor, Depends(Requires("rerun"))]
Tester = Annotated[Visitor, Depends(Requires("backtest"))]
# Proposes a change, which only an admin can put in force.
Proposer = Annotated[Visitor, Depends(Requires("review"))]

# Captures that one request runs again; the next one goes on from there.
MOST_RERUN = 200
# Captures that are counted, to say how many are left.
MOST_COUNTED = 5000
_PAGE = 500
KINDS = get_args(ExceptionKind)


@router.post("/captures/refusals/rerun")
async def rerun(request: Request, visitor: Reviewer) -> Response:
    """Run again the captures that a gate refused for one reason, after a consent or the pack has changed."""
    form = await read_form(request, visitor)
    gate, why, last = text_field(form, "gate"), text_field(form, "reason"), text_field(form, "after")
    if gate is None or why is None:
        raise InvalidInput("expected the gate and the reason of what is run again", field="reason")
    reason: RerunReason = "consent_changed" if gate == "consent" else "pack_changed"
    ordered, left, looked_at, seen = 0, 0, last, set[str]()
    while len(seen) < MOST_COUNTED:
        found = await visitor.fabric.refusals.list(
            visitor.principal, gate=cast("GateName", gate), reason=why, latest=True, limit=_PAGE, after=last
        )
        for one in found:
            if one.capture_id in seen:
                continue
            seen.add(one.capture_id)
            if ordered == MOST_RERUN:
                left += 1
                continue
            looked_at = one.refusal_id
            try:
                await visitor.fabric.captures.rerun(visitor.principal, one.capture_id, reason)
                ordered += 1
            except (Conflict, NotFound):  # It waits to be run again already, or is gone.
                continue
        if len(found) < _PAGE:
            break
        last = found[-1].refusal_id
    more = f"{'at least ' if len(seen) >= MOST_COUNTED else ''}{left}"
    notice = f"{ordered} {'capture is' if ordered == 1 else 'captures are'} run again"
    notice += f", {more} {'is' if more == '1' else 'are'} left" if left else ""
    go_on = looked_at if left or len(seen) >= MOST_COUNTED else None
    return redirect(visitor, "captures/refusals", notice, gate=gate, reason=why, go_on=go_on)


@router.get("/captures/exception")
async def exception(request: Request, visitor: Tester) -> Response:
    """A change of the pack in force that excepts a value of the company's own, ready for a backtest."""
    words = words_of(request, visitor, "value")
    typed = query_fields(request, "kind", "value") | {"value": words.text}
    draft, problem = None, error_text(words.problem) if words.problem is not None else None
    if typed["kind"] in KINDS and typed["value"]:
        try:
            draft = await _draft(visitor, cast("ExceptionKind", typed["kind"]), typed["value"])
        except MunimentError as error:
            problem = error_text(error)
    return _exception_page(visitor, typed, draft, problem)


@router.post("/captures/exception/prepare")
async def prepare(request: Request, visitor: Tester) -> Response:
    """Lead to the change; its value, which may be a person's after all, is sealed in the address."""
    form = await read_form(request, visitor)
    typed = {name: text_field(form, name) or "" for name in ("kind", "value")}
    return redirect_to_found(visitor, "captures/exception", "value", typed)


@router.post("/captures/exception")
async def propose(request: Request, visitor: Proposer) -> Response:
    """Keep the change as a registered version, which an admin can test and activate."""
    form = await read_form(request, visitor)
    typed = {name: text_field(form, name) or "" for name in ("kind", "value")}
    try:
        made = await visitor.fabric.packs.propose_exception(
            visitor.principal, kind=cast("ExceptionKind", typed["kind"]), value=typed["value"]
        )
    except (InvalidInput, Conflict) as error:
        return _exception_page(visitor, typed, None, error_text(error), status=422)
    return redirect(visitor, f"packs/{made.ref}", f"{made.ref} is registered: an admin can test and activate it")


@dataclass(frozen=True)
class _Draft:
    """A changed pack as text, and what it changes."""

    text: str
    difference: PackDifference


def _exception_page(
    visitor: Visitor, typed: Mapping[str, str], draft: _Draft | None, problem: str | None, status: int | None = None
) -> Response:
    context: dict[str, Any] = {"typed": typed, "kinds": KINDS, "draft": draft, "as_yaml": as_yaml}
    return page("exception.html", visitor, status=status, problem=problem, **context)


async def _draft(visitor: Visitor, kind: ExceptionKind, value: str) -> _Draft:
    """The pack in force with one more exception, under the next version; raises `InvalidInput` for a wrong value."""
    packs = visitor.fabric.packs
    now = (await packs.get(visitor.principal, (await packs.in_force(visitor.principal)).pack)).pack
    taken = {one.ref for one in await packs.list(visitor.principal, limit=500)}
    changed, text = await in_thread(with_exception, now, kind, value, free_version(now, taken))
    return _Draft(text, await packs.compare(visitor.principal, now.ref, changed))
