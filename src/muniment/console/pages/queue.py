"""The queue: proposals that need a decision, by due time, and approving several at once."""

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, get_args

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse

from muniment.console.forms import read_form, redirect, text_field
from muniment.console.listing import load_listing
from muniment.console.rendering import HEADERS, label, page
from muniment.console.urls import console_url
from muniment.console.visitors import Requires, Visitor
from muniment.errors import InvalidInput
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
CHOICES: dict[str, tuple[str, tuple[str, ...]]] = {
    "write_class": ("Class", get_args(WriteClass)),
    "risk": ("Risk", get_args(Risk)),
    "tier": ("Tier", get_args(Tier)),
    "reason": ("Review reason", get_args(HumanReason)),
}


@router.get("/queue")
async def queue(request: Request, visitor: Reader) -> Response:
    """Open proposals, soonest due first."""
    counts = await visitor.fabric.queue.counts(visitor.principal)

    async def fetch(mine: str | None, overdue: str | None, held: str | None, **query: Any) -> list[Proposal]:
        if mine:
            query["assignee"] = visitor.principal.id
        if held:
            query["status"] = "held"
        return await visitor.fabric.queue.list(visitor.principal, overdue=True if overdue else None, **query)

    filters = (*CHOICES, "entity", "mine", "overdue", "held")
    found = await load_listing(request, "queue", filters, fetch, "proposal_id")
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
    )


@router.post("/queue/approve")
async def approve_many(request: Request, visitor: Reviewer) -> Response:
    """Approve the selected proposals that are ordinary; the others are left out, each with its reasons (REV-13)."""
    form = await read_form(request, visitor)
    selected = [one for one in form.getlist("proposal_id") if isinstance(one, str)]
    if not selected:
        raise InvalidInput("select at least one", field="proposal_id")
    outcomes = await visitor.fabric.queue.approve_many(visitor.principal, selected, note=text_field(form, "note"))
    notice = summary(outcomes)
    if "text/html" not in request.headers.get("accept", ""):
        failed = {one.proposal_id: _failure(one) for one in outcomes if one.error is not None}
        return JSONResponse({"notice": notice, "failed": failed}, headers=HEADERS)
    return redirect(visitor, "queue", notice)


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
