"""Verbs of reviewers together: comments, second looks, the day's progress, saved views, display names."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated

from pydantic import Field, StringConstraints

from muniment.context import FabricContext
from muniment.errors import Conflict, InvalidInput
from muniment.language.redaction import holds_personal_data
from muniment.model.context import Principal
from muniment.model.fields import Ceid, Name, Note, OpenName
from muniment.model.inputs import VerbInput
from muniment.model.names import same_person
from muniment.model.proposal import Proposal
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
from muniment.review import acting, team_store
from muniment.review import store as review
from muniment.review.acting import ProposalAction, ProposalId
from muniment.review.filters import QueueFilters, filters_of
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


@verb("queue.progress", right="read_queue", http="GET /queue/progress")
async def progress(context: FabricContext, reader: Principal) -> DayProgress:
    """Count what people decided since midnight (UTC), and how often second looks agreed in the last 30 days."""
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        midnight = tx.now.replace(hour=0, minute=0, second=0, microsecond=0)
        return await team_store.progress(tx, reader.id, midnight)


class Overview(QueueFilters):
    """Which open proposals are counted and grouped."""

    group: QueueGroup | None = Field(None, description="by whom they are about, by source or by class")


@verb("queue.overview", right="read_queue", effect="read", http="GET /queue/overview")
async def overview(context: FabricContext, reader: Principal, request: Overview) -> QueueOverview:
    """Show the queue as its page does: counts, how many match the filters, groups, the day's progress, saved views."""
    filters = await filters_of(context, reader, request)
    narrowed = any(value not in (None, False) for name, value in filters.items() if name != "order")
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        counts = await review.counts(tx, reader.id)
        midnight = tx.now.replace(hour=0, minute=0, second=0, microsecond=0)
        return QueueOverview(
            counts=counts,
            matching=await team_store.matching(tx, filters) if narrowed else counts.open,
            groups=tuple(await team_store.groups(tx, request.group, filters)) if request.group is not None else (),
            progress=await team_store.progress(tx, reader.id, midnight),
            views=tuple(await team_store.views(tx, reader.id)),
        )


@verb("queue.second_look", right="review", effect="read", http="GET /queue/second-look")
async def second_look(context: FabricContext, reviewer: Principal) -> SecondLook:
    """Draw a proposal that somebody else decided, to be judged again without knowing how (see `queue.look_again`).

    Of what people decided in the last 14 days one in twenty is drawn, by its id; each is looked at once.
    """
    async with context.transaction(reviewer.tenant_id, "auditor") as tx:
        found = await team_store.to_look_at(tx, reviewer.id, tx.now - LOOKED_AT_AGAIN, DRAWN)
        if found is None:
            return SecondLook()
        proposal = (await review.load(tx, context.vault, found)).proposal
        hidden = {"verdicts": (), "status": "pending", "memory_id": None, "duplicate_check": None}
        return SecondLook(proposal=proposal.model_copy(update=hidden))


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
    """
    await context.open_tenant(caller.tenant_id)
    subject = (await context.pack_for(caller)).identity.resolve(request.subject)
    async with context.write_once(caller.tenant_id, "writer") as tx:
        await team_store.set_name(tx, context.vault, subject, request.name)
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
