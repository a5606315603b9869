"""The review queue as a reviewer works it."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict, Unpack

from pydantic import Field, Strict

from muniment.candidates.intake import enqueue_drafts
from muniment.context import FabricContext, retry_on_pack_change
from muniment.database.storage import Transaction
from muniment.errors import Conflict, InvalidInput, NotFound, VersionConflict
from muniment.model.candidate import Refusal
from muniment.model.context import Asker, Principal, RunContext
from muniment.model.evidence import Evidence
from muniment.model.fields import Artifact, Ceid, Name, Note, Probability, Tier, WriteClass, build
from muniment.model.proposal import Action, HumanReason, Outcome, Proposal
from muniment.model.review_views import EditCheck, OpenStatus, Presence, Preview, QueueCounts, Risk
from muniment.pack import Pack
from muniment.promotion.retract import retract_memory
from muniment.recall import preview as previewing
from muniment.review import edit as editing
from muniment.review import rejection_store as rejections
from muniment.review import store as review
from muniment.review.approve import approve_many, approve_one
from muniment.review.edit import EditFields
from muniment.review.evidence import evidence_of
from muniment.review.regate import regate
from muniment.verbs import arguments as checks

# Approved in one transaction: others of the tenant wait no longer than that.
AT_ONCE = 200


class _Remark(Artifact):
    reason: Name | None = None
    note: Note | None = None
    supersedes: Name | None = None
    tier: Tier | None = None
    priority: Probability | None = None


class _Many(Artifact):
    proposal_ids: Annotated[tuple[Name, ...], Field(min_length=1, max_length=10_000, fail_fast=True)]
    note: Note | None = None
    acknowledge: Annotated[dict[Name, Name], Field(max_length=10_000)] = Field(default_factory=dict)


class QueueFilters(TypedDict, total=False):
    """What `list` can be narrowed to."""

    write_class: WriteClass | None
    closed: bool
    tier: Tier | None
    risk: Risk | None
    reason: HumanReason | None
    entity: str | None
    assignee: str | None
    status: OpenStatus | None
    overdue: bool | None


class _Narrowed(Artifact):
    write_class: WriteClass | None = None
    closed: Annotated[bool, Strict()] = False
    tier: Tier | None = None
    risk: Risk | None = None
    reason: HumanReason | None = None
    entity: Ceid | None = None
    assignee: Name | None = None
    status: OpenStatus | None = None
    overdue: Annotated[bool, Strict()] | None = None


class AsyncQueue:
    """Proposals by due time; every action is a verdict of a named person.

    Given the `version` that the person read, an action on one raises `VersionConflict` where it is another now.
    """

    def __init__(self, context: FabricContext) -> None:
        self._context = context

    async def list(
        self, asker: Asker, *, limit: int = 50, after: str | None = None, **narrowed: Unpack[QueueFilters]
    ) -> list[Proposal]:
        """Open proposals, the one due first first; with `closed` also those that had their final verdict.

        Narrowed to a `write_class`, the `tier` it would go to, a `risk`, a `reason` for a person to look, an `entity`
        that it is about, an `assignee`, a `status` (`pending` or `held`: open ones alone), what is `overdue` or is
        not. `after` is the id of the last proposal of the page before.
        """
        wanted = review.QueueFilter(**dict(build(_Narrowed, narrowed)))
        count, last = checks.page(limit, after)
        await self._context.authorise(asker, "read_queue")
        async with self._context.transaction(asker.tenant_id, "auditor") as tx:
            if last is not None and not await review.load_many(tx, self._context.vault, [last]):
                raise NotFound("no such proposal", field="after")
            ids = await review.page(tx, wanted, after=last, count=count)
            found = await review.load_many(tx, self._context.vault, ids, skip_broken=True)
            return [loaded.proposal for loaded in found]

    async def counts(self, asker: Asker) -> QueueCounts:
        """How many are open, overdue, soon due, held and the asker's own; by class, risk, tier and reason."""
        principal = await self._context.authorise(asker, "read_queue")
        async with self._context.transaction(asker.tenant_id, "auditor") as tx:
            return await review.counts(tx, principal.id)

    async def get(self, asker: Asker, proposal_id: str) -> Proposal:
        """One proposal with all its verdicts; raises `NotFound`."""
        checks.name(proposal_id, "proposal_id")
        await self._context.authorise(asker, "read_queue")
        async with self._context.transaction(asker.tenant_id, "auditor") as tx:
            return (await review.load(tx, self._context.vault, proposal_id)).proposal

    async def evidence(self, asker: Asker, proposal_id: str) -> Evidence:
        """A proposal beside what it rests on: capture, earlier texts, consent, the memories it meets.

        And whether whoever asks could approve it. Raises `NotFound`.
        """
        checks.name(proposal_id, "proposal_id")
        principal = await self._context.authorise(asker, "read_queue")
        return await evidence_of(self._context, principal, proposal_id)

    @retry_on_pack_change
    async def approve(
        self,
        asker: Asker,
        proposal_id: str,
        *,
        note: str | None = None,
        supersedes: str | None = None,
        version: int | None = None,
    ) -> Proposal:
        """Approve and promote in one transaction; `supersedes` names a memory that it takes the place of.

        The proposal comes back `promoted`; or `duplicate` if a live memory says the same already; or `held` or
        `blocked` if it contradicts one and the pack says so, or `held` if there is no room left. A sample of what was
        promoted without a person (`audits`) is confirmed, as its duplicate. Raises `SelfApproval`, `AlreadyDecided`,
        `NotPromotable`.
        """
        given = build(_Remark, {"note": note, "supersedes": supersedes})
        async with self._open(asker, proposal_id, version) as at:
            if at.became is not None:
                return at.became
            await approve_one(
                self._context, at.tx, at.loaded, at.pack, at.principal, note=given.note, supersedes=given.supersedes
            )
            return await self._read(at.tx, proposal_id)

    # Sequence, not list: `list` is a verb of this class.
    async def approve_many(
        self,
        asker: Asker,
        proposal_ids: Sequence[str],
        *,
        note: str | None = None,
        acknowledge: Mapping[str, str] | None = None,
    ) -> Sequence[Outcome]:
        """Approve those of many that are ordinary, each as `approve` would; what becomes of each, in the order asked.

        Ordinary is what is not sensitive, not high risk, not low in trust, contradicts nothing and is not assigned to
        somebody else (REV-13). The rest is left out: `error` is `left_out`, and `left_out` has every reason.
        `acknowledge` takes single ones in: by proposal, why, which is recorded with the verdict. One that cannot be
        approved (`error`: what `approve` would raise) stops no other.
        """
        given = build(_Many, {"proposal_ids": proposal_ids, "note": note, "acknowledge": acknowledge or {}})
        for proposal_id in given.acknowledge:
            if proposal_id not in given.proposal_ids:
                raise InvalidInput("names a proposal that is not among those to approve", field="acknowledge")
            if not any(character.isalnum() for character in given.acknowledge[proposal_id]):
                raise InvalidInput("is no reason: say why in words", field=f"acknowledge.{proposal_id}")
        principal = await self._context.authorise(asker, "review")
        return await approve_many(self._context, principal, given.proposal_ids, given.note, given.acknowledge, AT_ONCE)

    @retry_on_pack_change
    async def edit(
        self,
        asker: Asker,
        proposal_id: str,
        *,
        note: str | None = None,
        version: int | None = None,
        **changes: Unpack[EditFields],
    ) -> Proposal | Refusal:
        """Put an edited candidate in the proposal's place. It passes the gates again; both texts are kept.

        A refusal by a gate comes back as a value, and nothing is changed.
        """
        given = editing.changed(changes, note)
        async with self._open(asker, proposal_id, version) as at:
            if at.became is not None:
                return at.became
            draft = await editing.draft(self._context, at.tx, at.principal, at.loaded, at.pack, changes, given)
            entered, refusals = await enqueue_drafts(self._context, at.tx, at.pack, [draft], edit_of=proposal_id)
            if refusals:
                return refusals[0]
            await at.decide("edit", note=given.note)
            return await self._read(at.tx, entered[0])

    @retry_on_pack_change
    async def check(self, asker: Asker, proposal_id: str, **changes: Unpack[EditFields]) -> EditCheck:
        """What `edit` with these changes would become, without making it: refused by which gate, or how it would stand.

        Raises what `edit` would.
        """
        checks.name(proposal_id, "proposal_id")
        given = editing.changed(changes)
        principal = await self._context.authorise(asker, "review")
        pack = await self._context.pack_for(asker)
        async with self._context.read_only(asker.tenant_id, under=pack) as tx:
            loaded = await review.load(tx, self._context.vault, proposal_id)
            review.check_undecided(loaded)
            draft = await editing.draft(self._context, tx, principal, loaded, pack, changes, given)
            return await editing.check(self._context, tx, pack, proposal_id, draft)

    @retry_on_pack_change
    async def preview(
        self, asker: Asker, proposal_id: str, *, run: RunContext | None = None, query: str | None = None
    ) -> Preview:
        """What a recall would give before and after its approval, by anybody who may; nothing is kept of either.

        Of that `run`, else of one in the proposal's own scope. What stands against an approval is told in `error`.
        Raises `NotFound`, `AlreadyDecided`, and `Conflict` while too many of the tenant are asked for.
        """
        checks.name(proposal_id, "proposal_id")
        principal = await self._context.authorise(asker, "review")
        return await previewing.preview(self._context, principal, proposal_id, run, query)

    # Sequence, not list: `list` is a verb of this class.
    async def attend(self, asker: Asker, proposal_id: str) -> Sequence[Presence]:
        """Say that one looks at it, and hear who else did in the last 30 seconds. It decides nothing."""
        checks.name(proposal_id, "proposal_id")
        principal = await self._context.authorise(asker, "review")
        async with self._context.transaction(asker.tenant_id, "writer") as tx:
            await review.check_exists(tx, proposal_id)
            return await review.attend(tx, proposal_id, principal.id)

    @retry_on_pack_change
    async def reject(
        self, asker: Asker, proposal_id: str, *, reason: str, note: str | None = None, version: int | None = None
    ) -> Proposal:
        """End it without promotion, with a reason. It is remembered: the same fact is refused for the pack's time.

        A sample that is rejected (`audits`) takes the memory it was drawn from with it, as `wrong`.
        """
        given = build(_Remark, {"reason": reason, "note": note})
        if given.reason is None:
            raise InvalidInput("is required", field="reason")
        async with self._open(asker, proposal_id, version) as at:
            if at.became is not None:
                return at.became
            candidate, audits = at.loaded.proposal.candidate, at.loaded.proposal.audits
            if audits is not None:
                with suppress(Conflict):  # Withdrawn before.
                    await retract_memory(self._context, at.tx, audits, by=at.principal.id, reason="wrong", pack=at.pack)
            await at.decide("reject", reason=given.reason, note=given.note)
            comparer = await self._context.comparer(at.tx, at.pack)
            await rejections.remember_rejection(at.tx, self._context.vault, proposal_id, candidate, comparer)
            return await self._read(at.tx, proposal_id)

    @retry_on_pack_change
    async def lift(
        self, asker: Asker, proposal_id: str, *, note: str | None = None, version: int | None = None
    ) -> Proposal:
        """Forget a rejection: the same fact can be proposed again. Raises `Conflict` for what was not rejected."""
        given = build(_Remark, {"note": note})
        async with self._open(asker, proposal_id, version, ended=True) as at:
            if at.loaded.proposal.status != "rejected":
                raise Conflict(f"was not rejected: it is {at.loaded.proposal.status}", field="proposal_id")
            if any(verdict.action == "lift" for verdict in at.loaded.proposal.verdicts):
                raise Conflict("was lifted before", field="proposal_id")
            await at.decide("lift", note=given.note)
            return await self._read(at.tx, proposal_id)

    @retry_on_pack_change
    async def override(
        self,
        asker: Asker,
        proposal_id: str,
        *,
        tier: Tier | None = None,
        priority: float | None = None,
        note: str | None = None,
        version: int | None = None,
    ) -> Proposal:
        """Change where it would go or how much it would count; the stricter approval of both tiers holds."""
        given = build(_Remark, {"tier": tier, "priority": priority, "note": note})
        if given.tier is None and given.priority is None:
            raise InvalidInput("give a tier, a priority, or both", field="tier")
        async with self._open(asker, proposal_id, version) as at:
            if at.became is not None:
                return at.became
            if given.tier == "working" and at.loaded.proposal.candidate.scope.session_id is None:
                raise InvalidInput("the working tier needs a session, which this fact has not", field="tier")
            await at.decide("override", tier=given.tier, priority=given.priority, note=given.note)
            return await self._read(at.tx, proposal_id)

    @retry_on_pack_change
    async def assign(
        self, asker: Asker, proposal_id: str, *, to: str | None = None, version: int | None = None
    ) -> Proposal:
        """Put a name on it: one's own, or another's."""
        whom = checks.name(to, "to") if to is not None else None
        async with self._open(asker, proposal_id, version) as at:
            if at.became is not None:
                return at.became
            await at.decide("assign", assignee=whom or at.principal.id)
            return await self._read(at.tx, proposal_id)

    @retry_on_pack_change
    async def release(self, asker: Asker, proposal_id: str, *, version: int | None = None) -> Proposal:
        """Take the name off it, or bring it back from being held."""
        async with self._open(asker, proposal_id, version) as at:
            if at.became is not None:
                return at.became
            await at.decide("release")
            return await self._read(at.tx, proposal_id)

    @asynccontextmanager
    async def _open(
        self, asker: Asker, proposal_id: str, version: int | None, *, ended: bool = False
    ) -> AsyncGenerator["_Open"]:
        """A proposal, held for one reviewer to act on; one that had its final verdict only if told.

        One made under another pack passes the gates again first. Where it no longer stands there is nothing to act
        on: `became` is what is to be answered.
        """
        checks.name(proposal_id, "proposal_id")
        if version is not None:
            checks.whole_number(version, "version", least=0, most=2**31)
        principal = await self._context.authorise(asker, "review")
        pack = await self._context.pack_for(asker)
        async with (
            self._context.reported(principal, "review", proposal_id),
            self._context.write_once(principal.tenant_id, "writer", under=pack) as tx,
        ):
            loaded = await review.load(tx, self._context.vault, proposal_id, locked=True)
            if version is not None and version != loaded.proposal.version:
                raise VersionConflict(f"it is at version {loaded.proposal.version} now: read it again", field="version")
            withdrawn: str | None = None
            if not ended:
                review.check_undecided(loaded)
                again = await regate(self._context, tx, loaded, pack)
                withdrawn = None if again.stands else again.replaced_by or proposal_id
            became = await self._read(tx, withdrawn) if withdrawn is not None else None
            yield _Open(tx, principal, loaded, pack, became)

    async def _read(self, tx: Transaction, proposal_id: str) -> Proposal:
        return (await review.load(tx, self._context.vault, proposal_id)).proposal


@dataclass(frozen=True)
class _Open:
    """A proposal in the hands of a reviewer."""

    tx: Transaction
    principal: Principal
    loaded: review.Loaded
    pack: Pack
    became: Proposal | None = None

    async def decide(self, action: Action, **what: Any) -> None:
        """Write the reviewer's verdict."""
        assert self.became is None, "it was withdrawn: there is nothing to decide"
        await review.decide(self.tx, self.loaded, action, self.principal, self.pack, **what)
