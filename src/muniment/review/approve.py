"""Approval by a person, of one proposal or of those of many that are ordinary (REV-13), and by policy (REV-3)."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from muniment.archives import store as archives
from muniment.candidates import store as candidates
from muniment.candidates.intake import Intake
from muniment.candidates.rules import Draft, reset_candidate, tier_for
from muniment.context import FabricContext, retry_on_pack_change
from muniment.database import cursors
from muniment.database.storage import Transaction
from muniment.errors import (
    Conflict,
    Denied,
    LeftOut,
    MunimentError,
    NotFound,
    NotPromotable,
    RequestRepeated,
    SealBroken,
)
from muniment.model.candidate import Candidate
from muniment.model.context import Principal
from muniment.model.decision import Decision
from muniment.model.proposal import Outcome, Proposal
from muniment.pack import Pack
from muniment.promotion.promote import Contradicts, capture_of, four_eyes, promote_many, promote_proposal
from muniment.promotion.retraction_store import lock_live
from muniment.review import store as review
from muniment.review.rules import is_ordinary, reason_words, reasons_for_a_person

# ---- the gates again: a proposal made under another pack passes them before any verdict (PAC-9) ----

# Reasons for a person that depend on other memories and proposals, not on the pack.
_NOT_BY_PACK = frozenset({"contradiction", "returned", "suspended"})
_CHANGED = "changed_by_pack"
_ARCHIVED = "capture_archived"


@dataclass(frozen=True)
class Regated:
    """Whether a proposal stands under the pack in force, or was withdrawn.

    A fact that the new pack changes (another mask, label, tier or trust) is withdrawn and returns as a new proposal,
    `replaced_by`, for a person to review.
    """

    stands: bool
    replaced_by: str | None = None


async def regate(context: FabricContext, tx: Transaction, loaded: review.Loaded, pack: Pack) -> Regated:
    """Pass an open proposal through the gates under the pack in force, if it was made under another one.

    INVARIANT: the proposal is locked and undecided, and the tenant's clock was not taken yet.
    """
    proposal = loaded.proposal
    # A sample stays as it was promoted: its approval promotes nothing.
    if proposal.pack == pack.ref or proposal.audits is not None:
        return Regated(stands=True)
    await archives.block_archiving(tx)
    draft, in_database = await _draft(context, tx, loaded, pack)
    decision = await (await Intake.of(context, tx, pack, [draft])).decide(tx)
    if decision.refused:
        _, gate, refusal = decision.refused[0]
        await _withdraw(tx, loaded, pack, f"{gate}.{refusal.reasons[0].code}")
        return Regated(stands=False)
    ((passed, _),) = decision.passed
    if _standing(passed.candidate, pack) == _stood(loaded):
        return Regated(stands=True)
    if not in_database:
        # No new candidate can rest on an archived capture; the fact can be proposed again.
        await _withdraw(tx, loaded, pack, _ARCHIVED)
        return Regated(stands=False)
    await _withdraw(tx, loaded, pack, _CHANGED)
    (entered,), _ = await decision.enqueue(tx)
    return Regated(stands=False, replaced_by=entered)


async def _draft(context: FabricContext, tx: Transaction, loaded: review.Loaded, pack: Pack) -> tuple[Draft, bool]:
    """Draft the proposal's candidate anew; returns the draft, and whether its capture is in the database."""
    try:
        capture, in_database = await capture_of(context, tx, loaded, to_edit=True), True
    except NotFound:
        capture, in_database = await capture_of(context, tx, loaded), False
    (candidate_id,) = candidates.new_ids(tx, 1)
    ordinals = await candidates.next_ordinals(tx, [capture.capture_id])
    again = reset_candidate(loaded.proposal.candidate, candidate_id, capture, pack)
    prior = tuple(loaded.row["prior_editors"] or ())
    ordinal = ordinals.get(capture.capture_id, 0)
    return Draft(again, capture, ordinal, prior, loaded.proposal.proposal_id), in_database


def _standing(candidate: Candidate, pack: Pack) -> dict[str, Any]:
    """Return what a reviewer judges of a fact, as this pack derives it."""
    tier = tier_for(candidate, pack)
    reasons = reasons_for_a_person(candidate, tier=tier, contradicts=False, pack=pack)
    return _content(candidate) | {
        "tier": tier,
        "sensitive": pack.is_sensitive(candidate.classification),
        "risk": pack.policy_for(candidate.write_class).risk,
        "reasons": set(reasons) - _NOT_BY_PACK,
    }


def _stood(loaded: review.Loaded) -> dict[str, Any]:
    """Return the same as the proposal's own pack derived it."""
    return _content(loaded.proposal.candidate) | {
        "tier": loaded.proposal.tier_derived,
        "sensitive": loaded.row["sensitive"],
        "risk": loaded.proposal.risk,
        "reasons": set(loaded.row["human_reasons"]) - _NOT_BY_PACK,
    }


def _content(candidate: Candidate) -> dict[str, Any]:
    names = {"text", "value", "evidence_refs", "classification", "trust"}
    return {name: getattr(candidate, name) for name in names} | {"consent": candidate.consent_id is not None}


async def _withdraw(tx: Transaction, loaded: review.Loaded, pack: Pack, reason: str) -> None:
    await review.decide(tx, loaded, "withdraw", None, pack, reason=reason, cause="pack")


# ---- a person approves ----


async def approve_one(
    context: FabricContext,
    tx: Transaction,
    loaded: review.Loaded,
    pack: Pack,
    principal: Principal,
    *,
    note: str | None = None,
    reason: str | None = None,
    supersedes: str | None = None,
    uncontradicted: bool = False,
) -> None:
    """Approve a proposal that is locked and undecided; a sample is confirmed as a duplicate of its memory.

    Raises `SelfApproval`, `Conflict`, `NotPromotable`; with `uncontradicted` also `Contradicts`.
    """
    four_eyes(principal, loaded, pack)
    if (audits := loaded.proposal.audits) is not None:
        if not await lock_live(tx, audits, expired_too=True):
            raise Conflict("the memory was retracted meanwhile: reject the sample", field="proposal_id")
        await review.decide(tx, loaded, "duplicate", principal, pack, reason=reason, note=note, memory_id=audits)
    else:
        what = {"note": note, "reason": reason, "supersedes": supersedes}
        await promote_proposal(context, tx, loaded, pack, principal, **what, uncontradicted=uncontradicted)


async def approve_many(
    context: FabricContext,
    principal: Principal,
    proposal_ids: Sequence[str],
    note: str | None,
    acknowledge: Mapping[str, str],
    batch_size: int,
) -> list[Outcome]:
    """Approve the proposals that are ordinary or acknowledged, in batches; returns the outcome of each, in order."""
    outcomes: dict[str, Outcome] = {}
    wanted = list(dict.fromkeys(proposal_ids))
    for first in range(0, len(wanted), batch_size):
        batch = _Batch(context, principal, wanted[first : first + batch_size], note, acknowledge)
        try:
            done = await batch.approve()
        except RequestRepeated:
            raise
        except MunimentError as error:
            # What was committed before stays, and is reported.
            done = [_outcome(proposal_id, None, error) for proposal_id in batch.proposal_ids]
        outcomes |= {one.proposal_id: one for one in done}
    return [outcomes[proposal_id] for proposal_id in wanted]


class _NotOrdinary(LeftOut):
    """Raised for a proposal that is neither ordinary nor acknowledged, with the reasons."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(
            f"left out: {reason_words(decision)}; approve it by itself, or acknowledge it", field="proposal_id"
        )
        self.decision = decision


@dataclass
class _Batch:
    """A batch of proposals: those without neighbours are approved in one transaction, then each of the others alone."""

    context: FabricContext
    principal: Principal
    proposal_ids: Sequence[str]
    note: str | None
    acknowledge: Mapping[str, str]
    errors: dict[str, MunimentError] = field(default_factory=dict[str, MunimentError])

    async def approve(self) -> list[Outcome]:
        alone = await self._together()
        for proposal_id in alone:
            try:
                await self._alone(proposal_id)
            except MunimentError as error:
                self.errors[proposal_id] = error
        for proposal_id, error in self.errors.items():
            if isinstance(error, Denied):
                await self.context.report(self.principal, "review", error, proposal_id)
        async with self.context.transaction(self.principal.tenant_id, "auditor") as tx:
            after = await review.load_many(tx, self.context.vault, self.proposal_ids, skip_broken=True)
        now = {one.proposal.proposal_id: one.proposal for one in after}
        return [_outcome(one, now.get(one), self.errors.get(one)) for one in self.proposal_ids]

    @retry_on_pack_change
    async def _together(self) -> list[str]:
        """Promote what needs no check of its own; returns the proposals that are left to approve alone."""
        context, tenant_id = self.context, self.principal.tenant_id
        pack = await context.pack_in_force(tenant_id)
        async with context.write_once(tenant_id, "writer", under=pack) as tx:
            there = await review.lock(tx, self.proposal_ids)
            loaded = await review.load_many(tx, context.vault, self.proposal_ids, skip_broken=True)
            found = {one.proposal.proposal_id for one in loaded}
            for proposal_id in there:
                if proposal_id not in found:
                    self.errors[proposal_id] = SealBroken("its content does not open: it was changed, moved or erased")
            taken: list[review.Loaded] = []
            for one in loaded:
                try:
                    review.check_undecided(one)
                    # What was proposed under another pack passes the gates again first, alone.
                    if one.proposal.pack == pack.ref:
                        four_eyes(self.principal, one, pack)
                        self._check_ordinary(one, pack)
                except MunimentError as error:
                    self.errors[one.proposal.proposal_id] = error
                else:
                    taken.append(one)
            # INVARIANT: all locks come before the tenant's clock.
            same = list(takewhile(lambda one: one.proposal.pack == pack.ref and one.proposal.audits is None, taken))
            done: dict[str, str] = {}
            if same:
                done = await promote_many(context, tx, same, pack, self.principal, self.note, self.acknowledge)
            return [one.proposal.proposal_id for one in taken if one.proposal.proposal_id not in done]

    @retry_on_pack_change
    async def _alone(self, proposal_id: str) -> None:
        """Approve one in a transaction of its own, after checking it again."""
        pack = await self.context.pack_in_force(self.principal.tenant_id)
        async with self.context.write_once(self.principal.tenant_id, "writer", under=pack) as tx:
            loaded = await review.load(tx, self.context.vault, proposal_id, to_decide=True)
            if not (await regate(self.context, tx, loaded, pack)).stands:
                return
            self._check_ordinary(loaded, pack)
            reason = self.acknowledge.get(proposal_id)
            try:
                await approve_one(
                    self.context,
                    tx,
                    loaded,
                    pack,
                    self.principal,
                    note=self.note,
                    reason=reason,
                    uncontradicted=reason is None,
                )
            except Contradicts:
                raise _NotOrdinary(is_ordinary(loaded.proposal, self.principal.id, pack, contradicts=True)) from None

    def _check_ordinary(self, loaded: review.Loaded, pack: Pack) -> None:
        """Raise `LeftOut` for what is neither ordinary nor acknowledged."""
        decision = is_ordinary(loaded.proposal, self.principal.id, pack)
        if not decision.passed and loaded.proposal.proposal_id not in self.acknowledge:
            raise _NotOrdinary(decision)


def _outcome(proposal_id: str, proposal: Proposal | None, error: MunimentError | None) -> Outcome:
    """Build the outcome of one proposal; an unknown one looks like another tenant's."""
    if proposal is None:
        error = error or NotFound("no such proposal", field="proposal_id")
    return Outcome(
        proposal_id=proposal_id,
        status=proposal.status if proposal is not None else None,
        memory_id=proposal.memory_id if proposal is not None else None,
        error=error.code if error is not None else None,
        message=error.message if error is not None else None,
        left_out=error.decision.reasons if isinstance(error, _NotOrdinary) else (),
    )


# ---- policy approves: proposals that need no person are promoted without one (REV-3) ----

# Proposals promoted in one transaction.
AT_ONCE = 200
# Proposals that one pass looks at.
MOST = 10_000
# The cursor before which no proposal is left to policy.
_CURSOR = "promote"


async def promote_by_policy(context: FabricContext, tenant_id: str) -> tuple[str, ...]:
    """Promote what policy may promote; returns the memories.

    Proposals without neighbours are promoted together, the others one by one.
    """
    promoted: list[str] = []
    async with context.transaction(tenant_id, "auditor") as tx:
        eligible, settled = await review.auto_promotable(tx, MOST, await review.suspended_classes(tx))
    if settled is not None:
        async with context.transaction(tenant_id, "writer") as tx:
            cursor = await cursors.lock(tx, _CURSOR)
            # Another process may have moved it further.
            if settled > (cursor["seq"], cursor["place"]):
                cursors.move(tx, _CURSOR, *settled)
    for first in range(0, len(eligible), AT_ONCE):
        part = eligible[first : first + AT_ONCE]
        done = await _promote_together(context, tenant_id, part)
        promoted += done.values()
        for proposal_id in part:
            if proposal_id not in done:
                with suppress(NotPromotable):  # It stays pending, and stops no other.
                    if (memory_id := await _promote_one(context, tenant_id, proposal_id)) is not None:
                        promoted.append(memory_id)
    return tuple(promoted)


@retry_on_pack_change
async def _promote_together(context: FabricContext, tenant_id: str, proposal_ids: Sequence[str]) -> dict[str, str]:
    pack = await context.pack_in_force(tenant_id)
    async with context.transaction(tenant_id, "writer", under=pack) as tx:
        await review.lock(tx, proposal_ids)
        loaded = await review.load_many(tx, context.vault, proposal_ids, skip_broken=True)
        pending = [one for one in loaded if one.proposal.status == "pending"]
        # What was proposed under another pack passes the gates again, alone.
        here = [one for one in pending if one.proposal.pack == pack.ref]
        return await promote_many(context, tx, here, pack, None, None) if here else {}


@retry_on_pack_change
async def _promote_one(context: FabricContext, tenant_id: str, proposal_id: str) -> str | None:
    pack = await context.pack_in_force(tenant_id)
    async with context.transaction(tenant_id, "writer", under=pack) as tx:
        loaded = await review.load(tx, context.vault, proposal_id, locked=True)
        if loaded.proposal.status != "pending" or not (await regate(context, tx, loaded, pack)).stands:
            return None
        return await promote_proposal(context, tx, loaded, pack, None)
