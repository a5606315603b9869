"""The queue: what waits for a person, by due time, and many approved at once."""

from collections import Counter
from collections.abc import Iterable
from typing import Annotated, Any, cast, get_args

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse

from muniment.console.addresses import address, asked
from muniment.console.forms import went
from muniment.console.rendering import HEADERS, label, page
from muniment.console.visitors import Allowed, Visitor, form_of, text_of, told
from muniment.errors import InvalidInput, NotFound
from muniment.model.context import Principal
from muniment.model.decision import Decision
from muniment.model.fields import Tier, WriteClass
from muniment.model.proposal import HumanReason, Outcome, Proposal
from muniment.model.review_views import QueueCounts, Risk
from muniment.review import approval, ordinary
from muniment.verbs.keywords import QueueFilters

router = APIRouter()
Reader = Annotated[Visitor, Depends(Allowed("read_queue"))]
Reviewer = Annotated[Visitor, Depends(Allowed("review"))]

PAGE = 50
CHOSEN = ("write_class", "risk", "tier", "reason")
TICKED = ("mine", "overdue", "held")
REASONS = ("wrong", "out of date", "not a fact", "too vague", "private", "not worth keeping")
_CHOICES: dict[str, Any] = {
    "choices": {
        "write_class": ("Class", get_args(WriteClass)),
        "risk": ("Risk", get_args(Risk)),
        "tier": ("Tier", get_args(Tier)),
        "reason": ("Why a person", get_args(HumanReason)),
    },
    "reasons": REASONS,
}


@router.get("/queue")
async def queue(request: Request, visitor: Reader) -> Response:
    """Open proposals, the one due first first."""
    typed = asked(request, *CHOSEN, "entity", *TICKED, "after")
    counts = await visitor.fabric.queue.counts(visitor.principal)
    problem, found = None, list[Proposal]()
    try:
        found = await visitor.fabric.queue.list(
            visitor.principal, limit=PAGE + 1, after=typed["after"] or None, **_narrowed(typed, visitor.principal)
        )
    except (InvalidInput, NotFound) as error:
        problem = told(error)
    narrowed = {name: value for name, value in typed.items() if value and name != "after"}
    shown = found[:PAGE]
    return page(
        "queue.html",
        visitor,
        status=200 if problem is None else 422,
        at="queue",
        typed=typed,
        narrowed=narrowed,
        problem=problem,
        counts=counts,
        cards=_cards(counts),
        proposals=shown,
        barred={one.proposal_id for one in shown if not _may_approve(visitor.principal, one)},
        here=address("queue", **narrowed),
        next=address("queue", **narrowed, after=shown[-1].proposal_id) if len(found) > PAGE else None,
        **_CHOICES,
    )


@router.post("/queue/approve")
async def approve_many(request: Request, visitor: Reviewer) -> Response:
    """Approve those of the chosen that are ordinary; the others are left out, each with its reasons (REV-13)."""
    form = await form_of(request, visitor)
    chosen = [one for one in form.getlist("proposal_id") if isinstance(one, str)]
    if not chosen:
        raise InvalidInput("choose one at least", field="proposal_id")
    outcomes = await visitor.fabric.queue.approve_many(visitor.principal, chosen, note=text_of(form, "note"))
    said = summary(outcomes)
    if "text/html" not in request.headers.get("accept", ""):
        failed = {one.proposal_id: _stopped_by(one) for one in outcomes if one.error is not None}
        return JSONResponse({"said": said, "failed": failed}, headers=HEADERS)
    return went(visitor, "queue", said)


def summary(outcomes: Iterable[Outcome]) -> str:
    """What became of many, in one sentence."""
    became = Counter(label(one.status) for one in outcomes if one.error is None)
    failed = Counter(one.message or one.error for one in outcomes if one.error is not None and not one.left_out)
    left_out = Counter(why_left_out(one) for one in outcomes if one.left_out)
    parts = [f"{count} {status}" for status, count in became.items()]
    parts += [f"{count} not approved ({why})" for why, count in failed.items()]
    parts += [f"{count} left out ({why})" for why, count in left_out.items()]
    return ", ".join(parts)


def why_left_out(one: Outcome) -> str:
    """Why one is not approved together with others."""
    return ordinary.told(Decision(outcome="refuse", reasons=one.left_out))


def _stopped_by(one: Outcome) -> str | None:
    """What stands at the row of one that was not approved."""
    return f"Left out: {why_left_out(one)}. Open it to approve it by itself." if one.left_out else one.message


def _narrowed(typed: dict[str, str], principal: Principal) -> QueueFilters:
    given: dict[str, Any] = {name: typed[name] for name in (*CHOSEN, "entity") if typed[name]}
    if typed["mine"]:
        given["assignee"] = principal.id
    if typed["overdue"]:
        given["overdue"] = True
    if typed["held"]:
        given["status"] = "held"
    return cast("QueueFilters", given)


def _cards(counts: QueueCounts) -> list[tuple[str, int, str, str]]:
    """Title, figure, link and how it looks."""
    return [
        ("Open", counts.open, address("queue"), ""),
        ("Overdue", counts.overdue, address("queue", overdue="yes"), "bad"),
        ("Due within a day", counts.due_within_a_day, address("queue"), "warn"),
        ("Held", counts.held, address("queue", held="yes"), ""),
        ("Assigned to me", counts.mine, address("queue", mine="yes"), ""),
    ]


def _may_approve(principal: Principal, proposal: Proposal) -> bool:
    """Whether to offer it: four eyes, as far as a list knows (REV-4). The fabric looks at every editor."""
    strict = approval.is_strict(sensitive=proposal.sensitive, derived=proposal.tier_derived, final=proposal.tier_target)
    editors = (proposal.candidate.editor,) if proposal.candidate.editor is not None else ()
    return approval.may_approve(principal, proposal.candidate, editors, strict=strict).passed
