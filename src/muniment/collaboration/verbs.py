"""Verbs of reviewers: many decisions at once, comments, second looks, the day's progress, saved views, names."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

from pydantic import Field, StringConstraints

from muniment.context import FabricContext
from muniment.errors import Conflict, InvalidInput
from muniment.language.redaction import holds_personal_data
from muniment.model.context import Principal
from muniment.model.fields import Ceid, Name, Note, OpenName
from muniment.model.inputs import VerbInput, Whole
from muniment.model.names import same_person
from muniment.model.proposal import Outcome, Proposal
from muniment.model.review_views import QueueGroup
from muniment.model.teamwork import (
    Agreement,
    DayProgress,
    Decision,
    QueueOverview,
    SavedView,
    SecondLook,
    SubjectName,
    ViewFilters,
)
from muniment.model.zones import UTC_NAME, ZoneName, midnight_in
from muniment.review import acting, decide_many, team_store
from muniment.review import store as review
from muniment.review.acting import ProposalAction, ProposalId
from muniment.review.evidence import evidence_of, without_verdicts
from muniment.review.filters import QueueFilters, filters_of
from muniment.review.plan_many import MOST_PLANNED
from muniment.review.team_store import MOST_VIEWS
from muniment.verbs.declaration import verb

# Of what people decided in this time, this share is drawn for a second look.
LOOKED_AT_AGAIN, DRAWN = timedelta(days=14), 0.05

ViewName = Annotated[OpenName, StringConstraints(max_length=60)]
DisplayName = Annotated[Name, StringConstraints(max_length=120)]


class Comment(ProposalAction):
    """What to say about a proposal, and to whom."""

    text: Note
    mentions: Annotated[tuple[OpenName, ...], Field(max_length=10)] = Field((), description="the people to tell")


@verb("queue.comment", right="review", http="POST /queue/{proposal_id}/comments", retry=True)
async def comment(context: FabricContext, reviewer: Principal, request: Comment) -> Proposal:
    """Say something about a proposal, open or decided; whom it mentions finds it with `queue.list(mentioned=True)`.

    It is kept with the verdicts, sealed with the fact and erased with it. It decides nothing, but what others read
    before is out of date: an action with an earlier `version` is refused.
    """
    mentions = tuple(dict.fromkeys(request.mentions))
    return await acting.decide(context, reviewer, request, "comment", ended=True, note=request.text, mentions=mentions)


class Many(VerbInput):
    """Many proposals, as they were seen."""

    proposal_ids: Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST_PLANNED, fail_fast=True)]
    versions: Annotated[dict[Name, Annotated[int, Whole(0, 2**31)]], Field(max_length=MOST_PLANNED)] | None = Field(
        None, description="by proposal, the version that was read; one that has changed since is left as it is"
    )


class RejectMany(Many):
    """Many rejections for one reason."""

    reason: Name
    note: Note | None = None


@verb("queue.reject_many", right="review", http="POST /queue/reject", positional=("proposal_ids",), slow=True)
async def reject_many(context: FabricContext, reviewer: Principal, request: RejectMany) -> Sequence[Outcome]:
    """Reject many proposals for one reason, each as `queue.reject` would; outcomes keep the order.

    Left out, with `error` `left_out` and the reasons, are samples, requests to forget or correct, and what is assigned
    to somebody else. One that cannot be rejected, or is at another version, stops no other. `queue.plan_many` shows it
    before.
    """
    wanted, versions = request.proposal_ids, request.versions or {}
    return await decide_many.reject_many(context, reviewer, wanted, versions, reason=request.reason, note=request.note)


class AssignMany(Many):
    """Many assignments to one person."""

    to: Name | None = Field(None, description="the reviewer; by default the caller")


@verb("queue.assign_many", right="review", http="POST /queue/assign", positional=("proposal_ids",), slow=True)
async def assign_many(context: FabricContext, reviewer: Principal, request: AssignMany) -> Sequence[Outcome]:
    """Assign many proposals that nobody has to a reviewer; outcomes keep the order.

    Left out, with `error` `left_out` and the reasons, is what somebody has already. One that cannot be assigned, or is
    at another version, stops no other.
    """
    wanted, versions = request.proposal_ids, request.versions or {}
    return await decide_many.assign_many(context, reviewer, wanted, versions, to=request.to or reviewer.id)


class Day(VerbInput):
    """Whose day it is."""

    zone: ZoneName = Field(UTC_NAME, description="the time zone in which the day begins at midnight")


@verb("queue.progress", right="read_queue", http="GET /queue/progress")
async def progress(context: FabricContext, reader: Principal, request: Day) -> DayProgress:
    """Count what people decided since midnight of a zone, and how often second looks agreed in the last 30 days."""
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        return await team_store.progress(tx, reader.id, midnight_in(request.zone, tx.now))


class Overview(QueueFilters):
    """Which open proposals are counted and grouped, and whose day it is."""

    group: QueueGroup | None = Field(None, description="by whom they are about, by source or by class")
    zone: ZoneName = Field(UTC_NAME, description="the time zone in which the day begins at midnight")


@verb("queue.overview", right="read_queue", effect="read", http="GET /queue/overview")
async def overview(context: FabricContext, reader: Principal, request: Overview) -> QueueOverview:
    """Show the queue as its page does: counts, how many match the filters, groups, the day's progress, saved views."""
    filters = await filters_of(context, reader, request)
    narrowed = any(getattr(request, name) not in (None, False) for name in QueueFilters.model_fields if name != "order")
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        counts = await review.counts(tx, reader.id)
        return QueueOverview(
            counts=counts,
            matching=await team_store.matching(tx, filters) if narrowed else counts.open,
            groups=tuple(await team_store.groups(tx, request.group, filters)) if request.group is not None else (),
            progress=await team_store.progress(tx, reader.id, midnight_in(request.zone, tx.now)),
            views=tuple(await team_store.views(tx, reader.id)),
        )


@verb("queue.second_look", right="review", effect="read", http="GET /queue/second-look")
async def second_look(context: FabricContext, reviewer: Principal) -> SecondLook:
    """Draw a proposal that somebody else decided, to be judged again without knowing how (see `queue.look_again`).

    It comes with its evidence and its dangers, as whoever decided it saw them. Of what people decided in the last 14
    days one in twenty is drawn, and nobody can predict which; each is looked at once. The reading is recorded.
    """
    async with context.transaction(reviewer.tenant_id, "auditor") as tx:
        found = await team_store.to_look_at(tx, reviewer.id, tx.now - LOOKED_AT_AGAIN, DRAWN)
    if found is None:
        return SecondLook()
    pack = await context.pack_for(reviewer)
    evidence = without_verdicts(await evidence_of(context, reviewer, found), pack)
    return SecondLook(proposal=evidence.proposal, evidence=evidence)


class LookAgain(ProposalId):
    """How somebody else would have decided a proposal."""

    would: Decision = Field(description="what the caller would have decided")


@verb("queue.look_again", right="review", http="POST /queue/{proposal_id}/second-look", retry=True)
async def look_again(context: FabricContext, reviewer: Principal, request: LookAgain) -> Agreement:
    """Record how the caller would have decided a proposal that somebody else decided; it changes nothing else.

    Raises `Conflict` for one that is open, that the caller decided, or that was looked at again before.
    """
    action = ProposalAction(proposal_id=request.proposal_id, version=None)
    async with acting.locked(context, reviewer, action, ended=True) as one:
        verdicts = one.loaded.proposal.verdicts
        final = next((v for v in verdicts if v.action in ("approve", "reject") and v.by_kind == "operator"), None)
        if final is None:
            raise Conflict("no person has approved or rejected it", field="proposal_id")
        if same_person(final.by, reviewer.id):
            raise Conflict("was decided by you: a second look is another person's", field="proposal_id")
        if any(v.action in ("agree", "disagree") for v in verdicts):
            raise Conflict("was looked at again before", field="proposal_id")
        agreed = final.action == request.would
        await review.decide(one.tx, one.loaded, "agree" if agreed else "disagree", reviewer, one.pack)
        decided: Decision = "approve" if final.action == "approve" else "reject"
        return Agreement(proposal_id=request.proposal_id, agreed=agreed, decided=decided, by=final.by)


class SaveView(VerbInput):
    """A view to save, and its name."""

    name: ViewName
    filters: ViewFilters


@verb("views.save", right="read_queue", effect="write", http="POST /views")
async def save_view(context: FabricContext, reader: Principal, request: SaveView) -> SavedView:
    """Save a view of the queue under a name, for the caller alone; one of that name is replaced.

    It holds filters and order, never whom they are about. Raises `Conflict` beyond 30 views.
    """
    if holds_personal_data(await context.pack_for(reader), [request.name]):
        raise InvalidInput("holds personal data, which no erasure would reach there", field="name")
    async with context.write_once(reader.tenant_id, "writer") as tx:
        there = await team_store.views(tx, reader.id)
        if len(there) >= MOST_VIEWS and all(one.name != request.name for one in there):
            raise Conflict(f"has {MOST_VIEWS} views already: remove one first", field="name")
        filters = request.filters.model_dump(mode="json", exclude_defaults=True)
        await team_store.save_view(tx, reader.id, request.name, filters)
    return SavedView(name=request.name, filters=request.filters)


@verb("views.list", right="read_queue", http="GET /views")
async def list_views(context: FabricContext, reader: Principal) -> Sequence[SavedView]:
    """List the views of the queue that the caller saved, by name."""
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        return await team_store.views(tx, reader.id)


class ViewNamed(VerbInput):
    """A saved view."""

    name: ViewName


@verb("views.remove", right="read_queue", effect="write", http="POST /views/remove")
async def remove_view(context: FabricContext, reader: Principal, request: ViewNamed) -> SavedView:
    """Remove a view that the caller saved, and return it; raises `NotFound`."""
    async with context.write_once(reader.tenant_id, "writer") as tx:
        there = await team_store.views(tx, reader.id)
        await team_store.remove_view(tx, reader.id, request.name)
    return next(one for one in there if one.name == request.name)


class NameSubject(VerbInput):
    """What to call a subject."""

    subject: Ceid
    name: DisplayName | None = Field(None, description="the display name; null removes it")


@verb("subjects.name", right="name_subjects", http="POST /subjects/name", positional=("subject", "name"))
async def name_subject(context: FabricContext, caller: Principal, request: NameSubject) -> SubjectName:
    """Set the display name of a subject, which reviewers see beside its id; without a name it is removed.

    It is sealed under the subject's own key and erased with the subject. No recall returns it, and no pack holds it.
    That it was set, and by whom, is an event.
    """
    await context.open_tenant(caller.tenant_id)
    subject = (await context.pack_for(caller)).identity.resolve(request.subject)
    async with context.write_once(caller.tenant_id, "writer") as tx:
        await team_store.set_name(tx, context.vault, subject, request.name)
        await tx.tick()
        what = "subject_named" if request.name is not None else "subject_name_removed"
        tx.emit("memory.note", caller.id, about=what, subject=subject)
    return SubjectName(subject=subject, name=request.name)


class SubjectOf(VerbInput):
    """A subject."""

    subject: Ceid


@verb("subjects.get_name", right="read_queue", http="GET /subjects/name")
async def subject_name(context: FabricContext, reader: Principal, request: SubjectOf) -> SubjectName:
    """Show the display name of a subject."""
    subject = (await context.pack_for(reader)).identity.resolve(request.subject)
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        names = await team_store.names_of(tx, context.vault, [subject])
    return SubjectName(subject=subject, name=names.get(subject))
