"""State and correct: a person states a fact or corrects a memory, with the gates' answer before it is saved.

Below the form are their earlier statements, with the outcome of each.
"""

from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse
from pydantic_core import from_json
from starlette.datastructures import FormData

from muniment.console.forms import lines_field, raw_fields, read_form, redirect, text_field
from muniment.console.listing import load_listing
from muniment.console.rendering import HEADERS, environment, page
from muniment.console.urls import query_fields
from muniment.console.visitors import Requires, Visitor, error_text
from muniment.errors import Conflict, InvalidInput, MunimentError, NotFound
from muniment.model.candidate import Refusal
from muniment.model.promoted import PromotedMemory
from muniment.model.review_views import EditCheck

router = APIRouter()
Writer = Annotated[Visitor, Depends(Requires("correct"))]

FIELDS = (
    *("memory_id", "entity", "predicate", "value", "text", "classification", "subject", "user_id", "evidence_refs"),
    "corrects_key",
)
# What is to be corrected stays in the address when another page of statements is shown.
TARGET = ("memory_id", "corrects_key", "entity", "predicate")
STATEMENTS_SHOWN = 20
# What a fact is labelled unless another label is chosen, where the pack declares it.
USUAL_LABEL = "INTERNAL"


@router.get("/state")
async def state(request: Request, visitor: Writer) -> Response:
    """The form to state a fact, or to correct the memory or key in the address; and what the visitor stated before."""
    return await _state_page(request, visitor, query_fields(request, *FIELDS))


@router.post("/state/check")
async def check(request: Request, visitor: Writer) -> Response:
    """What the statement would become; nothing is saved."""
    form = await read_form(request, visitor)
    typed = raw_fields(form, *FIELDS)
    try:
        checked = await _check(visitor, form)
    except (InvalidInput, Conflict, NotFound) as error:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        return await _state_page(request, visitor, typed, problem=error_text(error))
    if "text/html" in request.headers.get("accept", ""):
        return await _state_page(request, visitor, typed, checked=checked)
    memory = await _memory(visitor, typed["memory_id"])
    html = environment().get_template("parts/check.html").render(checked=checked, before=memory.text if memory else "")
    return JSONResponse({"html": html}, headers=HEADERS)


@router.post("/state")
async def save(request: Request, visitor: Writer) -> Response:
    """Save it: it waits for another person, as every statement of a person does."""
    form = await read_form(request, visitor)
    typed = raw_fields(form, *FIELDS)
    try:
        stated = _stated(form)
        if typed["memory_id"] or typed["corrects_key"]:
            target = {"memory_id": stated.pop("memory_id")} if "memory_id" in stated else {}
            saved = await visitor.fabric.correct(visitor.principal, **target, **stated)
        else:
            kind = "preference" if "value" in stated else "statement"
            saved = await visitor.fabric.propose(visitor.principal, write_class=kind, confidence=0.95, **stated)
        if isinstance(saved, Refusal):
            raise Conflict(f"refused by the gate {saved.gate}: {saved.reason.replace('_', ' ')}")
    except (InvalidInput, Conflict, NotFound) as error:
        return await _state_page(request, visitor, typed, problem=error_text(error))
    path = f"queue/{saved.proposal_id}" if visitor.may("read_queue") else "state"
    return redirect(visitor, path, "Saved: another person has to approve it")


def _stated(form: FormData) -> dict[str, Any]:
    """The fields that are given; a value that reads as JSON is taken as such, any other as text."""
    stated: dict[str, Any] = {name: text_field(form, name) for name in FIELDS if name != "corrects_key"}
    stated["evidence_refs"] = lines_field(form, "evidence_refs") or None
    if stated["value"] is not None:
        with suppress(ValueError):
            stated["value"] = from_json(stated["value"], allow_inf_nan=False)
    return {name: value for name, value in stated.items() if value is not None}


async def _check(visitor: Visitor, form: FormData) -> EditCheck:
    stated = _stated(form)
    corrects = text_field(form, "corrects_key") is not None and "memory_id" not in stated
    kind = "preference" if "value" in stated else "statement"
    return await visitor.fabric.check_statement(visitor.principal, corrects_key=corrects, write_class=kind, **stated)


async def _memory(visitor: Visitor, memory_id: str) -> PromotedMemory | None:
    """The memory to correct, for who may read it."""
    if not memory_id or not visitor.may("read_memory"):
        return None
    try:
        return await visitor.fabric.get(visitor.principal, memory_id)
    except MunimentError:
        return None


async def _state_page(
    request: Request,
    visitor: Visitor,
    typed: dict[str, str],
    *,
    problem: str | None = None,
    checked: EditCheck | None = None,
) -> Response:
    memory = await _memory(visitor, typed["memory_id"])
    before = memory.text if memory is not None else ""
    if memory is not None and not typed["value"] and not typed["text"]:
        typed["value"] = memory.value if isinstance(memory.value, str) else ""
        typed["text"] = "" if typed["value"] else memory.text
    labels = await visitor.fabric.access.labels(visitor.principal)
    if typed["classification"] not in labels:
        typed["classification"] = USUAL_LABEL if USUAL_LABEL in labels else labels[0]
    fetch = partial(visitor.fabric.statements.list, visitor.principal)
    listing = await load_listing(request, "state", (), fetch, "capture_id", size=STATEMENTS_SHOWN)
    listing = replace(listing, filters={name: typed[name] for name in TARGET})
    context: dict[str, Any] = {"memory": memory, "checked": checked, "before": before, "labels": labels}
    context["listing"] = listing
    return page("state.html", visitor, problem=problem, typed=typed, **context)
