"""One proposal: beside its evidence, and everything a reviewer can do with it."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast, get_args

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse

from muniment.console.addresses import address
from muniment.console.differences import differences, newer, older
from muniment.console.edits import changes_of, typed_of
from muniment.console.forms import typed as typed_in
from muniment.console.forms import went
from muniment.console.pages.queue import REASONS
from muniment.console.rendering import HEADERS, environment, highlighted, label, page
from muniment.console.spans import pretty, span_in_payload, span_in_text
from muniment.console.visitors import Allowed, Visitor, form_of, text_of, told, vouched
from muniment.errors import (
    AlreadyDecided,
    Conflict,
    Denied,
    InvalidInput,
    MunimentError,
    NotPromotable,
    VersionConflict,
)
from muniment.fabric import AsyncFabric
from muniment.model.candidate import Refusal
from muniment.model.context import Principal
from muniment.model.evidence import Evidence
from muniment.model.fields import Tier
from muniment.model.proposal import Verdict
from muniment.model.review_views import EditCheck

router = APIRouter()
Reader = Annotated[Visitor, Depends(Allowed("read_queue"))]
Reviewer = Annotated[Visitor, Depends(Allowed("review"))]

Action = Literal["approve", "edit", "reject", "override", "assign", "release", "lift"]
# What a person can mend is told beside the form; anything else is a page of its own.
MENDABLE = (InvalidInput, Denied, Conflict, NotPromotable)
_STATUS: tuple[tuple[type[MunimentError], int], ...] = ((VersionConflict, 412), (InvalidInput, 422), (Denied, 403))
_DID = {
    "approve": "approved it",
    "edit": "edited it",
    "reject": "rejected it",
    "hold": "held it",
    "block": "blocked it",
    "duplicate": "set it aside as a duplicate",
    "withdraw": "withdrew it",
    "override": "gave it another place",
    "assign": "assigned it",
    "release": "released it",
    "lift": "lifted its rejection",
    "resolve": "settled its contradiction",
}


@router.get("/queue/{proposal_id}")
async def proposal(visitor: Reader, proposal_id: str) -> Response:
    """A proposal beside what it rests on."""
    return await _shown(visitor, proposal_id)


@router.get("/queue/{proposal_id}/preview")
async def preview(request: Request, visitor: Reviewer, proposal_id: str) -> Response:
    """What recall would look like before and after its approval."""
    query = request.query_params.get("query", "").strip() or None
    found = await visitor.fabric.queue.preview(visitor.principal, proposal_id, query=query)
    if "part" in request.query_params:
        return _part("parts/preview.html", preview=found, query=query or "", proposal_id=proposal_id)
    return page("preview.html", visitor, at="queue", preview=found, query=query or "", proposal_id=proposal_id)


@router.post("/queue/{proposal_id}/attend")
async def attend(request: Request, visitor: Reviewer, proposal_id: str) -> Response:
    """Who else looks at it, and what became of it since."""
    await form_of(request, visitor)
    others = await visitor.fabric.queue.attend(visitor.principal, proposal_id)
    now = await visitor.fabric.queue.get(visitor.principal, proposal_id)
    shown: dict[str, Any] = {
        "others": [one.principal for one in others],
        "version": now.version,
        "status": now.status,
        "told": verdicts_in_words(now.verdicts[-1:]),
    }
    return JSONResponse(shown, headers=HEADERS)


@router.post("/queue/{proposal_id}/check")
async def check(request: Request, visitor: Reviewer, proposal_id: str) -> Response:
    """What an edit would become; nothing of it is kept."""
    form = await form_of(request, visitor)
    found = await visitor.fabric.queue.get(visitor.principal, proposal_id)
    try:
        changes = changes_of(form, found.candidate)
        checked = await visitor.fabric.queue.check(visitor.principal, proposal_id, **changes) if changes else None
    except MENDABLE as error:
        if _by_script(request):
            raise
        return await _shown(visitor, proposal_id, at="edit", problem=error, typed=typed_in(form, *_FIELDS["edit"]))
    if _by_script(request):
        return _part("parts/check.html", checked=checked, proposal=found, differences=differences)
    return await _shown(
        visitor, proposal_id, at="edit", typed=typed_in(form, *_FIELDS["edit"]), checked=checked, was_checked=True
    )


@router.post("/queue/{proposal_id}/{action}")
async def act(request: Request, visitor: Reviewer, proposal_id: str, action: Action) -> Response:
    """Do with it what its form says, to the version that was read."""
    form = await form_of(request, visitor)
    given = {name: text_of(form, name) for name in _FIELDS[action]}
    try:
        version = _version(text_of(form, "version"))
        asked = _Asked(visitor.fabric, visitor.principal, proposal_id, given, version)
        if action == "edit":
            found = await visitor.fabric.queue.get(visitor.principal, proposal_id)
            asked.changes = changes_of(form, found.candidate)
        done = await _ACTIONS[action](asked)
    except (VersionConflict, AlreadyDecided) as error:
        late = await _too_late(visitor, proposal_id, text_of(form, "version"), error)
        if _by_script(request):
            raise late from None
        return await _shown(visitor, proposal_id, at=action, problem=late, typed=typed_in(form, *_FIELDS[action]))
    except MENDABLE as error:
        if _by_script(request):
            raise
        return await _shown(visitor, proposal_id, at=action, problem=error, typed=typed_in(form, *_FIELDS[action]))
    if _by_script(request):
        marked = vouched(visitor.form_token, done.said)
        return JSONResponse({"said": done.said, "to": address(done.to), "vouched": marked}, headers=HEADERS)
    return went(visitor, done.to, done.said)


@dataclass
class _Asked:
    """What a form asks for."""

    fabric: AsyncFabric
    principal: Principal
    proposal_id: str
    given: dict[str, str | None]
    version: int | None
    changes: Any = None


@dataclass(frozen=True)
class _Done:
    """What to say of it, and where to go on."""

    said: str
    to: str


async def _approve(asked: _Asked) -> _Done:
    done = await asked.fabric.queue.approve(
        asked.principal,
        asked.proposal_id,
        note=asked.given["note"],
        supersedes=asked.given["supersedes"],
        version=asked.version,
    )
    if done.status in ("promoted", "duplicate"):
        return _Done("Approved: it is a memory now" if done.status == "promoted" else _REPEATS, "queue")
    return _Done(f"Not promoted: it is {label(done.status)} now", _place(asked.proposal_id))


_REPEATS = "Set aside as a duplicate: a memory says the same already"


async def _edit(asked: _Asked) -> _Done:
    done = await asked.fabric.queue.edit(
        asked.principal, asked.proposal_id, note=asked.given["note"], version=asked.version, **asked.changes
    )
    if isinstance(done, Refusal):
        raise Conflict(refused(done))
    return _Done("Edited: this is what waits now", _place(done.proposal_id))


async def _reject(asked: _Asked) -> _Done:
    await asked.fabric.queue.reject(
        asked.principal,
        asked.proposal_id,
        reason=cast("str", asked.given["reason"]),
        note=asked.given["note"],
        version=asked.version,
    )
    return _Done("Rejected", "queue")


async def _override(asked: _Asked) -> _Done:
    tier, priority = asked.given["tier"], asked.given["priority"]
    await asked.fabric.queue.override(
        asked.principal,
        asked.proposal_id,
        tier=cast("Tier | None", tier),
        priority=_share(priority) if priority is not None else None,
        note=asked.given["note"],
        version=asked.version,
    )
    return _Done("It has another place now", _place(asked.proposal_id))


async def _assign(asked: _Asked) -> _Done:
    done = await asked.fabric.queue.assign(
        asked.principal, asked.proposal_id, to=asked.given["to"], version=asked.version
    )
    return _Done(f"Assigned to {done.assignee}", _place(asked.proposal_id))


async def _release(asked: _Asked) -> _Done:
    await asked.fabric.queue.release(asked.principal, asked.proposal_id, version=asked.version)
    return _Done("Released", _place(asked.proposal_id))


async def _lift(asked: _Asked) -> _Done:
    await asked.fabric.queue.lift(asked.principal, asked.proposal_id, note=asked.given["note"], version=asked.version)
    return _Done("Its rejection is forgotten: the same can be proposed again", _place(asked.proposal_id))


_ACTIONS: dict[Action, Callable[[_Asked], Awaitable[_Done]]] = {
    "approve": _approve,
    "edit": _edit,
    "reject": _reject,
    "override": _override,
    "assign": _assign,
    "release": _release,
    "lift": _lift,
}
_FIELDS: dict[Action, tuple[str, ...]] = {
    "approve": ("note", "supersedes"),
    "edit": ("text", "value", "classification", "evidence_refs", "note"),
    "reject": ("reason", "note"),
    "override": ("tier", "priority", "note"),
    "assign": ("to",),
    "release": (),
    "lift": ("note",),
}


async def _shown(
    visitor: Visitor,
    proposal_id: str,
    *,
    at: Action | None = None,
    problem: MunimentError | None = None,
    typed: dict[str, str] | None = None,
    checked: EditCheck | None = None,
    was_checked: bool = False,
) -> Response:
    """The page; with `problem` beside the form it is about, and in that form what was typed."""
    found = await visitor.fabric.queue.evidence(visitor.principal, proposal_id)
    others = await visitor.fabric.queue.attend(visitor.principal, proposal_id) if visitor.may("review") else ()
    candidate = found.proposal.candidate
    fields = {action: dict.fromkeys(names, "") for action, names in _FIELDS.items()}
    fields["edit"] |= typed_of(candidate)
    if at is not None and typed is not None:
        fields[at] |= typed
    return page(
        "proposal.html",
        visitor,
        status=_status(problem) if problem is not None else 200,
        at="queue",
        evidence=found,
        proposal=found.proposal,
        candidate=candidate,
        open=found.proposal.status in ("pending", "held"),
        others=others,
        quoted=_quoted(found),
        conflicts=_conflicts(found),
        repeated=_repeated(found),
        open_form=at,
        problem=told(problem) if problem is not None else None,
        typed=fields,
        checked=checked,
        was_checked=was_checked,
        tiers=get_args(Tier),
        reasons=REASONS,
        did=_DID,
        pretty=pretty,
        differences=differences,
    )


def _quoted(found: Evidence) -> dict[str, Any]:
    """The capture's content, with what the candidate was drawn from marked."""
    content = found.capture.content if found.capture is not None else None
    if content is None:
        return {"text": None, "payload": None, "fact": None}
    candidate = found.proposal.candidate
    given = content.fact.model_dump(mode="json", exclude_none=True) if content.fact is not None else None
    payload, fact = (pretty(one) if one is not None else None for one in (content.payload, given))
    return {
        "text": _marked(content.text, span_in_text(content.text, candidate)) if content.text else None,
        "payload": _marked(payload, span_in_payload(payload, candidate)) if payload is not None else None,
        "fact": _marked(fact, span_in_payload(fact, candidate)) if fact is not None else None,
    }


def _marked(text: str, span: tuple[int, int] | None) -> Any:
    return highlighted(text, *span) if span is not None else text


def _conflicts(found: Evidence) -> list[dict[str, Any]]:
    """Each memory that it contradicts, and both texts with what tells them apart."""
    shown: list[dict[str, Any]] = []
    by_memory = {one.existing: one for one in found.contradictions}
    for memory_id in dict.fromkeys((*found.proposal.contradiction_check.contradicted, *by_memory)):
        memory = found.memories.get(memory_id)
        if memory is None:
            continue
        parts = differences(memory.text, found.proposal.candidate.text)
        one = by_memory.get(memory_id)
        shown.append({"memory": memory, "contradiction": one, "older": older(parts), "newer": newer(parts)})
    return shown


def _repeated(found: Evidence) -> list[Any]:
    """The memories that say the same."""
    check = found.proposal.contradiction_check
    same = (check.existing, *check.others) if check.verdict == "duplicate" else ()
    ids = (found.proposal.duplicate_check, *same)
    return [found.memories[one] for one in dict.fromkeys(ids) if one is not None and one in found.memories]


def verdicts_in_words(verdicts: Sequence[Verdict]) -> str:
    """Who did what, in one sentence."""
    return ", ".join(
        f"{_apart(one.by)} {_DID[one.action]}"
        + (f" ({_apart(one.reason)})" if one.reason and one.action == "reject" else "")
        for one in verdicts
    )


def _apart(name: str) -> str:
    """A name in a sentence that no markup can be in: where it turns the direction, it turns no more than itself."""
    return f"\u2068{name}\u2069" if _TURNS.search(name) else name


_TURNS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def refused(refusal: Refusal) -> str:
    """A gate's refusal as a person reads it."""
    return f"the gate {label(refusal.gate)} would not let it through: {label(refusal.reason)}"


async def _too_late(
    visitor: Visitor, proposal_id: str, read: str | None, error: Conflict
) -> VersionConflict | AlreadyDecided:
    """The same error, saying who was first and what they did."""
    now = await visitor.fabric.queue.get(visitor.principal, proposal_id)
    since = now.verdicts[int(read) :] if read is not None and read.isdigit() and len(read) < 10 else now.verdicts[-1:]
    kind = AlreadyDecided if isinstance(error, AlreadyDecided) else VersionConflict
    return kind(f"somebody was first: {verdicts_in_words(since) or error.message}. Nothing of yours was done")


def _version(given: str | None) -> int | None:
    if given is None:
        return None
    if not given.isdigit() or len(given) > 9:
        raise InvalidInput("expected a whole number", field="version")
    return int(given)


def _share(given: str) -> float:
    try:
        return float(given.replace(",", "."))
    except ValueError:
        raise InvalidInput("expected a number from 0 to 1", field="priority") from None


def _place(proposal_id: str) -> str:
    return f"queue/{proposal_id}"


def _by_script(request: Request) -> bool:
    return "text/html" not in request.headers.get("accept", "")


def _status(problem: MunimentError) -> int:
    return next((status for kind, status in _STATUS if isinstance(problem, kind)), 409)


def _part(template: str, **shown: Any) -> Response:
    """A piece of a page, for a script to put in its place."""
    return JSONResponse({"html": environment().get_template(template).render(shown)}, headers=HEADERS)
