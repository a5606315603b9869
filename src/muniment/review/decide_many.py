"""Rejecting or assigning many proposals at once, each in a transaction of its own; some have to be decided alone."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

from muniment.candidates.store import remember_rejection
from muniment.context import FabricContext, retry_on_pack_change
from muniment.errors import Conflict, LeftOut, MunimentError, RequestRepeated, StorageUnavailable
from muniment.model.context import Principal
from muniment.model.decision import Decision
from muniment.model.proposal import Outcome, Proposal
from muniment.promotion.retract import retract_memory
from muniment.review import acting
from muniment.review import store as review
from muniment.review.acting import ProposalAction
from muniment.review.rules import may_assign_together, may_reject_together, reason_words

Check = Callable[[Proposal], None]
# Acts on one proposal; returns it, and which others were decided with it.
Act = Callable[[ProposalAction], Awaitable[tuple[Proposal, Sequence[str]]]]


class _DecideAlone(LeftOut):
    """Raised for a proposal that is not decided together with others, with the reasons."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(f"left out: {reason_words(decision)}; decide it by itself", field="proposal_id")
        self.decision = decision


def _left_out(decision: Decision) -> None:
    if not decision.passed:
        raise _DecideAlone(decision)


async def reject_many(
    context: FabricContext,
    reviewer: Principal,
    proposal_ids: Sequence[str],
    versions: Mapping[str, int],
    *,
    reason: str,
    note: str | None,
) -> list[Outcome]:
    """Reject proposals for one reason, each with those that say the same; returns the outcome of each, in order."""

    @retry_on_pack_change
    async def act(action: ProposalAction) -> tuple[Proposal, Sequence[str]]:
        def check(proposal: Proposal) -> None:
            # Those that say the same are decided with it: none of them may have changed since it was seen.
            review.check_version(proposal, versions.get(proposal.proposal_id))
            _left_out(may_reject_together(proposal, reviewer.id))

        return await reject_one(context, reviewer, action, reason=reason, note=note, check=check)

    return await _each(proposal_ids, versions, act)


async def assign_many(
    context: FabricContext,
    reviewer: Principal,
    proposal_ids: Sequence[str],
    versions: Mapping[str, int],
    *,
    to: str,
) -> list[Outcome]:
    """Assign proposals that nobody has to a person; returns the outcome of each, in order."""

    @retry_on_pack_change
    async def act(action: ProposalAction) -> tuple[Proposal, Sequence[str]]:
        def check(proposal: Proposal) -> None:
            _left_out(may_assign_together(proposal, to))

        return await acting.decide(context, reviewer, action, "assign", check=check, assignee=to), ()

    return await _each(proposal_ids, versions, act)


async def reject_one(
    context: FabricContext,
    reviewer: Principal,
    action: ProposalAction,
    *,
    reason: str,
    note: str | None,
    check: Check = lambda _: None,
) -> tuple[Proposal, Sequence[str]]:
    """Reject a proposal with those that say the same, after a check of each; returns it, and which others those were.

    A sample that is rejected takes the memory it was drawn from with it, as `wrong`.
    """
    async with acting.locked(context, reviewer, action) as locked:
        if locked.withdrawn is not None:
            return locked.withdrawn, ()
        members = (locked.loaded, *locked.item.others)
        for one in members:
            check(one.proposal)
        proposal = locked.loaded.proposal
        if proposal.audits is not None:
            with suppress(Conflict):  # It was already retracted.
                await retract_memory(
                    context, locked.tx, proposal.audits, by=reviewer.id, reason="wrong", pack=locked.pack
                )
        for one in members:
            await review.decide(locked.tx, one, "reject", reviewer, locked.pack, reason=reason, note=note)
        # To refuse a request to forget something says nothing against what it is about.
        if proposal.action != "retract":
            comparer = await context.comparer(locked.tx, locked.pack)
            await remember_rejection(locked.tx, context.vault, action.proposal_id, proposal.candidate, comparer)
        others = [one.proposal.proposal_id for one in locked.item.others]
        return await acting.read_proposal(context, locked.tx, action.proposal_id), others


async def _each(proposal_ids: Sequence[str], versions: Mapping[str, int], act: Act) -> list[Outcome]:
    """Act on each proposal; an error stops no other. One that was decided with another counts as done.

    If the database goes away, the rest is not tried: each of the rest has that error. Raises `StorageUnavailable` if it
    is away from the first.
    """
    outcomes: dict[str, Outcome] = {}
    wanted = list(dict.fromkeys(proposal_ids))
    for proposal_id in wanted:
        if proposal_id in outcomes:
            continue
        try:
            done, others = await act(ProposalAction(proposal_id=proposal_id, version=versions.get(proposal_id)))
        except RequestRepeated:
            raise
        except StorageUnavailable as error:
            if not outcomes:
                raise
            # What was done before stays, and is returned; the others are not tried.
            for name in wanted:
                outcomes.setdefault(name, Outcome(proposal_id=name, error=error.code, message=error.message))
            break
        except MunimentError as error:
            left_out = error.decision.reasons if isinstance(error, _DecideAlone) else ()
            outcomes[proposal_id] = Outcome(
                proposal_id=proposal_id, error=error.code, message=error.message, left_out=left_out
            )
            continue
        for name in (proposal_id, *others):
            outcomes[name] = Outcome(proposal_id=name, status=done.status)
    return [outcomes[proposal_id] for proposal_id in wanted]
