"""My memory: what is held about the end user who is signed in, and what they may do about it (section 4.8)."""

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse
from pydantic_core import to_json

from muniment.console.forms import list_field, read_form, redirect, text_field
from muniment.console.listing import load_listing
from muniment.console.rendering import HEADERS, page
from muniment.console.visitors import Requires, Visitor, error_text
from muniment.errors import InvalidInput, MunimentError, NotFound
from muniment.model.candidate import Refusal
from muniment.model.subject import MyMemory, MyMemoryDetails, MyView
from muniment.subject.page import render

router = APIRouter()

PAGE_SIZE = 20
RECALLS_SHOWN = 20
FORGOTTEN = "It is forgotten."

Person = Annotated[Visitor, Depends(Requires("me"))]


@router.get("/me")
async def my_memory(request: Request, visitor: Person) -> Response:
    """What waits for the person, what is held about them, their consents, and who recalled what."""
    return await _page(request, visitor)


async def _page(request: Request, visitor: Visitor, problem: str | None = None) -> Response:
    view = partial(visitor.fabric.me.view, visitor.principal, recalls=RECALLS_SHOWN)
    seen: list[MyView] = []

    async def fetch(limit: int, after: str | None) -> Sequence[MyMemory]:
        seen.append(await view(limit=limit, after=after))
        return seen[0].memories

    found = await load_listing(request, "me", (), fetch, "memory_id", size=PAGE_SIZE)
    # A wrong place in the list hides nothing else.
    mine = seen[0] if seen else await view(limit=1)
    context: dict[str, Any] = {
        "listing": found,
        "pending": mine.pending,
        "questions": mine.consent_requests,
        "consents": [one for one in mine.consents if one.state == "active"],
        "recalls": mine.recalls,
        "labels": mine.consent_labels,
        "asked": request.query_params.get("proposal"),
        "without_own_id": _without_own_id(visitor),
    }
    return page("me.html", visitor, problem=problem or found.problem, **context)


def _without_own_id(visitor: Visitor) -> Callable[[str], str]:
    """Return how facts are shown to the person whom they are about: without the id that they begin with."""
    own_id = re.compile(rf"[a-z][a-z0-9_]*:{re.escape(visitor.principal.id)} (?=.)")

    def shown(text: str) -> str:
        found = own_id.match(text)
        return text[found.end() :] if found else text

    return shown


@router.get("/me/memories/{memory_id}")
async def why(memory_id: str, visitor: Person) -> Response:
    """One memory and why it is held."""
    return _memory_page(visitor, await visitor.fabric.me.get(visitor.principal, memory_id))


def _memory_page(visitor: Visitor, one: MyMemoryDetails, typed: str = "", problem: str | None = None) -> Response:
    context: dict[str, Any] = {"one": one, "typed": typed, "without_own_id": _without_own_id(visitor)}
    return page("me_memory.html", visitor, problem=problem, **context)


@router.post("/me/proposals/{proposal_id}/{act}")
async def decide(request: Request, proposal_id: str, act: str, visitor: Person) -> Response:
    """Confirm a fact that waits, or say that it is not to be kept."""
    if act not in ("confirm", "decline"):
        raise NotFound("no such page")
    await read_form(request, visitor)
    verb = visitor.fabric.me.confirm if act == "confirm" else visitor.fabric.me.decline
    try:
        done = await verb(visitor.principal, proposal_id)
    except MunimentError as error:
        return await _page(request, visitor, error_text(error))
    said = {"promoted": "It is remembered from now on.", "rejected": "It is not kept."}
    return redirect(visitor, "me", said.get(done.status, f"It is {done.status}."))


@router.post("/me/requests/{request_id}/{decision}")
async def answer(request: Request, request_id: str, decision: str, visitor: Person) -> Response:
    """Answer whether something may be kept."""
    if decision not in ("grant", "refuse"):
        raise NotFound("no such page")
    await read_form(request, visitor)
    try:
        await visitor.fabric.me.answer(visitor.principal, request_id, "grant" if decision == "grant" else "refuse")
    except MunimentError as error:
        return await _page(request, visitor, error_text(error))
    granted = "You consented. It will wait here for you to confirm it, once it has been read again."
    return redirect(visitor, "me", granted if decision == "grant" else "It is not kept, and nobody asks again.")


@router.post("/me/memories/{memory_id}/forget")
async def forget(request: Request, memory_id: str, visitor: Person) -> Response:
    """Have a memory forgotten."""
    await read_form(request, visitor)
    by_script = "text/html" not in request.headers.get("accept", "")
    try:
        await visitor.fabric.me.forget(visitor.principal, memory_id)
    except MunimentError as error:
        if by_script:
            raise
        return await _page(request, visitor, error_text(error))
    return JSONResponse({"notice": FORGOTTEN}, headers=HEADERS) if by_script else redirect(visitor, "me", FORGOTTEN)


@router.post("/me/memories/{memory_id}/undo")
async def undo(request: Request, memory_id: str, visitor: Person) -> Response:
    """Undo that a fact was kept without a person."""
    await read_form(request, visitor)
    try:
        done = await visitor.fabric.me.undo(visitor.principal, memory_id)
    except MunimentError as error:
        return await _page(request, visitor, error_text(error))
    said = "It is undone."
    if done.restored:
        said = "It is undone, and what it had replaced is back."
    elif done.not_restored:
        said = "It is undone. A reviewer decides about what it had replaced."
    return redirect(visitor, "me", said)


@router.post("/me/memories/{memory_id}/allow-again")
async def allow_again(request: Request, memory_id: str, visitor: Person) -> Response:
    """Let a forgotten fact be proposed again."""
    await read_form(request, visitor)
    try:
        await visitor.fabric.me.allow_again(visitor.principal, memory_id)
    except MunimentError as error:
        return await _page(request, visitor, error_text(error))
    return redirect(visitor, "me", "It may be remembered again.")


@router.post("/me/memories/{memory_id}/correct")
async def correct(request: Request, memory_id: str, visitor: Person) -> Response:
    """Say what is right instead of a memory."""
    form = await read_form(request, visitor)
    typed = text_field(form, "right")
    memory = await visitor.fabric.me.get(visitor.principal, memory_id)
    is_typed = memory.entity is not None and memory.predicate is not None
    stated: dict[str, Any] = {"value": typed} if is_typed else {"text": typed}
    try:
        made = await visitor.fabric.me.correct(visitor.principal, memory_id, **stated)
        if isinstance(made, Refusal):
            raise InvalidInput(f"was refused: {made.reason}")
    except MunimentError as error:
        return _memory_page(visitor, memory, typed or "", error_text(error))
    return redirect(visitor, "me", "A reviewer will look at your correction.")


@router.post("/me/consents")
async def consent(request: Request, visitor: Person) -> Response:
    """Record the person's own consent."""
    form = await read_form(request, visitor)
    evidence = ["console:my_memory"]
    try:
        await visitor.fabric.me.consent(
            visitor.principal, data_classifications_allowed=list_field(form, "labels"), evidence_refs=evidence
        )
    except MunimentError as error:
        return await _page(request, visitor, error_text(error))
    return redirect(visitor, "me", "Your consent is recorded.", anchor="consents")


@router.post("/me/consents/{consent_id}/revoke")
async def revoke(request: Request, consent_id: str, visitor: Person) -> Response:
    """Revoke one of the person's consents."""
    await read_form(request, visitor)
    try:
        await visitor.fabric.me.revoke(visitor.principal, consent_id, evidence_refs=["console:my_memory"])
    except MunimentError as error:
        return await _page(request, visitor, error_text(error))
    return redirect(visitor, "me", "Your consent is revoked.", anchor="consents")


@router.post("/me/erasure")
async def forget_everything(request: Request, visitor: Person) -> Response:
    """Ask for the erasure of everything, if the person typed their id again."""
    form = await read_form(request, visitor)
    if text_field(form, "typed") != visitor.principal.id:
        return await _page(request, visitor, f"nothing was asked for: the text you typed is not {visitor.principal.id}")
    try:
        asked = await visitor.fabric.me.forget_everything(visitor.principal)
    except MunimentError as error:
        return await _page(request, visitor, error_text(error))
    done = "Everything about you was erased." if asked.answer else "A privacy officer will look at your request."
    return redirect(visitor, "me", done)


@router.get("/me/export.{kind}")
async def export(kind: str, visitor: Person) -> Response:
    """Everything that is held, to take along: as data, or as a page to read; both are files to save."""
    if kind not in ("json", "html"):
        raise NotFound("no such page")
    whole = await visitor.fabric.me.export(visitor.principal)
    content = to_json(whole, indent=2) if kind == "json" else render(whole).encode()
    saved = {"Content-Disposition": f'attachment; filename="my-memory.{kind}"'}
    media_type = "application/json" if kind == "json" else "text/html; charset=utf-8"
    return Response(content, media_type=media_type, headers=HEADERS | saved)
