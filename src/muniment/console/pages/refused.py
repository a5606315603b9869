"""Refused: what the gates refused is run again by reason, and exceptions are proposed as a change of the pack."""

import re
from typing import Annotated, Any, cast

import yaml
from fastapi import APIRouter, Depends, Request, Response

from muniment.console.forms import read_form, redirect, text_field
from muniment.console.rendering import page
from muniment.console.urls import query_fields
from muniment.console.visitors import Requires, Visitor, error_text
from muniment.errors import Conflict, MunimentError, NotFound
from muniment.model.candidate import GateName
from muniment.model.capture import RerunReason
from muniment.pack import load_pack
from muniment.pack.redaction_exceptions import RedactionExceptions

router = APIRouter()
Reader = Annotated[Visitor, Depends(Requires("read_captures"))]
Reviewer = Annotated[Visitor, Depends(Requires("rerun"))]
# Proposes a change, which only an admin can register.
Tester = Annotated[Visitor, Depends(Requires("backtest"))]

# Captures that are run again at once.
MOST_RERUN = 200
KINDS = tuple(RedactionExceptions.model_fields)
_LAST_NUMBER = re.compile(r"(\d+)$")


@router.post("/captures/refusals/rerun")
async def rerun(request: Request, visitor: Reviewer) -> Response:
    """Run again the captures that a gate refused for one reason, after a consent or the pack has changed."""
    form = await read_form(request, visitor)
    gate, why = text_field(form, "gate"), text_field(form, "reason")
    reason: RerunReason = "consent_changed" if gate == "consent" else "pack_changed"
    found = await visitor.fabric.refusals.list(
        visitor.principal, gate=cast("GateName | None", gate), reason=why, latest=True, limit=MOST_RERUN
    )
    done = 0
    for capture_id in dict.fromkeys(one.capture_id for one in found):
        try:
            await visitor.fabric.captures.rerun(visitor.principal, capture_id, reason)
            done += 1
        except (Conflict, NotFound):  # It was run again meanwhile, or is gone.
            continue
    return redirect(visitor, "captures/refusals", f"{done} captures are run again", gate=gate, reason=why)


@router.get("/captures/exception")
async def exception(request: Request, visitor: Tester) -> Response:
    """A change of the pack in force that excepts a value of the company's own, ready for a backtest."""
    typed = query_fields(request, "kind", "value")
    text = problem = None
    if typed["kind"] in KINDS and typed["value"]:
        try:
            text = await _draft(visitor, typed["kind"], typed["value"])
        except MunimentError as error:
            problem = error_text(error)
    return page("exception.html", visitor, problem=problem, typed=typed, kinds=KINDS, text=text)


async def _draft(visitor: Visitor, kind: str, value: str) -> str:
    """The pack in force with one more exception, under the next version; raises `PackInvalid` for a wrong value."""
    packs = visitor.fabric.packs
    ref = (await packs.in_force(visitor.principal)).pack
    document = (await packs.get(visitor.principal, ref)).pack.document()
    exceptions: dict[str, Any] = document["policy_layer"]["guardrails"]["redaction_exceptions"]
    exceptions[kind] = [*exceptions.get(kind, ()), value]
    taken = {one.ref for one in await packs.list(visitor.principal, limit=500)}
    meta = document["pack_meta"]
    while f"{meta['id']}@{meta['version']}" in taken:
        meta["version"] = _LAST_NUMBER.sub(lambda found: str(int(found[1]) + 1), meta["version"])
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=100)
    load_pack(text)
    return text
