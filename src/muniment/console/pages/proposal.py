"""One proposal: its evidence, and every action of a reviewer."""

import hmac
import re
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any, Literal, cast, get_args

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse
from pydantic_core import from_json
from starlette.datastructures import FormData

from muniment.console.differences import differences, newer, older
from muniment.console.forms import (
    lines_field,
    number_field,
    parse_qualifiers,
    raw_fields,
    read_form,
    redirect,
    text_field,
)
from muniment.console.pages.queue import REASONS
from muniment.console.quotes import quotes_of
from muniment.console.rendering import HEADERS, environment, label, page
from muniment.console.spans import pretty
from muniment.console.urls import console_url
from muniment.console.visitors import Requires, Visitor, error_text, sign_notice
from muniment.errors import (
    AlreadyDecided,
    Conflict,
    Denied,
    InvalidInput,
    MunimentError,
    NotPromotable,
    VersionConflict,
)
from muniment.model.candidate import Candidate, Refusal
from muniment.model.fields import Tier
from muniment.model.promoted import PromotedMemory
from muniment.model.proposal import Verdict
from muniment.model.trail import Evidence
from muniment.verbs.keywords import EditFields

router = APIRouter()
Reader = Annotated[Visitor, Depends(Requires("read_queue"))]
Reviewer = Annotated[Visitor, Depends(Requires("review"))]

Action = Literal["approve", "both", "comment", "edit", "reject", "hold", "override", "assign", "release", "lift"]
SCOPE = ("user_id", "intent_id", "workflow_id", "qualifiers")
FIELDS: dict[Action, tuple[str, ...]] = {
    "approve": ("note", "supersedes"),
    "both": ("contradiction_id", "existing", "incoming", "note"),
    "edit": ("text", "value", "classification", "evidence_refs", *SCOPE, "note"),
    "reject": ("reason", "note"),
    "comment": ("text",),
    "hold": ("note",),
    "override": ("tier", "priority", "note"),
    "assign": ("to",),
    "release": (),
    "lift": ("note",),
}
# Errors that the reviewer can act on: they are shown beside the form.
FORM_ERRORS = (InvalidInput, Denied, Conflict, NotPromotable)
_STATUSES: tuple[tuple[type[MunimentError], int], ...] = ((VersionConflict, 412), (InvalidInput, 422), (Denied, 403))
# What a reviewer expects of a decision: it is not said again.
APPROVED, REJECTED, ON_HOLD = "Approved: it is now a memory", "Rejected", "On hold: you can decide it later"
USUAL = (APPROVED, REJECTED, ON_HOLD)
CONTRADICTING = "Approved, but it contradicts another memory: settle it under Contradictions"
# Why to approve what may have been written to be approved, by number.
TRUST_REASONS = ("I checked its source", "it only quotes these words", "the gate is wrong about it")
# Characters of a memory that a button names.
SHORT = 32
VERDICTS = {
    "approve": "approved it",
    "edit": "edited it",
    "reject": "rejected it",
    "hold": "put it on hold",
    "block": "blocked it",
    "duplicate": "set it aside as a duplicate",
    "withdraw": "withdrew it",
    "override": "changed its tier or priority",
    "assign": "assigned it",
    "release": "released it",
    "lift": "lifted its rejection",
    "resolve": "settled its contradiction",
    "undo": "undid its promotion",
    "comment": "commented",
    "agree": "looked again and agrees",
    "disagree": "looked again and disagrees",
}


@router.get("/queue/{proposal_id}")
async def proposal(request: Request, visitor: Reader, proposal_id: str) -> Response:
    """A proposal with its evidence; one that is fetched in advance is not looked at yet."""
    return await _proposal_page(visitor, proposal_id, prefetched="x-prefetch" in request.headers)


@router.get("/queue/{proposal_id}/preview")
async def preview(request: Request, visitor: Reviewer, proposal_id: str) -> Response:
    """What a run would recall before and after the approval."""
    return await _preview(request, visitor, proposal_id, request.query_params.get("query", "").strip() or None)


@router.post("/queue/{proposal_id}/preview")
async def preview_query(request: Request, visitor: Reviewer, proposal_id: str) -> Response:
    """The same for a query, which may name a person and so is not part of the address."""
    form = await read_form(request, visitor)
    return await _preview(request, visitor, proposal_id, text_field(form, "query"))


async def _preview(request: Request, visitor: Visitor, proposal_id: str, query: str | None) -> Response:
    found = await visitor.fabric.queue.preview(visitor.principal, proposal_id, query=query)
    context: dict[str, Any] = {"preview": found, "query": query or "", "proposal_id": proposal_id}
    if _by_script(request):
        return _fragment("parts/preview.html", **context)
    return page("preview.html", visitor, **context)


@router.post("/queue/{proposal_id}/attend")
async def attend(request: Request, visitor: Reviewer, proposal_id: str) -> Response:
    """Who else is looking at the proposal, and its latest verdict."""
    await read_form(request, visitor)
    others = await visitor.fabric.queue.attend(visitor.principal, proposal_id)
    now = await visitor.fabric.queue.get(visitor.principal, proposal_id)
    state: dict[str, Any] = {
        "others": [one.principal for one in others],
        "version": now.version,
        "status": now.status,
        "latest": verdicts_text(now.verdicts[-1:]),
    }
    return JSONResponse(state, headers=HEADERS)


@router.post("/queue/{proposal_id}/check")
async def check(request: Request, visitor: Reviewer, proposal_id: str) -> Response:
    """What an edit would become; nothing is saved."""
    form = await read_form(request, visitor)
    found = await visitor.fabric.queue.get(visitor.principal, proposal_id)
    try:
        changes = _edit_changes(form, found.candidate)
        checked = await visitor.fabric.queue.check(visitor.principal, proposal_id, **changes) if changes else None
    except FORM_ERRORS as error:
        return await _failed(request, visitor, proposal_id, "edit", form, error)
    if _by_script(request):
        return _fragment("parts/check.html", checked=checked, before=found.candidate.text)
    result: dict[str, Any] = {"checked": checked, "was_checked": True}
    return await _proposal_page(visitor, proposal_id, "edit", raw_fields(form, *FIELDS["edit"]), **result)


@router.post("/queue/{proposal_id}/{action}")
async def act(request: Request, visitor: Reviewer, proposal_id: str, action: Action) -> Response:
    """Do what the form says, to the version that the reviewer read."""
    form = await read_form(request, visitor)
    try:
        notice, path = await _perform(visitor, proposal_id, action, form)
    except (VersionConflict, AlreadyDecided) as error:
        late = await _too_late(visitor, proposal_id, text_field(form, "version"), error)
        return await _failed(request, visitor, proposal_id, action, form, late)
    except FORM_ERRORS as error:
        return await _failed(request, visitor, proposal_id, action, form, error)
    if _by_script(request):
        signed = sign_notice(visitor.form_token, notice)
        answer = {"notice": notice, "to": console_url(path), "signed_notice": signed, "usual": notice in USUAL}
        return JSONResponse(answer, headers=HEADERS)
    return redirect(visitor, path, notice)


async def _perform(visitor: Visitor, proposal_id: str, action: Action, form: FormData) -> tuple[str, str]:
    """Call the fabric; return the notice, and the path of the page to show it on."""
    queue, target = visitor.fabric.queue, (visitor.principal, proposal_id)
    fields: dict[str, Any] = {name: text_field(form, name) for name in FIELDS[action]}
    fields["version"] = number_field(form, "version", None)
    if action in ("approve", "both") and not was_opened(visitor.form_token, proposal_id, form):
        raise Denied("open this proposal to approve it by itself; from the list it is approved like several")
    here = f"queue/{proposal_id}"
    match action:
        case "approve":
            status = (await queue.approve(*target, **fields)).status
            if status == "promoted":
                # Those that it contradicts may have become memories since its page was shown.
                met = fields["supersedes"] is None and await visitor.fabric.contradictions.list(
                    visitor.principal, proposal_id=proposal_id, limit=1
                )
                return CONTRADICTING if met else APPROVED, "queue"
            if status == "duplicate":
                return "Set aside as a duplicate of an existing memory", "queue"
            return f"Not promoted: it is now {label(status)}", here
        case "both":
            found = await visitor.fabric.contradictions.get(visitor.principal, fields["contradiction_id"] or "")
            if found.proposal.proposal_id != proposal_id:
                raise InvalidInput("is of another proposal", field="contradiction_id")
            await visitor.fabric.contradictions.resolve(
                visitor.principal,
                found.contradiction.contradiction_id,
                "coexist",
                existing=parse_qualifiers(fields["existing"], "existing"),
                incoming=parse_qualifiers(fields["incoming"], "incoming"),
                note=fields["note"],
                version=fields["version"],
            )
            return "Approved: both are kept, each for its own runs", "queue"
        case "edit":
            note, version = fields["note"], fields["version"]
            candidate = (await queue.get(*target)).candidate
            edited = await queue.edit(*target, note=note, version=version, **_edit_changes(form, candidate))
            if isinstance(edited, Refusal):
                raise Conflict(f"refused by the gate {label(edited.gate)}: {label(edited.reason)}")
            return "Edited: this version now waits for review", f"queue/{edited.proposal_id}"
        case "reject":
            await queue.reject(*target, **fields)
            return REJECTED, "queue"
        case "comment":
            said = fields["text"] or ""
            await queue.comment(*target, text=said, mentions=_mentions(said))
            return "Comment added", here
        case "hold":
            await queue.hold(*target, **fields)
            return ON_HOLD, "queue"
        case "override":
            fields["priority"] = _priority(fields["priority"])
            await queue.override(*target, **fields)
            return "Tier and priority updated", here
        case "assign":
            return f"Assigned to {(await queue.assign(*target, **fields)).assignee}", here
        case "release":
            await queue.release(*target, **fields)
            return "Released", here
        case "lift":
            await queue.lift(*target, **fields)
            return "Rejection lifted: the same fact can be proposed again", here


def opened(form_token: str, proposal_id: str, version: int) -> str:
    """The mark in the forms of a proposal's page: that this session opened the page of this version."""
    return hmac.new(form_token.encode(), f"opened:{proposal_id}:{version}".encode(), sha256).hexdigest()


def was_opened(form_token: str, proposal_id: str, form: FormData) -> bool:
    """Whether a form is from the page of the proposal; a list approves only what is ordinary (REV-13)."""
    version = number_field(form, "version", None)
    mark = text_field(form, "opened") or ""
    return version is not None and hmac.compare_digest(opened(form_token, proposal_id, version).encode(), mark.encode())


async def _failed(
    request: Request, visitor: Visitor, proposal_id: str, action: Action, form: FormData, error: MunimentError
) -> Response:
    """The page with the error beside the form, which keeps what was typed; for a script, raises the error."""
    if _by_script(request):
        raise error from None
    status = next((status for kind, status in _STATUSES if isinstance(error, kind)), 409)
    typed = raw_fields(form, *FIELDS[action])
    return await _proposal_page(visitor, proposal_id, action, typed, problem=error_text(error), status=status)


async def _proposal_page(
    visitor: Visitor,
    proposal_id: str,
    open_form: Action | None = None,
    typed: dict[str, str] | None = None,
    *,
    prefetched: bool = False,
    **context: Any,
) -> Response:
    """The page; `open_form` is open and filled with `typed`."""
    found = await visitor.fabric.queue.evidence(visitor.principal, proposal_id)
    attends = visitor.may("review") and not prefetched
    others = await visitor.fabric.queue.attend(visitor.principal, proposal_id) if attends else ()
    candidate = found.proposal.candidate
    fields = {action: dict.fromkeys(names, "") for action, names in FIELDS.items()}
    fields["edit"] |= _candidate_fields(candidate)
    if open_form is not None and typed is not None:
        fields[open_form] |= typed
    context = {"checked": None, "was_checked": False, "before": candidate.text} | context
    return page(
        "proposal.html",
        visitor,
        evidence=found,
        proposal=found.proposal,
        opened=opened(visitor.form_token, proposal_id, found.proposal.version),
        candidate=candidate,
        open=found.proposal.status in ("pending", "held"),
        others=others,
        quoted=quotes_of(found),
        conflicts=conflicts_of(found),
        opposites=_opposites(found),
        duplicates=_duplicates(found),
        open_form=open_form,
        typed=fields,
        tiers=get_args(Tier),
        reasons=REASONS,
        trust_reasons=TRUST_REASONS,
        verdicts=VERDICTS,
        **context,
    )


def _candidate_fields(candidate: Candidate) -> dict[str, str]:
    """The initial fields of the form: a text value as it is, any other value as JSON."""
    return {
        "text": candidate.text,
        "value": candidate.value if isinstance(candidate.value, str) else pretty(candidate.value),
        "classification": candidate.classification,
        "evidence_refs": "\n".join(candidate.evidence_refs),
        "user_id": candidate.scope.user_id or "",
        "intent_id": candidate.scope.intent_id or "",
        "workflow_id": candidate.scope.workflow_id or "",
        "qualifiers": ", ".join(f"{name}={value}" for name, value in sorted(candidate.scope.qualifiers.items())),
        "note": "",
    }


def _edit_changes(form: FormData, candidate: Candidate) -> EditFields:
    """The fields that the form changes.

    Raises `InvalidInput` for a value that is not JSON where the candidate's value is not text.
    """
    changes: EditFields = {}
    before = _candidate_fields(candidate)
    if "text" in form and not _same(text := text_field(form, "text") or "", before["text"]):
        changes["text"] = text
    if "value" in form and not _same(value := text_field(form, "value") or "", before["value"]):
        changes["value"] = value if isinstance(candidate.value, str) else _json(value)
    label = text_field(form, "classification")
    if label is not None and label != candidate.classification:
        changes["classification"] = label
    if "evidence_refs" in form and (refs := lines_field(form, "evidence_refs")) != list(candidate.evidence_refs):
        changes["evidence_refs"] = refs
    typed = {name: text_field(form, name) or "" for name in SCOPE if name in form}
    changed = {name: value or None for name, value in typed.items() if value != before[name]}
    if "qualifiers" in changed:
        changes["qualifiers"] = parse_qualifiers(changed.pop("qualifiers"), "qualifiers")
    return changes | cast("EditFields", changed)


def _same(typed: str, before: str) -> bool:
    """Whether a text is unchanged, apart from the browser's line ends and trimmed space."""
    return typed.replace("\r\n", "\n") == before.replace("\r\n", "\n").strip()


def _json(text: str) -> Any:
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        raise InvalidInput('expected JSON; put text in quotes, such as "email"', field="value") from None


def conflicts_of(found: Evidence) -> list[dict[str, Any]]:
    """Each memory that the proposal contradicts, with both texts and their differences; what to replace comes first."""
    conflicts: list[dict[str, Any]] = []
    by_memory = {one.existing: one for one in found.contradictions}
    for memory_id in dict.fromkeys((*found.proposal.contradiction_check.contradicted, *by_memory)):
        memory = found.memories.get(memory_id)
        if memory is None:
            continue
        parts = differences(memory.text, found.proposal.candidate.text)
        conflicts.append(
            {
                "memory": memory,
                "contradiction": by_memory.get(memory_id),
                "older": older(parts),
                "newer": newer(parts),
                "recommended": found.recommendations.get(memory_id),
                "short": _short(memory),
            }
        )
    return sorted(conflicts, key=_not_to_replace)


def _not_to_replace(conflict: Mapping[str, Any]) -> bool:
    """False for a memory that the proposal should replace by recommendation: these come first."""
    return conflict["recommended"] is None or conflict["recommended"].keep != "incoming"


def _short(memory: PromotedMemory) -> str:
    """A memory in few words: its value, where that is a short text."""
    text = memory.value if isinstance(memory.value, str) and memory.value else memory.text
    return text if len(text) <= SHORT else f"{text[:SHORT]}…"


def _opposites(found: Evidence) -> list[dict[str, Any]]:
    """Each open proposal that says the opposite, and both texts with their differences."""
    shown: list[dict[str, Any]] = []
    for one in found.opposites:
        parts = differences(one.candidate.text, found.proposal.candidate.text)
        shown.append({"proposal": one, "older": older(parts), "newer": newer(parts)})
    return shown


def _duplicates(found: Evidence) -> list[Any]:
    """The memories that say the same."""
    check = found.proposal.contradiction_check
    same = (check.existing, *check.others) if check.verdict == "duplicate" else ()
    ids = (found.proposal.duplicate_check, *same)
    return [found.memories[one] for one in dict.fromkeys(ids) if one is not None and one in found.memories]


def verdicts_text(verdicts: Sequence[Verdict]) -> str:
    """Who did what, in one sentence."""
    return ", ".join(
        f"{_isolate(one.by)} {VERDICTS[one.action]}"
        + (f" ({_isolate(one.reason)})" if one.reason and one.action == "reject" else "")
        for one in verdicts
    )


def _isolate(name: str) -> str:
    """A name for a plain-text sentence, isolated so that direction marks in it do not affect the rest."""
    return f"\u2068{name}\u2069" if _DIRECTION_MARKS.search(name) else name


_DIRECTION_MARKS = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


async def _too_late(
    visitor: Visitor, proposal_id: str, version: str | None, error: Conflict
) -> VersionConflict | AlreadyDecided:
    """The same error, saying who acted first and what they did."""
    now = await visitor.fabric.queue.get(visitor.principal, proposal_id)
    known = version is not None and version.isdigit() and len(version) < 10
    since = now.verdicts[int(version) :] if known and version is not None else now.verdicts[-1:]
    kind = AlreadyDecided if isinstance(error, AlreadyDecided) else VersionConflict
    return kind(f"someone acted first: {verdicts_text(since) or error.message}. Your action was not applied")


def _mentions(text: str) -> list[str]:
    """The people whom a comment names with an @, at most ten."""
    return list(dict.fromkeys(_MENTION.findall(text)))[:10]


_MENTION = re.compile(r"(?<![\w@])@([\w][\w.-]{0,62}[\w])")


def _priority(text: str | None) -> float | None:
    try:
        return float(text.replace(",", ".")) if text is not None else None
    except ValueError:
        raise InvalidInput("expected a number from 0 to 1", field="priority") from None


def _by_script(request: Request) -> bool:
    return "text/html" not in request.headers.get("accept", "")


def _fragment(template: str, **context: Any) -> Response:
    """A piece of a page, for a script to insert."""
    return JSONResponse({"html": environment().get_template(template).render(context)}, headers=HEADERS)
