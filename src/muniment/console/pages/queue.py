"""The queue: proposals that need a decision, in groups or by due time, and deciding several at once."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, cast, get_args

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse
from starlette.datastructures import FormData

from muniment.console.dangers import NAMES as DANGER_NAMES
from muniment.console.forms import read_form, redirect, text_field
from muniment.console.listing import INPUT_ERRORS, load_listing
from muniment.console.rendering import HEADERS, environment, label, page
from muniment.console.sealed_words import redirect_to_found, words_in_form, words_of
from muniment.console.urls import console_url, query_fields
from muniment.console.visitors import NOTICE, Requires, Visitor, error_text, sign_notice
from muniment.errors import Conflict, InvalidInput, NotFound
from muniment.model.context import Principal
from muniment.model.decision import Decision
from muniment.model.fields import Tier, WriteClass, build
from muniment.model.proposal import HumanReason, Outcome, Proposal
from muniment.model.review_views import Danger, GroupOfProposals, ManyAction, QueueCounts, QueueGroup, QueueSearch, Risk
from muniment.model.teamwork import QueueOverview, SavedView, ViewFilters
from muniment.review.plan_many import MOST_PLANNED
from muniment.review.rules import is_strict, may_approve, reason_words
from muniment.review.search_queue import MOST_SEARCHED

router = APIRouter()
Reader = Annotated[Visitor, Depends(Requires("read_queue"))]
Reviewer = Annotated[Visitor, Depends(Requires("review"))]

REASONS = ("wrong", "out of date", "not a fact", "too vague", "private", "not worth keeping")
# Memories that are taken back at once: all that one plan approves. A retraction is a transaction each.
MOST_TAKEN_BACK = MOST_PLANNED
CHOICES: dict[str, tuple[str, tuple[str, ...]]] = {
    "write_class": ("Class", get_args(WriteClass)),
    "risk": ("Risk", get_args(Risk)),
    "tier": ("Tier", get_args(Tier)),
    "reason": ("Review reason", get_args(HumanReason)),
    "danger": ("Danger", get_args(Danger)),
}

# The filter that a group of each kind is opened with.
GROUPS = {"subject": "entity", "source": "author", "class": "write_class"}
# Whom it is about and what was said: no erasure would reach them in a saved view.
NOT_SAVED = ("entity", "author", "words")
ORDERS: dict[str, str] = {"": "soonest due first", "unusual": "unusual first", "newest": "newest first"}
FILTERS = (*CHOICES, "entity", "author", "mine", "overdue", "held", "mentioned", "order", "group", "words")


@router.get("/queue")
async def queue(request: Request, visitor: Reader) -> Response:
    """Open proposals in the order that is asked for, in groups, or with the words that are looked for."""
    fabric, who = visitor.fabric, visitor.principal
    words = words_of(request, visitor, "words")
    typed = query_fields(request, *FILTERS) | {"words": words.text}
    group = cast("QueueGroup", typed["group"]) if typed["group"] in GROUPS else None

    searched: QueueSearch | None = None

    async def fetch(limit: int, after: str | None, **typed: str | None) -> Sequence[Proposal]:
        nonlocal searched
        if typed.get("words"):
            asked = _wanted(visitor, typed)
            searched = await fabric.queue.search(
                who, typed["words"] or "", limit=limit, after=after, group=group, **asked
            )
            return searched.proposals
        return await fabric.queue.list(who, limit=limit, after=after, group=group, **_wanted(visitor, typed))

    async def load_overview() -> QueueOverview:
        # How large a group is without the words says nothing of what was found.
        grouped = None if typed["words"] else group
        try:
            return await fabric.queue.overview(who, group=grouped, zone=visitor.zone, **_wanted(visitor, typed))
        except INPUT_ERRORS:  # `load_listing` reports these errors.
            return await fabric.queue.overview(who, zone=visitor.zone)

    # Both at once: the page waits only for the slower one.
    found, overview = await asyncio.gather(
        load_listing(request, "queue", FILTERS, fetch, "proposal_id", words=words), load_overview()
    )
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
        sections=_sections(found.items, group, overview.groups),
        group_filter=GROUPS.get(typed["group"], ""),
        group_names=tuple(GROUPS),
        danger_names=DANGER_NAMES,
        orders=ORDERS,
        unsaved=[name for name in NOT_SAVED if typed[name]],
        views=[(one, _view_url(one)) for one in overview.views],
        progress=overview.progress,
        matching=searched.matching if searched is not None else overview.matching,
        searched=searched,
        most_searched=MOST_SEARCHED,
        narrowed=any(value for name, value in typed.items() if name not in ("order", "group")),
    )


@router.post("/queue/search")
async def search(request: Request, visitor: Reader) -> Response:
    """Lead to what was asked for; words that are looked for are sealed in the address."""
    return redirect_to_found(visitor, "queue", "words", _typed(await read_form(request, visitor), visitor))


@router.post("/queue/views")
async def save_view(request: Request, visitor: Reader) -> Response:
    """Save the filters and the order of the queue under a name, or remove a view."""
    form = await read_form(request, visitor)
    name, typed = text_field(form, "name") or "", _typed(form, visitor)
    if text_field(form, "remove") is not None:
        await visitor.fabric.views.remove(visitor.principal, name=name)
        return redirect(visitor, "queue", f"View removed: {name}")
    if named := [one for one in NOT_SAVED if typed[one]]:
        said = f"Not saved: a view keeps no {', no '.join(named)}"
        return redirect_to_found(visitor, "queue", "words", typed, said)
    filters = {one: typed[one] or None for one in (*CHOICES, "order", "group")}
    flags = {one: bool(typed[one]) for one in ("mine", "overdue", "held", "mentioned")}
    try:
        saved = build(ViewFilters, filters | flags)
        made = await visitor.fabric.views.save(visitor.principal, name=name, filters=saved)
    except (InvalidInput, Conflict) as error:
        return redirect(visitor, "queue", f"Not saved: {error_text(error)}", **typed)
    return RedirectResponse(_view_url(made), 303, headers=HEADERS)


def _view_url(view: SavedView) -> str:
    """The queue as a view shows it."""
    filters = view.filters.model_dump(mode="json", exclude_defaults=True)
    return console_url("queue", **{name: "yes" if value is True else value for name, value in filters.items()})


@dataclass(frozen=True)
class Section:
    """Proposals of the page under one heading: the group, as far as it is among the largest, and its name."""

    name: str
    group: GroupOfProposals | None
    proposals: Sequence[Proposal]

    @property
    def display_name(self) -> str | None:
        """What people call whom it is about."""
        return next((one.display_name for one in self.proposals if one.display_name), None)


def _sections(found: Sequence[Proposal], group: QueueGroup | None, groups: Iterable[GroupOfProposals]) -> list[Section]:
    """The proposals of a page by group; without groups all of them are under none."""
    if group is None:
        return [Section("", None, found)]
    sizes = {one.name: one for one in groups}
    by_name: dict[str, list[Proposal]] = {}
    for one in found:
        by_name.setdefault(_heading(one, group), []).append(one)
    return [Section(name, sizes.get(name), some) for name, some in by_name.items()]


def _heading(proposal: Proposal, group: QueueGroup) -> str:
    candidate = proposal.candidate
    if group == "class":
        return proposal.write_class
    return candidate.author if group == "source" else candidate.entity or candidate.subject or ""


@router.post("/queue/plan")
async def plan(request: Request, visitor: Reviewer) -> Response:
    """What deciding the selected proposals, or all that match the filters, would do: the mix, and what is left out.

    `items` has the rows that were seen, with their versions: what has changed since is left out. Where one proposal
    alone is to be approved and is not ordinary, `open` leads a script to its page, which is where it is decided.
    """
    form = await read_form(request, visitor)
    action = cast("ManyAction", text_field(form, "action") or "approve")
    wanted: dict[str, Any]
    if text_field(form, "all") is not None:
        versions, typed = _items(form), _typed(form, visitor)
        wanted = _wanted(visitor, typed) | {"words": typed["words"] or None}
    else:
        versions = _selected(form)
        wanted = {"proposal_ids": list(versions)}
    found = await visitor.fabric.queue.plan_many(visitor.principal, action=action, versions=versions, **wanted)
    items = " ".join(f"{one.proposal_id}:{one.version}" for one in found.approved)
    context: dict[str, Any] = {"plan": found, "items": items, "why": _reasons_left_out(found.left_out)}
    context |= {"action": action, "reasons": REASONS}
    if "text/html" in request.headers.get("accept", ""):
        return page("plan.html", visitor, **context)
    html = environment().get_template("parts/plan.html").render(context)
    left_out = {one.proposal_id: _failure(one, action) for one in found.left_out}
    answer: dict[str, Any] = {"html": html, "items": items, "left_out": left_out}
    if action == "approve" and len(versions) == 1 and "proposal_ids" in wanted and found.left_out:
        answer["open"] = _opened_instead(visitor, found.left_out[0])
    return JSONResponse(answer, headers=HEADERS)


def _opened_instead(visitor: Visitor, one: Outcome) -> str | None:
    """The page of a proposal that is decided there alone, with the reason; none for one that cannot be decided now."""
    if not one.left_out:
        return None
    notice = sign_notice(visitor.form_token, f"Decided on its page alone: {why_left_out(one)}")
    return console_url(f"queue/{one.proposal_id}", **{NOTICE: notice})


@router.post("/queue/approve")
async def approve_many(request: Request, visitor: Reviewer) -> Response:
    """Approve the selected proposals that are ordinary; the others are left out, each with its reasons (REV-13).

    `items` has them with the versions that were seen.
    """
    form = await read_form(request, visitor)
    versions = _selected(form)
    outcomes = await visitor.fabric.queue.approve_many(
        visitor.principal, list(versions), note=text_field(form, "note"), versions=versions
    )
    notice = summary(outcomes)
    promoted = [one.memory_id for one in outcomes if one.error is None and one.status == "promoted" and one.memory_id]
    if "text/html" not in request.headers.get("accept", ""):
        failed = {one.proposal_id: _failure(one) for one in outcomes if one.error is not None}
        return JSONResponse({"notice": notice, "failed": failed, "memories": " ".join(promoted)}, headers=HEADERS)
    return redirect(visitor, "queue", notice)


@router.post("/queue/reject")
async def reject_many(request: Request, visitor: Reviewer) -> Response:
    """Reject the planned proposals for one reason, with the versions that were seen."""
    form = await read_form(request, visitor)
    versions = _selected(form)
    outcomes = await visitor.fabric.queue.reject_many(
        visitor.principal,
        list(versions),
        reason=text_field(form, "reason") or "",
        note=text_field(form, "note"),
        versions=versions,
    )
    return _done(request, visitor, outcomes, "reject")


@router.post("/queue/assign")
async def assign_many(request: Request, visitor: Reviewer) -> Response:
    """Assign the planned proposals to the visitor, with the versions that were seen."""
    versions = _selected(await read_form(request, visitor))
    outcomes = await visitor.fabric.queue.assign_many(visitor.principal, list(versions), versions=versions)
    return _done(request, visitor, outcomes, "assign")


def _selected(form: FormData) -> dict[str, int]:
    """The selected or planned proposals with the versions that were seen; raises `InvalidInput` if there are none."""
    versions = _items(form)
    if not versions:
        raise InvalidInput("select at least one", field="items")
    return versions


def _done(request: Request, visitor: Visitor, outcomes: Sequence[Outcome], action: ManyAction) -> Response:
    notice = summary(outcomes, action)
    if "text/html" not in request.headers.get("accept", ""):
        failed = {one.proposal_id: _failure(one, action) for one in outcomes if one.error is not None}
        return JSONResponse({"notice": notice, "failed": failed}, headers=HEADERS)
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
    notice = f"{done} taken back" + (f", {failed} were retracted before" if failed else "")
    if "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"notice": notice}, headers=HEADERS)
    return redirect(visitor, "queue", notice)


def _items(form: FormData) -> dict[str, int]:
    """The proposals of `items` with the versions that were seen, such as `mwp_1:0 mwp_2:3`; raises `InvalidInput`."""
    found: dict[str, int] = {}
    for part in " ".join(one for one in form.getlist("items") if isinstance(one, str)).split():
        name, _, version = part.partition(":")
        if not name or not version.isascii() or not version.isdigit() or len(version) > 9:
            raise InvalidInput("expected proposals with their versions, such as mwp_1:0", field="items")
        found[name] = int(version)
    return found


def _typed(form: FormData, visitor: Visitor) -> dict[str, str]:
    typed = {name: text_field(form, name) or "" for name in FILTERS}
    return typed | {"words": words_in_form(form, visitor, "words")}


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


def summary(outcomes: Iterable[Outcome], action: ManyAction = "approve") -> str:
    """The outcomes of several decisions in one sentence."""
    statuses = Counter(_done_words(one, action) for one in outcomes if one.error is None)
    failed = Counter(one.message or one.error for one in outcomes if one.error is not None and not one.left_out)
    left_out = Counter(why_left_out(one) for one in outcomes if one.left_out)
    parts = [f"{count} {status}" for status, count in statuses.items()]
    parts += [f"{count} not {_DONE[action]} ({why})" for why, count in failed.items()]
    parts += [f"{count} left out ({why})" for why, count in left_out.items()]
    return ", ".join(parts)


_DONE: dict[ManyAction, str] = {"approve": "approved", "reject": "rejected", "assign": "assigned"}


def _done_words(one: Outcome, action: ManyAction) -> str:
    """What became of a proposal. The gates may have withdrawn one that was to be assigned."""
    return "assigned to you" if action == "assign" and one.status in ("pending", "held") else label(one.status)


def why_left_out(one: Outcome) -> str:
    """Why a proposal is not decided together with others."""
    return reason_words(Decision(outcome="refuse", reasons=one.left_out))


def _failure(one: Outcome, action: ManyAction = "approve") -> str | None:
    """The message beside a proposal that was not decided with the others."""
    return f"Left out: {why_left_out(one)}. Open it to {action} it on its own." if one.left_out else one.message


def _cards(counts: QueueCounts) -> list[tuple[str, int, str, str]]:
    """The figures above the queue: title, figure, link and tone."""
    return [
        ("Open", counts.open, console_url("queue"), ""),
        ("Overdue", counts.overdue, console_url("queue", overdue="yes"), "bad"),
        ("Due within a day", counts.due_within_a_day, console_url("queue"), "warn"),
        ("On hold", counts.held, console_url("queue", held="yes"), ""),
        ("Mine", counts.mine, console_url("queue", mine="yes"), ""),
        *(
            [("Mention you", counts.mentioned, console_url("queue", mentioned="yes"), "warn")]
            if counts.mentioned
            else []
        ),
    ]


def _may_approve(principal: Principal, proposal: Proposal) -> bool:
    """Whether to offer approval by the four-eyes rule, as far as a list knows it (REV-4); the fabric decides."""
    sensitive = proposal.sensitive or proposal.third_party
    strict = is_strict(sensitive=sensitive, derived=proposal.tier_derived, final=proposal.tier_target)
    editors = (proposal.candidate.editor,) if proposal.candidate.editor is not None else ()
    return may_approve(principal, proposal.candidate, editors, strict=strict).passed
