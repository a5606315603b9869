"""Approval of many proposals at once: those that are ordinary, and those that the reviewer acknowledges (REV-13)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from muniment.context import FabricContext, retry_on_pack_change
from muniment.errors import Denied, LeftOut, MunimentError, NotFound, RequestRepeated, SealBroken
from muniment.model.context import Principal
from muniment.model.decision import Decision
from muniment.model.proposal import Outcome, Proposal
from muniment.pack import Pack
from muniment.promotion.promote import Contradicts, approve_one, four_eyes, promote_many, regate
from muniment.review import store as review
from muniment.review.rules import is_ordinary, reason_words


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
        # This may be the second attempt, under another pack.
        self.errors.clear()
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
            if await regate(self.context, tx, loaded, pack) is not None:
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
