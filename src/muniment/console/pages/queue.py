"""The queue: proposals that need a decision, by due time, and approving several at once."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse
from starlette.datastructures import FormData

from muniment.console.forms import read_form, redirect, text_field
from muniment.console.listing import load_listing
from muniment.console.rendering import HEADERS, environment, label, page
from muniment.console.urls import console_url
from muniment.console.visitors import Requires, Visitor
from muniment.errors import Conflict, InvalidInput, NotFound
from muniment.model.context import Principal
from muniment.model.decision import Decision
from muniment.model.fields import Tier, WriteClass
from muniment.model.proposal import HumanReason, Outcome, Proposal
from muniment.model.review_views import QueueCounts, Risk
from muniment.review.rules import is_strict, may_approve, reason_words

router = APIRouter()
Reader = Annotated[Visitor, Depends(Requires("read_queue"))]
Reviewer = Annotated[Visitor, Depends(Requires("review"))]

REASONS = ("wrong", "out of date", "not a fact", "too vague", "private", "not worth keeping")
# Memories that are taken back at once; a retraction is a transaction each.
MOST_TAKEN_BACK = 500
CHOICES: dict[str, tuple[str, tuple[str, ...]]] = {
    "write_class": ("Class", get_args(WriteClass)),
    "risk": ("Risk", get_args(Risk)),
    "tier": ("Tier", get_args(Tier)),
    "reason": ("Review reason", get_args(HumanReason)),
}

FILTERS = (*CHOICES, "entity", "mine", "overdue", "held")


@router.get("/queue")
async def queue(request: Request, visitor: Reader) -> Response:
    """Open proposals, soonest due first."""
    counts = await visitor.fabric.queue.counts(visitor.principal)

    async def fetch(limit: int, after: str | None, **typed: str | None) -> list[Proposal]:
        wanted = _wanted(visitor, typed)
        return await visitor.fabric.queue.list(visitor.principal, limit=limit, after=after, **wanted)

    found = await load_listing(request, "queue", FILTERS, fetch, "proposal_id")
    return page(
        "queue.html",
        visitor,
        status=422 if found.problem else 200,
        problem=found.problem,
        listing=found,
        counts=counts,
        cards=_cards(counts),
        # Of several that say the same, one that the reviewer did not write may be promoted.
        barred={one.proposal_id for one in found.items if one.count == 1 and not _may_approve(visitor.principal, one)},
        choices=CHOICES,
        reasons=REASONS,
        matching=counts.open if not found.filtered else len(found.items) + (found.next_after is not None),
    )


@router.post("/queue/plan")
async def plan(request: Request, visitor: Reviewer) -> Response:
    """What approving the selected proposals, or all that match the filters, would do: the mix, and what is left out."""
    form = await read_form(request, visitor)
    chosen = [one for one in form.getlist("proposal_id") if isinstance(one, str)]
    if text_field(form, "all") is not None:
        found = await visitor.fabric.queue.plan_many(visitor.principal, **_wanted(visitor, _typed(form)))
    elif chosen:
        found = await visitor.fabric.queue.plan_many(visitor.principal, proposal_ids=chosen)
    else:
        raise InvalidInput("select at least one", field="proposal_id")
    items = " ".join(f"{one.proposal_id}:{one.version}" for one in found.approved)
    context: dict[str, Any] = {"plan": found, "items": items, "reasons": _reasons_left_out(found.left_out)}
    if "text/html" in request.headers.get("accept", ""):
        return page("plan.html", visitor, **context)
    html = environment().get_template("parts/plan.html").render(context)
    left_out = {one.proposal_id: _failure(one) for one in found.left_out}
    return JSONResponse({"html": html, "items": items, "left_out": left_out}, headers=HEADERS)


@router.post("/queue/approve")
async def approve_many(request: Request, visitor: Reviewer) -> Response:
    """Approve the selected proposals that are ordinary; the others are left out, each with its reasons (REV-13).

    `items` has them with the versions that were seen; `proposal_id` names them alone.
    """
    form = await read_form(request, visitor)
    versions = _items(text_field(form, "items") or "")
    selected = [*versions, *(one for one in form.getlist("proposal_id") if isinstance(one, str))]
    if not selected:
        raise InvalidInput("select at least one", field="proposal_id")
    outcomes = await visitor.fabric.queue.approve_many(
        visitor.principal, selected, note=text_field(form, "note"), versions=versions or None
    )
    notice = summary(outcomes)
    promoted = [one.memory_id for one in outcomes if one.error is None and one.status == "promoted" and one.memory_id]
    if "text/html" not in request.headers.get("accept", ""):
        failed = {one.proposal_id: _failure(one) for one in outcomes if one.error is not None}
        return JSONResponse({"notice": notice, "failed": failed, "memories": " ".join(promoted)}, headers=HEADERS)
    return redirect(visitor, "queue", notice)


@router.post("/queue/take-back")
async def take_back(request: Request, visitor: Annotated[Visitor, Depends(Requires("retract"))]) -> Response:
    """Retract memories that were just approved together, each as an ordinary retraction (PRO-6)."""
    form = await read_form(request, visitor)
    done = failed = 0
    for memory_id in (text_field(form, "memories") or "").split()[:MOST_TAKEN_BACK]:
        try:
            await visitor.fabric.retract(visitor.principal, memory_id, reason="wrong")
            done += 1
        except (Conflict, NotFound):
            failed += 1
    notice = f"{done} taken back" + (f", {failed} were withdrawn before" if failed else "")
    if "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"notice": notice}, headers=HEADERS)
    return redirect(visitor, "queue", notice)


def _items(text: str) -> dict[str, int]:
    """Parse proposals with the versions that were seen, such as `mwp_1:0 mwp_2:3`; raises `InvalidInput`."""
    found: dict[str, int] = {}
    for part in text.split():
        name, _, version = part.partition(":")
        if not name or not version.isascii() or not version.isdigit() or len(version) > 9:
            raise InvalidInput("expected proposals with their versions, such as mwp_1:0", field="items")
        found[name] = int(version)
    return found


def _typed(form: FormData) -> dict[str, str]:
    return {name: text_field(form, name) or "" for name in FILTERS}


def _wanted(visitor: Visitor, typed: Mapping[str, str | None]) -> dict[str, Any]:
    """The filters of the queue as its verbs take them."""
    query: dict[str, Any] = {name: typed.get(name) or None for name in (*CHOICES, "entity")}
    if typed.get("mine"):
        query["assignee"] = visitor.principal.id
    if typed.get("held"):
        query["status"] = "held"
    return query | {"overdue": True if typed.get("overdue") else None}


def _reasons_left_out(left_out: Iterable[Outcome]) -> dict[str, list[str]]:
    """The proposals that are left out, by the reasons in words."""
    found: dict[str, list[str]] = {}
    for one in left_out:
        why = why_left_out(one) if one.left_out else one.message or one.error or ""
        found.setdefault(why, []).append(one.proposal_id)
    return found


def summary(outcomes: Iterable[Outcome]) -> str:
    """The outcomes of several approvals in one sentence."""
    statuses = Counter(label(one.status) for one in outcomes if one.error is None)
    failed = Counter(one.message or one.error for one in outcomes if one.error is not None and not one.left_out)
    left_out = Counter(why_left_out(one) for one in outcomes if one.left_out)
    parts = [f"{count} {status}" for status, count in statuses.items()]
    parts += [f"{count} not approved ({why})" for why, count in failed.items()]
    parts += [f"{count} left out ({why})" for why, count in left_out.items()]
    return ", ".join(parts)


def why_left_out(one: Outcome) -> str:
    """Why a proposal is not approved together with others."""
    return reason_words(Decision(outcome="refuse", reasons=one.left_out))


def _failure(one: Outcome) -> str | None:
    """The message beside a proposal that was not approved."""
    return f"Left out: {why_left_out(one)}. Open it to approve it on its own." if one.left_out else one.message


def _cards(counts: QueueCounts) -> list[tuple[str, int, str, str]]:
    """The figures above the queue: title, figure, link and tone."""
    return [
        ("Open", counts.open, console_url("queue"), ""),
        ("Overdue", counts.overdue, console_url("queue", overdue="yes"), "bad"),
        ("Due within a day", counts.due_within_a_day, console_url("queue"), "warn"),
        ("On hold", counts.held, console_url("queue", held="yes"), ""),
        ("Assigned to me", counts.mine, console_url("queue", mine="yes"), ""),
    ]


def _may_approve(principal: Principal, proposal: Proposal) -> bool:
    """Whether to offer approval by the four-eyes rule, as far as a list knows it (REV-4); the fabric decides."""
    sensitive = proposal.sensitive or proposal.third_party
    strict = is_strict(sensitive=sensitive, derived=proposal.tier_derived, final=proposal.tier_target)
    editors = (proposal.candidate.editor,) if proposal.candidate.editor is not None else ()
    return may_approve(principal, proposal.candidate, editors, strict=strict).passed
