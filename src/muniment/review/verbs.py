"""The verbs of the review queue."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field, Strict

from muniment.candidates.intake import enqueue_drafts
from muniment.candidates.store import remember_rejection
from muniment.context import FabricContext
from muniment.database.storage import Transaction
from muniment.errors import Conflict, InvalidInput, NotFound, VersionConflict
from muniment.model.candidate import Refusal
from muniment.model.context import Principal
from muniment.model.fields import Ceid, Name, Note, Probability, Query, Tier, WriteClass
from muniment.model.inputs import Listing, OtherRun, VerbInput, Whole
from muniment.model.proposal import (
    APPROVED_AT_ONCE,
    Action,
    HumanReason,
    Outcome,
    Proposal,
    ProposalDocument,
    document_of,
)
from muniment.model.review_views import EditCheck, OpenStatus, Presence, Preview, QueueCounts, Risk
from muniment.model.trail import Evidence
from muniment.pack import Pack
from muniment.promotion.promote import approve_item, regate
from muniment.promotion.retract import retract_memory
from muniment.recall import preview as previewing
from muniment.review import edit as editing
from muniment.review import store as review
from muniment.review.approve_many import approve_many as approving_many
from muniment.review.edit import EditFields
from muniment.review.evidence import evidence_of
from muniment.review.item_store import Item, load_item
from muniment.verbs.declaration import verb


class QueueFilters(VerbInput):
    """What `queue.list` can be narrowed to."""

    write_class: WriteClass | None = None
    closed: Annotated[bool, Strict()] = Field(False, description="also those that had their final verdict")
    tier: Tier | None = Field(None, description="the tier it would go to")
    risk: Risk | None = None
    reason: HumanReason | None = Field(None, description="why a person has to look at it")
    entity: Ceid | None = Field(None, description="what it is about")
    assignee: Name | None = Field(None, description="who it is assigned to")
    status: OpenStatus | None = Field(None, description="the status of an open proposal")
    overdue: Annotated[bool, Strict()] | None = Field(None, description="only overdue ones, or only the others")


class ListProposals(Listing, QueueFilters):
    """Which proposals to list."""


@verb(
    "queue.list", right="read_queue", http="GET /queue", keywords=QueueFilters, page_key="proposal_id", cli="queue list"
)
async def list_proposals(context: FabricContext, reader: Principal, request: ListProposals) -> list[Proposal]:
    """List the proposals that wait for a person, by due time; with `closed` also those that had their final verdict.

    Open proposals that say the same in the same scope are one item (REV-11): the first of them is listed, with the
    `count` of all; with `closed` each is listed.
    They can be narrowed to a `write_class`, the `tier` they would go to, a `risk`, a `reason` for a person to look, an
    `entity` they are about, an `assignee`, a `status` (`pending` or `held`, of open ones), and to those that are
    `overdue` or are not. `after` is the id of the last proposal of the previous page.
    """
    filters = {name: getattr(request, name) for name in QueueFilters.model_fields}
    filters["entity"] = await context.spellings(reader, request.entity)
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        last = request.after
        if last is not None and not await review.load_many(tx, context.vault, [last]):
            raise NotFound("no such proposal", field="after")
        ids = await review.page(tx, filters, after=last, count=request.limit)
        found = await review.load_many(tx, context.vault, ids, skip_broken=True)
        return [loaded.proposal for loaded in found]


@verb("queue.counts", right="read_queue", http="GET /queue/counts")
async def counts(context: FabricContext, reader: Principal) -> QueueCounts:
    """Count the open proposals: overdue, soon due, held, the caller's own; by class, risk, tier and reason."""
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        return await review.counts(tx, reader.id)


class ProposalId(VerbInput):
    """A proposal."""

    proposal_id: Name


@verb("queue.get", right="read_queue", http="GET /queue/{proposal_id}")
async def get_proposal(context: FabricContext, reader: Principal, request: ProposalId) -> Proposal:
    """Read a proposal with all its verdicts; raises `NotFound`."""
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        return await _read(context, tx, request.proposal_id)


@verb("queue.document", right="read_queue", http="GET /queue/{proposal_id}/document", cli="queue document")
async def document(context: FabricContext, reader: Principal, request: ProposalId) -> ProposalDocument:
    """Return a proposal as a document, in the form that `propose` takes, with its checks as they were computed.

    Raises `NotFound`, and `InvalidInput` for a plain statement, which has no entity and no predicate.
    """
    async with context.transaction(reader.tenant_id, "auditor") as tx:
        found = document_of(await _read(context, tx, request.proposal_id))
    if found is None:
        raise InvalidInput(
            "a statement has no document: only a fact with entity and predicate has", field="proposal_id"
        )
    return found


@verb("queue.evidence", right="read_queue", http="GET /queue/{proposal_id}/evidence")
async def evidence(context: FabricContext, reader: Principal, request: ProposalId) -> Evidence:
    """Read a proposal with its evidence: its capture, earlier texts, consent, memories it repeats or contradicts.

    It also says whether the caller could approve it. Raises `NotFound`.
    """
    return await evidence_of(context, reader, request.proposal_id)


class ProposalAction(ProposalId):
    """An action on a proposal; with `version`, only if it is still at that version."""

    version: Annotated[int, Whole(0, 2**31)] | None = Field(
        None,
        description="the version that was read; if it has changed since, nothing is done (412). `If-Match` says the "
        "same.",
    )


class NotedAction(ProposalAction):
    """An action on a proposal, with a note."""

    note: Note | None = None


class Approve(NotedAction):
    """An approval."""

    supersedes: Name | None = Field(None, description="the memory that this one replaces")


@verb("queue.approve", right="review", http="POST /queue/{proposal_id}/approve", retry=True)
async def approve(context: FabricContext, reviewer: Principal, request: Approve) -> Proposal:
    """Approve a proposal and promote it in the same transaction; `supersedes` names a memory that it replaces.

    Open proposals that say the same in the same scope are approved as one item (REV-11): the first of them that the
    caller neither said, wrote nor edited is promoted, the others, this one perhaps among them, become its duplicates.
    The proposal comes back `promoted`; or `duplicate` if a live memory says the same already; or `held` or `blocked`
    if it contradicts one and the pack says so, or `held` if there is no room left. A sample of what was promoted
    without a person (`audits`) is confirmed, as its duplicate. Raises `SelfApproval`, `AlreadyDecided`,
    `NotPromotable`.
    """
    async with _locked(context, reviewer, request, regated=False) as locked:
        tx, item, pack = locked.tx, locked.item, locked.pack
        if (instead := await regate(context, tx, item.to_promote(reviewer)[0], pack)) is not None:
            return await _read(context, tx, instead)
        await approve_item(context, tx, item, pack, reviewer, note=request.note, supersedes=request.supersedes)
        return await _read(context, tx, request.proposal_id)


class ApproveMany(VerbInput):
    """Many approvals."""

    proposal_ids: Annotated[tuple[Name, ...], Field(min_length=1, max_length=10_000, fail_fast=True)]
    note: Note | None = None
    acknowledge: Annotated[dict[Name, Name], Field(max_length=10_000)] | None = Field(
        None, description="by proposal, why one that is not ordinary is approved too; the verdict records it"
    )


@verb("queue.approve_many", right="review", http="POST /queue/approve", positional=("proposal_ids",), slow=True)
async def approve_many(context: FabricContext, reviewer: Principal, request: ApproveMany) -> Sequence[Outcome]:
    """Approve those of many proposals that are ordinary, each as `approve` would; outcomes keep the order.

    A proposal is ordinary if it is not sensitive, not about a third party, not high risk, not low in trust, contradicts
    nothing and is not assigned to somebody else (REV-13). The rest is left out: `error` is `left_out`, and `left_out`
    has every reason.
    `acknowledge` maps a proposal to the reason for approving it anyway, which is recorded with the verdict. One that
    cannot be approved (`error`: what `approve` would raise) stops no other.
    """
    acknowledged = request.acknowledge or {}
    for proposal_id in acknowledged:
        if proposal_id not in request.proposal_ids:
            raise InvalidInput("names a proposal that is not among those to approve", field="acknowledge")
        if not any(character.isalnum() for character in acknowledged[proposal_id]):
            raise InvalidInput("is no reason: say why in words", field=f"acknowledge.{proposal_id}")
    return await approving_many(context, reviewer, request.proposal_ids, request.note, acknowledged, APPROVED_AT_ONCE)


class EditProposal(NotedAction, EditFields):
    """What to change in a proposal."""


@verb("queue.edit", right="review", http="POST /queue/{proposal_id}/edit", keywords=EditFields, retry=True)
async def edit(context: FabricContext, reviewer: Principal, request: EditProposal) -> Proposal | Refusal:
    """Replace a proposal by an edited one. It passes the gates again; both texts are kept.

    When a gate refuses it, the refusal is returned and nothing is changed.
    """
    request.check()
    async with _locked(context, reviewer, request) as locked:
        if locked.withdrawn is not None:
            return locked.withdrawn
        draft = await editing.draft(context, locked.tx, reviewer, locked.loaded, locked.pack, request)
        entered, refusals = await enqueue_drafts(context, locked.tx, locked.pack, [draft], edit_of=request.proposal_id)
        if refusals:
            return refusals[0]
        await review.decide(locked.tx, locked.loaded, "edit", reviewer, locked.pack, note=request.note)
        return await _read(context, locked.tx, entered[0])


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
        return await review.attend(tx, request.proposal_id, reviewer.id)


class Reject(NotedAction):
    """A rejection."""

    reason: Name


@verb("queue.reject", right="review", http="POST /queue/{proposal_id}/reject", retry=True)
async def reject(context: FabricContext, reviewer: Principal, request: Reject) -> Proposal:
    """End a proposal without promotion, with a reason. The same fact is refused for as long as the pack says.

    Open proposals that say the same in the same scope are rejected with it (REV-11); a sample that is rejected
    (`audits`) takes the memory it was drawn from with it, as `wrong`.
    """
    async with _locked(context, reviewer, request) as locked:
        if locked.withdrawn is not None:
            return locked.withdrawn
        candidate, audits = locked.loaded.proposal.candidate, locked.loaded.proposal.audits
        if audits is not None:
            with suppress(Conflict):  # It was already retracted.
                await retract_memory(context, locked.tx, audits, by=reviewer.id, reason="wrong", pack=locked.pack)
        for one in (locked.loaded, *locked.item.others):
            await review.decide(
                locked.tx, one, "reject", reviewer, locked.pack, reason=request.reason, note=request.note
            )
        # To refuse a request to forget something says nothing against what it is about.
        if locked.loaded.proposal.action != "retract":
            comparer = await context.comparer(locked.tx, locked.pack)
            await remember_rejection(locked.tx, context.vault, request.proposal_id, candidate, comparer)
        return await _read(context, locked.tx, request.proposal_id)


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

    return await _decide(context, reviewer, request, "lift", check=check_rejected, ended=True, note=request.note)


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
    return await _decide(context, reviewer, request, "override", check=check_tier, **changed)


class Assign(ProposalAction):
    """Whom to assign a proposal to."""

    to: Name | None = Field(None, description="the reviewer; by default the caller")


@verb("queue.assign", right="review", http="POST /queue/{proposal_id}/assign", retry=True, cli="assign")
async def assign(context: FabricContext, reviewer: Principal, request: Assign) -> Proposal:
    """Assign a proposal to a reviewer."""
    return await _decide(context, reviewer, request, "assign", assignee=request.to or reviewer.id)


@verb("queue.release", right="review", http="POST /queue/{proposal_id}/release", retry=True, cli="release")
async def release(context: FabricContext, reviewer: Principal, request: ProposalAction) -> Proposal:
    """Unassign a proposal, or return a held one to the queue."""
    return await _decide(context, reviewer, request, "release")


# ---- acting on one proposal ----


@dataclass(frozen=True)
class _LockedProposal:
    """A proposal that a reviewer acts on; `withdrawn` is what to return if the gates withdrew it."""

    tx: Transaction
    item: Item
    pack: Pack
    withdrawn: Proposal | None

    @property
    def loaded(self) -> review.Loaded:
        """The proposal that was asked for."""
        return self.item.asked


@asynccontextmanager
async def _locked(
    context: FabricContext, reviewer: Principal, request: ProposalAction, *, ended: bool = False, regated: bool = True
) -> AsyncGenerator[_LockedProposal]:
    """Lock a proposal, and those that say the same, for one reviewer's action.

    `ended` allows one that has had its final verdict. One made under another pack passes the gates again first, which
    may withdraw it, if it is to be `regated` here.
    """
    proposal_id, version = request.proposal_id, request.version
    pack = await context.pack_for(reviewer)
    async with (
        context.reported(reviewer, "review", proposal_id),
        context.write_once(reviewer.tenant_id, "writer", under=pack) as tx,
    ):
        item = await load_item(tx, context.vault, proposal_id)
        loaded = item.asked
        if version is not None and version != loaded.proposal.version:
            raise VersionConflict(f"it is at version {loaded.proposal.version} now: read it again", field="version")
        withdrawn: Proposal | None = None
        if not ended:
            review.check_undecided(loaded)
            if regated and (instead := await regate(context, tx, loaded, pack)) is not None:
                withdrawn = await _read(context, tx, instead)
        yield _LockedProposal(tx, item, pack, withdrawn)


async def _decide(
    context: FabricContext,
    reviewer: Principal,
    request: ProposalAction,
    action: Action,
    *,
    check: Callable[[Proposal], None] = lambda _: None,
    ended: bool = False,
    **verdict: Any,
) -> Proposal:
    """Record a verdict that only changes the proposal, after a check of it; returns the proposal as it is then."""
    async with _locked(context, reviewer, request, ended=ended) as locked:
        if locked.withdrawn is not None:
            return locked.withdrawn
        check(locked.loaded.proposal)
        await review.decide(locked.tx, locked.loaded, action, reviewer, locked.pack, **verdict)
        return await _read(context, locked.tx, request.proposal_id)


async def _read(context: FabricContext, tx: Transaction, proposal_id: str) -> Proposal:
    return (await review.load(tx, context.vault, proposal_id)).proposal
