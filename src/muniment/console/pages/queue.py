"""The queue: proposals that need a decision, by due time, and approving several at once."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, cast, get_args

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from starlette.datastructures import FormData

from muniment.console.forms import read_form, redirect, text_field
from muniment.console.listing import load_listing
from muniment.console.rendering import HEADERS, environment, label, page
from muniment.console.urls import console_url, query_fields
from muniment.console.visitors import Requires, Visitor, error_text
from muniment.errors import Conflict, InvalidInput, NotFound
from muniment.model.context import Principal
from muniment.model.decision import Decision
from muniment.model.fields import Tier, WriteClass, build
from muniment.model.proposal import HumanReason, Outcome, Proposal
from muniment.model.review_views import Danger, QueueCounts, QueueGroup, Risk
from muniment.model.teamwork import SavedView, ViewFilters
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
    "danger": ("Danger", get_args(Danger)),
}

# The filter that a group of each kind is opened with.
GROUPS = {"subject": "entity", "source": "author", "class": "write_class"}
ORDERS: dict[str, str] = {"": "soonest due first", "unusual": "unusual first", "newest": "newest first"}
FILTERS = (*CHOICES, "entity", "author", "mine", "overdue", "held", "mentioned", "order", "group", "words")


@router.get("/queue")
async def queue(request: Request, visitor: Reader) -> Response:
    """Open proposals in the order that is asked for, in groups, or with the words that are looked for."""
    fabric, who = visitor.fabric, visitor.principal
    typed = query_fields(request, *FILTERS)

    async def fetch(limit: int, after: str | None, **typed: str | None) -> Sequence[Proposal]:
        if typed.get("words"):
            return await fabric.queue.search(who, typed["words"] or "", limit=limit - 1)
        return await fabric.queue.list(who, limit=limit, after=after, **_wanted(visitor, typed))

    found = await load_listing(request, "queue", FILTERS, fetch, "proposal_id")
    wanted = _wanted(visitor, typed) if found.problem is None else {}
    group = cast("QueueGroup", typed["group"]) if typed["group"] in GROUPS else None
    overview = await fabric.queue.overview(who, group=group, **wanted)
    counts = overview.counts
    return page(
        "queue.html",
        visitor,
        status=422 if found.problem else 200,
        problem=found.problem,
        listing=found,
        counts=counts,
        cards=_cards(counts),
        # Of several that say the same, one that the reviewer did not write may be promoted.
        barred={one.proposal_id for one in found.items if one.count == 1 and not _may_approve(who, one)},
        choices=CHOICES,
        reasons=REASONS,
        groups=overview.groups,
        group_filter=GROUPS.get(typed["group"], ""),
        group_names=tuple(GROUPS),
        orders=ORDERS,
        views=[(one, _view_url(one)) for one in overview.views],
        progress=overview.progress,
        matching=len(found.items) if typed["words"] else overview.matching,
        narrowed=any(value for name, value in typed.items() if name not in ("order", "group")),
    )


@router.post("/queue/views")
async def save_view(request: Request, visitor: Reader) -> Response:
    """Save the filters and the order of the queue under a name, or remove a view."""
    form = await read_form(request, visitor)
    name, typed = text_field(form, "name") or "", _typed(form)
    if text_field(form, "remove") is not None:
        await visitor.fabric.views.remove(visitor.principal, name=name)
        return redirect(visitor, "queue", f"View removed: {name}")
    filters = {one: typed[one] or None for one in (*CHOICES, "order", "group")}
    flags = {one: bool(typed[one]) for one in ("mine", "overdue", "held", "mentioned")}
    try:
        saved = build(ViewFilters, filters | flags)
        made = await visitor.fabric.views.save(visitor.principal, name=name, filters=saved)
    except (InvalidInput, Conflict) as error:
        return redirect(visitor, "queue", f"Not saved: {error_text(error)}", **{k: v for k, v in typed.items() if v})
    return RedirectResponse(_view_url(made), 303, headers=HEADERS)


def _view_url(view: SavedView) -> str:
    """The queue as a view shows it."""
    filters = view.filters.model_dump(mode="json", exclude_defaults=True)
    return console_url("queue", **{name: "yes" if value is True else value for name, value in filters.items()})


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
    query: dict[str, Any] = {name: typed.get(name) or None for name in (*CHOICES, "entity", "author", "order")}
    query["mentioned"] = bool(typed.get("mentioned"))
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
        ("Mine", counts.mine, console_url("queue", mine="yes"), ""),
    ]


def _may_approve(principal: Principal, proposal: Proposal) -> bool:
    """Whether to offer approval by the four-eyes rule, as far as a list knows it (REV-4); the fabric decides."""
    sensitive = proposal.sensitive or proposal.third_party
    strict = is_strict(sensitive=sensitive, derived=proposal.tier_derived, final=proposal.tier_target)
    editors = (proposal.candidate.editor,) if proposal.candidate.editor is not None else ()
    return may_approve(principal, proposal.candidate, editors, strict=strict).passed
