"""The verbs of the review queue."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from muniment.candidates.intake import enqueue_drafts
from muniment.context import FabricContext
from muniment.errors import Conflict, InvalidInput, NotFound
from muniment.model.candidate import Refusal
from muniment.model.context import Principal
from muniment.model.fields import Name, Note, Probability, Query, Tier
from muniment.model.inputs import Listing, OtherRun, VerbInput, Whole
from muniment.model.proposal import APPROVED_AT_ONCE, Outcome, Proposal, ProposalDocument, document_of
from muniment.model.review_views import (
    ApprovalPlan,
    EditCheck,
    GroupOfProposals,
    ManyAction,
    Presence,
    Preview,
    QueueCounts,
    QueueGroup,
    QueueSearch,
)
from muniment.model.trail import Evidence
from muniment.promotion.promote import approve_item, regate
from muniment.recall import preview as previewing
from muniment.review import acting, team_store
from muniment.review import edit as editing
from muniment.review import plan_many as planning
from muniment.review import search_queue as searching
from muniment.review import store as review
from muniment.review.acting import ProposalAction, ProposalId
from muniment.review.approve_many import Wanted
from muniment.review.approve_many import approve_many as approving_many
from muniment.review.dangers import with_dangers
from muniment.review.decide_many import reject_one
from muniment.review.edit import EditFields
from muniment.review.evidence import evidence_of
from muniment.review.filters import QueueFilters, filters_of
from muniment.review.plan_many import MOST_PLANNED
from muniment.verbs.declaration import verb


class ListProposals(Listing, QueueFilters):
    """Which proposals to list."""

    group: QueueGroup | None = Field(
        None, description="list open ones group by group: by whom they are about, by source or by class"
    )


@verb(
    "queue.list", right="read_queue", http="GET /queue", keywords=QueueFilters, page_key="proposal_id", cli="queue list"
)
async def list_proposals(context: FabricContext, reader: Principal, request: ListProposals) -> list[Proposal]:
    """List the proposals that wait for a person, by due time; with `closed` also those that had their final verdict.

    Open proposals that say the same in the same scope are one item (REV-11): the first of them is listed, with the
    `count` of all; with `closed` each is listed.
    They can be narrowed to a `write_class`, the `tier` they would go to, a `risk`, a `reason` for a person to look, an
    `entity` they are about, an `assignee`, a `status` (`pending` or `held`, of open ones), and to those that are
    `overdue` or are not. With `group` they come group by group, by the names of the groups. `after` is the id of the
    last proposal of the previous page.
    """
    pack = await context.pack_for(reader)
    filters = await filters_of(context, reader, request)
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        last = request.after
        if last is not None and not await review.load_many(tx, context.vault, [last]):
            raise NotFound("no such proposal", field="after")
        ids = await review.page(tx, filters, after=last, count=request.limit, group=request.group)
        found = await review.load_many(tx, context.vault, ids, skip_broken=True)
        named = await team_store.with_names(tx, context.vault, [loaded.proposal for loaded in found])
        return await with_dangers(tx, named, pack)


class GroupProposals(QueueFilters):
    """How to group the open proposals, and which."""

    by: QueueGroup = Field(description="by whom they are about, by source (the author of the capture) or by class")


@verb("queue.groups", right="read_queue", effect="read", http="GET /queue/groups", positional=("by",))
async def groups(context: FabricContext, reader: Principal, request: GroupProposals) -> Sequence[GroupOfProposals]:
    """Count the open proposals that match the filters of `queue.list`, by subject, source or class; at most 100."""
    filters = await filters_of(context, reader, request)
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        return await team_store.groups(tx, request.by, filters)


class SearchQueue(ListProposals):
    """What to look for in the queue, and among which proposals."""

    words: Query


@verb(
    "queue.search",
    right="read_queue",
    effect="read",
    http="POST /queue/search",
    positional=("words",),
    keywords=QueueFilters,
)
async def search_queue(context: FabricContext, reader: Principal, request: SearchQueue) -> QueueSearch:
    """Find open proposals with all these words in their text, or in whom and what they are about.

    The filters, `group`, `order` and `after` are those of `queue.list`. What proposals say is sealed: the first 3,000
    that match the filters are opened and compared with at most 20 words, and nothing is stored. If more match the
    filters, `complete` is false: narrow them.
    """
    pack = await context.pack_for(reader)
    filters = await filters_of(context, reader, request)
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        found = await searching.search(
            tx, context.vault, request.words, filters, after=request.after, group=request.group
        )
        some = found.proposal_ids[: request.limit]
        loaded = await review.load_many(tx, context.vault, some, skip_broken=True)
        named = await team_store.with_names(tx, context.vault, [one.proposal for one in loaded])
        shown = tuple(await with_dangers(tx, named, pack))
    return QueueSearch(proposals=shown, matching=found.matching, complete=found.complete)


@verb("queue.counts", right="read_queue", http="GET /queue/counts")
async def counts(context: FabricContext, reader: Principal) -> QueueCounts:
    """Count the open proposals: overdue, soon due, held, the caller's own; by class, risk, tier and reason."""
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        return await review.counts(tx, reader.id)


@verb("queue.get", right="read_queue", http="GET /queue/{proposal_id}")
async def get_proposal(context: FabricContext, reader: Principal, request: ProposalId) -> Proposal:
    """Read a proposal with all its verdicts; raises `NotFound`."""
    pack = await context.pack_for(reader)
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        (found,) = await with_dangers(tx, [await acting.read_proposal(context, tx, request.proposal_id)], pack)
        return found


@verb("queue.document", right="read_queue", http="GET /queue/{proposal_id}/document", cli="queue document")
async def document(context: FabricContext, reader: Principal, request: ProposalId) -> ProposalDocument:
    """Return a proposal as a document, in the form that `propose` takes, with its checks as they were computed.

    Raises `NotFound`, and `InvalidInput` for a plain statement, which has no entity and no predicate.
    """
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        found = document_of(await acting.read_proposal(context, tx, request.proposal_id))
    if found is None:
        raise InvalidInput(
            "a statement has no document: only a fact with entity and predicate has", field="proposal_id"
        )
    return found


@verb("queue.evidence", right="read_queue", http="GET /queue/{proposal_id}/evidence")
async def evidence(context: FabricContext, reader: Principal, request: ProposalId) -> Evidence:
    """Read a proposal with its evidence: its capture, earlier texts, consent, memories it repeats or contradicts.

    It also says whether the caller could approve it. The reading of the capture and of the conversation around it is
    recorded. Raises `NotFound`.
    """
    return await evidence_of(context, reader, request.proposal_id)


class NotedAction(ProposalAction):
    """An action on a proposal, with a note."""

    note: Note | None = None


class Approve(NotedAction):
    """An approval."""

    supersedes: Name | None = Field(None, description="the memory that this one replaces")


@verb("queue.approve", right="review", http="POST /queue/{proposal_id}/approve", retry=True)
async def approve(context: FabricContext, reviewer: Principal, request: Approve) -> Proposal:
    """Approve a proposal and promote it in the same transaction; `supersedes` names a memory that it replaces.

    Open proposals that say the same in the same scope are approved as one item (REV-11): of those that have the text of
    this one, are durable only if it is, and have no tier or priority that a reviewer changed, the first that the caller
    neither said, wrote nor edited is promoted; the others become its duplicates.
    The proposal comes back `promoted`; or `duplicate` if a live memory says the same already; or `held` or `blocked`
    if it contradicts one and the pack says so, or `held` if there is no room left. A sample of what was promoted
    without a person (`audits`) is confirmed, as its duplicate. What is low in trust or addresses the model takes a
    `note` that says why it may be trusted. Raises `SelfApproval`, `AlreadyDecided`, `NotPromotable`.
    """
    async with acting.locked(context, reviewer, request, regated=False) as locked:
        tx, item, pack = locked.tx, locked.item, locked.pack
        if (instead := await regate(context, tx, item.to_promote(reviewer)[0], pack)) is not None:
            return await acting.read_proposal(context, tx, instead)
        for one in item.to_promote(reviewer):
            review.check_trusted(one.proposal, pack, request.note)
        await approve_item(context, tx, item, pack, reviewer, note=request.note, supersedes=request.supersedes)
        return await acting.read_proposal(context, tx, request.proposal_id)


class ApproveMany(VerbInput):
    """Many approvals."""

    proposal_ids: Annotated[tuple[Name, ...], Field(min_length=1, max_length=10_000, fail_fast=True)]
    note: Note | None = None
    versions: Annotated[dict[Name, Annotated[int, Whole(0, 2**31)]], Field(max_length=10_000)] | None = Field(
        None,
        description="by proposal, the version that was read; one that has changed since is not approved",
    )
    acknowledge: Annotated[dict[Name, Name], Field(max_length=10_000)] | None = Field(
        None, description="by proposal, why one that is not ordinary is approved too; the verdict records it"
    )


@verb("queue.approve_many", right="review", http="POST /queue/approve", positional=("proposal_ids",), slow=True)
async def approve_many(context: FabricContext, reviewer: Principal, request: ApproveMany) -> Sequence[Outcome]:
    """Approve those of many proposals that are ordinary, each as `approve` would; outcomes keep the order.

    A proposal is ordinary if it is not sensitive, not about a third party, not high risk, not low in trust, does not
    address the model, contradicts nothing, is not assigned to somebody else and not on hold (REV-13). The rest is left
    out: `error` is `left_out`, and `left_out` has every reason.
    `acknowledge` maps a proposal to the reason for approving it anyway, which is recorded with the verdict; of those
    that say the same, the one that it names is promoted. One that cannot be approved (`error`: what `approve` would
    raise), or that is at another version than the one named in `versions`, stops no other.
    """
    acknowledged = request.acknowledge or {}
    for proposal_id in acknowledged:
        if proposal_id not in request.proposal_ids:
            raise InvalidInput("names a proposal that is not among those to approve", field="acknowledge")
    wanted = Wanted(request.proposal_ids, request.note, acknowledged, request.versions or {})
    return await approving_many(context, reviewer, wanted, APPROVED_AT_ONCE)


class PlanMany(QueueFilters):
    """What to plan: deciding the proposals that are named, or all that the filters match."""

    action: ManyAction = Field("approve", description="what would be done to them: approve, reject or assign")
    to: Name | None = Field(None, description="to assign: the reviewer; by default the caller")
    proposal_ids: Annotated[tuple[Name, ...], Field(max_length=MOST_PLANNED, fail_fast=True)] | None = Field(
        None, description="the proposals; by default all that match the filters, by due time"
    )
    versions: Annotated[dict[Name, Annotated[int, Whole(0, 2**31)]], Field(max_length=MOST_PLANNED)] | None = Field(
        None, description="by proposal, the version that was read; one that has changed since is left out"
    )
    words: Query | None = Field(None, description="of all that match, only those that `queue.search` finds")


@verb("queue.plan_many", right="review", effect="read", http="POST /queue/plan", slow=True)
async def plan_many(context: FabricContext, reviewer: Principal, request: PlanMany) -> ApprovalPlan:
    """Show what deciding many proposals at once would do: which are taken, which are left out and why, and the mix.

    By default what `queue.approve_many` would do; with `action`, what `queue.reject_many` or `queue.assign_many` would.
    Without `proposal_ids` it plans for those that the filters of `queue.list` match, 2,000 at most. Nothing is stored.
    """
    pack = await context.pack_for(reviewer)
    filters = await filters_of(context, reviewer, request)
    async with context.transaction(reviewer.tenant_id, "auditor", under=pack) as tx:
        ids, complete = request.proposal_ids, True
        if ids is None and request.words is not None:
            found = await searching.search(tx, context.vault, request.words, filters)
            ids, complete = found.proposal_ids, found.complete
        elif ids is None:
            ids = await review.page(tx, filters, after=None, count=MOST_PLANNED + 1)
        decide = planning.check_of(request.action, reviewer, pack, request.to)
        more = len(ids) > MOST_PLANNED or not complete
        return await planning.plan(context, tx, decide, ids[:MOST_PLANNED], request.versions or {}, more=more)


class EditProposal(NotedAction, EditFields):
    """What to change in a proposal."""


@verb("queue.edit", right="review", http="POST /queue/{proposal_id}/edit", keywords=EditFields, retry=True)
async def edit(context: FabricContext, reviewer: Principal, request: EditProposal) -> Proposal | Refusal:
    """Replace a proposal by an edited one. It passes the gates again; both texts are kept.

    When a gate refuses it, the refusal is returned and nothing is changed.
    """
    request.check()
    async with acting.locked(context, reviewer, request) as locked:
        if locked.withdrawn is not None:
            return locked.withdrawn
        draft = await editing.draft(context, locked.tx, reviewer, locked.loaded, locked.pack, request)
        entered, refusals = await enqueue_drafts(context, locked.tx, locked.pack, [draft], edit_of=request.proposal_id)
        if refusals:
            return refusals[0]
        await review.decide(locked.tx, locked.loaded, "edit", reviewer, locked.pack, note=request.note)
        return await acting.read_proposal(context, locked.tx, entered[0])


class CheckEdit(ProposalId, EditFields):
    """An edit to try."""


@verb(
    "queue.check",
    right="review",
    effect="read",
    http="POST /queue/{proposal_id}/check",
    keywords=EditFields,
    retry=True,
)
async def check(context: FabricContext, reviewer: Principal, request: CheckEdit) -> EditCheck:
    """Try an edit without making it: which gate would refuse it, or what it would become.

    Raises what `edit` would.
    """
    request.check()
    pack = await context.pack_for(reviewer)
    async with context.read_only(reviewer.tenant_id, under=pack) as tx:
        loaded = await review.load(tx, context.vault, request.proposal_id)
        review.check_undecided(loaded)
        draft = await editing.draft(context, tx, reviewer, loaded, pack, request)
        return await editing.check(context, tx, pack, request.proposal_id, draft)


class PreviewApproval(ProposalId):
    """Which recall to preview."""

    run: OtherRun | None = Field(None, description="the run that recalls; by default one in the proposal's own scope")
    query: Query | None = None


@verb("queue.preview", right="review", effect="read", http="POST /queue/{proposal_id}/preview", retry=True)
async def preview(context: FabricContext, reviewer: Principal, request: PreviewApproval) -> Preview:
    """Show what a recall would return before and after the approval of a proposal. Nothing is stored.

    The recall is that of `run`, or of a run in the proposal's own scope. What would prevent the approval is in `error`.
    Raises `NotFound`, `AlreadyDecided`, and `Conflict` while too many previews of the tenant are running.
    """
    return await previewing.preview(context, reviewer, request.proposal_id, request.run, request.query)


@verb("queue.attend", right="review", effect="read", http="POST /queue/{proposal_id}/attend")
async def attend(context: FabricContext, reviewer: Principal, request: ProposalId) -> Sequence[Presence]:
    """Record that the caller looks at a proposal; returns who else did in the last 30 seconds."""
    async with context.transaction(reviewer.tenant_id, "writer") as tx:
        return await team_store.attend(tx, request.proposal_id, reviewer.id)


class Reject(NotedAction):
    """A rejection."""

    reason: Name = Field(description="why, in a few words; who stated the fact is told")


@verb("queue.reject", right="review", http="POST /queue/{proposal_id}/reject", retry=True)
async def reject(context: FabricContext, reviewer: Principal, request: Reject) -> Proposal:
    """End a proposal without promotion, with a reason. The same fact is refused for as long as the pack says.

    Open proposals that say the same in the same scope are rejected with it (REV-11); a sample that is rejected
    (`audits`) takes the memory it was drawn from with it, as `wrong`.
    """
    done, _ = await reject_one(context, reviewer, request, reason=request.reason, note=request.note)
    return done


@verb("queue.lift", right="review", http="POST /queue/{proposal_id}/lift", retry=True, cli="lift")
async def lift(context: FabricContext, reviewer: Principal, request: NotedAction) -> Proposal:
    """Lift a rejection or an undo, so that the same fact can be proposed again.

    Raises `Conflict` for what was neither rejected nor undone.
    """

    def check_rejected(proposal: Proposal) -> None:
        if proposal.status != "rejected" and all(verdict.action != "undo" for verdict in proposal.verdicts):
            raise Conflict(f"was not rejected: it is {proposal.status}", field="proposal_id")
        if any(verdict.action == "lift" for verdict in proposal.verdicts):
            raise Conflict("was lifted before", field="proposal_id")

    return await acting.decide(context, reviewer, request, "lift", check=check_rejected, ended=True, note=request.note)


class Override(NotedAction):
    """Another tier, another priority."""

    tier: Tier | None = Field(None, description="the tier to promote it to")
    priority: Probability | None = Field(None, description="the priority, from 0 to 1")


@verb("queue.override", right="review", http="POST /queue/{proposal_id}/override", retry=True, cli="override")
async def override(context: FabricContext, reviewer: Principal, request: Override) -> Proposal:
    """Change the tier or the priority of a proposal.

    The stricter of the derived and the new tier decides who may approve.
    """
    if request.tier is None and request.priority is None:
        raise InvalidInput("give a tier, a priority, or both", field="tier")

    def check_tier(proposal: Proposal) -> None:
        if request.tier == "working" and proposal.candidate.scope.session_id is None:
            raise InvalidInput("the working tier needs a session, which this fact has not", field="tier")

    changed: dict[str, Any] = {"tier": request.tier, "priority": request.priority, "note": request.note}
    return await acting.decide(context, reviewer, request, "override", check=check_tier, **changed)


class Assign(ProposalAction):
    """Whom to assign a proposal to."""

    to: Name | None = Field(None, description="the reviewer; by default the caller")


@verb("queue.assign", right="review", http="POST /queue/{proposal_id}/assign", retry=True, cli="assign")
async def assign(context: FabricContext, reviewer: Principal, request: Assign) -> Proposal:
    """Assign a proposal to a reviewer."""
    return await acting.decide(context, reviewer, request, "assign", assignee=request.to or reviewer.id)


@verb("queue.hold", right="review", http="POST /queue/{proposal_id}/hold", retry=True)
async def hold(context: FabricContext, reviewer: Principal, request: NotedAction) -> Proposal:
    """Put a proposal on hold, to ask later; `release` returns it to the queue. Raises `Conflict` for a held one."""

    def check_pending(proposal: Proposal) -> None:
        if proposal.status == "held":
            raise Conflict("is on hold already", field="proposal_id")

    return await acting.decide(context, reviewer, request, "hold", check=check_pending, note=request.note)


@verb("queue.release", right="review", http="POST /queue/{proposal_id}/release", retry=True, cli="release")
async def release(context: FabricContext, reviewer: Principal, request: ProposalAction) -> Proposal:
    """Unassign a proposal, or return a held one to the queue."""
    return await acting.decide(context, reviewer, request, "release")
