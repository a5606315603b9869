"""Approval of many proposals at once: those that are ordinary, and those that the reviewer acknowledges (REV-13)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from muniment.context import FabricContext, retry_on_pack_change
from muniment.errors import (
    Denied,
    InvalidInput,
    LeftOut,
    MunimentError,
    NotFound,
    RequestRepeated,
    SealBroken,
    StorageUnavailable,
)
from muniment.model.context import Principal
from muniment.model.decision import Decision
from muniment.model.proposal import Outcome, Proposal
from muniment.pack import Pack
from muniment.promotion.promote import Contradicts, approve_item, four_eyes, promote_many, regate
from muniment.review import store as review
from muniment.review.item_store import Item, end_as_duplicates, items_of, load_item, lock_items, may_be_cut
from muniment.review.rules import in_words, is_ordinary, may_approve, reason_words


@dataclass(frozen=True)
class Wanted:
    """What is to be approved: the proposals, with why some are approved that are not ordinary, and what was read."""

    proposal_ids: Sequence[str]
    note: str | None
    acknowledge: Mapping[str, str]
    versions: Mapping[str, int]


async def approve_many(context: FabricContext, principal: Principal, request: Wanted, batch_size: int) -> list[Outcome]:
    """Approve the proposals that are ordinary or acknowledged, in batches; returns the outcome of each, in order.

    Raises `InvalidInput` where the reason of an acknowledgement is not in words.
    """
    for proposal_id, reason in request.acknowledge.items():
        if not in_words(reason):
            raise InvalidInput("is no reason: say why in words", field=f"acknowledge.{proposal_id}")
    outcomes: dict[str, Outcome] = {}
    ended: set[str] = set()
    wanted = list(dict.fromkeys(request.proposal_ids))
    for first in range(0, len(wanted), batch_size):
        batch = _Batch(context, principal, request, wanted[first : first + batch_size], ended)
        try:
            done = await batch.approve()
        except RequestRepeated:
            raise
        except MunimentError as error:
            # What was committed before stays, and is reported.
            # Once the database is away, no other batch is tried.
            left = wanted[first:] if isinstance(error, StorageUnavailable) else batch.proposal_ids
            outcomes |= {one: _outcome(one, None, error) for one in left}
            if isinstance(error, StorageUnavailable):
                break
            continue
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
    wanted: Wanted
    proposal_ids: Sequence[str]
    # Proposals of this and of earlier batches that were decided with one that says the same.
    ended: set[str]
    errors: dict[str, MunimentError] = field(default_factory=dict[str, MunimentError])

    async def approve(self) -> list[Outcome]:
        alone = await self._together()
        for item in alone:
            try:
                for name in self._wanted_of(item):
                    while name not in self.ended and not await self._alone(name):
                        pass
            except MunimentError as error:
                self._fail(item, error)
        for proposal_id, error in self.errors.items():
            if isinstance(error, Denied):
                await self.context.report(self.principal, "review", error, proposal_id)
        async with self.context.transaction(self.principal.tenant_id, "auditor") as tx:
            after = await review.load_many(tx, self.context.vault, self.proposal_ids, skip_broken=True)
        now = {one.proposal.proposal_id: one.proposal for one in after}
        return [_outcome(one, now.get(one), self.errors.get(one)) for one in self.proposal_ids]

    @retry_on_pack_change
    async def _together(self) -> list[Item]:
        """Promote what needs no check of its own; returns the items that are left to approve alone.

        Of proposals that say the same one is approved, the others end with it (REV-11).
        """
        context, tenant_id = self.context, self.principal.tenant_id
        # This may be the second attempt, under another pack.
        self.errors.clear()
        pack = await context.pack_in_force(tenant_id)
        async with context.write_once(tenant_id, "writer", under=pack) as tx:
            there = await lock_items(tx, self.proposal_ids)
            # Members that the limit cut off are found when an item is loaded alone.
            cut = may_be_cut(self.proposal_ids, there)
            loaded = await review.load_many(tx, context.vault, there, skip_broken=True)
            found = {one.proposal.proposal_id for one in loaded}
            for proposal_id in self.proposal_ids:
                if proposal_id in there and proposal_id not in found:
                    self.errors[proposal_id] = SealBroken("its content does not open: it was changed, moved or erased")
            taken: dict[str, Item] = {}
            firsts: list[review.Loaded] = []
            for item in items_of(self.proposal_ids, loaded):
                if item.asked.proposal.proposal_id in self.ended:
                    continue
                try:
                    review.check_undecided(item.asked)
                    self._check_versions(item)
                    item = self._narrowed(item)
                    first = item.to_promote(self.principal)[0]
                    # What was proposed under another pack passes the gates again first, alone.
                    if first.proposal.pack == pack.ref and not cut:
                        four_eyes(self.principal, first, pack)
                        self._check_ordinary(item, pack)
                except MunimentError as error:
                    self._fail(item, error)
                else:
                    taken[first.proposal.proposal_id] = item
                    firsts.append(first)
            # INVARIANT: all locks come before the tenant's clock.
            together = () if cut else firsts
            same = list(takewhile(lambda one: one.proposal.pack == pack.ref and one.proposal.audits is None, together))
            done: dict[str, str] = {}
            if same:
                reasons = {name: why for name in taken if (why := self.wanted.acknowledge.get(name)) is not None}
                done = await promote_many(context, tx, same, pack, self.principal, self.wanted.note, reasons)
            ended = [(one, name) for one in firsts if (name := one.proposal.proposal_id) in done]
            repeats = {done[name]: taken[name].beside(one) for one, name in ended}
            await end_as_duplicates(tx, repeats, review.signature(self.principal), pack)
        self.ended |= {one.proposal.proposal_id for members in repeats.values() for one in members}
        return [item for name, item in taken.items() if name not in done]

    @retry_on_pack_change
    async def _alone(self, proposal_id: str) -> bool:
        """Approve the item of a proposal in a transaction of its own, after checking it again.

        Returns False if another proposal of it was withdrawn by the gates instead, so that it has to be tried again.
        """
        pack = await self.context.pack_in_force(self.principal.tenant_id)
        async with self.context.write_once(self.principal.tenant_id, "writer", under=pack) as tx:
            asked = await load_item(tx, self.context.vault, proposal_id)
            review.check_undecided(asked.asked)
            self._check_versions(asked)
            item = self._narrowed(asked)
            first = item.to_promote(self.principal)[0]
            if await regate(self.context, tx, first, pack) is not None:
                return first is asked.asked
            self._check_ordinary(item, pack)
            reason = self.wanted.acknowledge.get(first.proposal.proposal_id)
            what = {"note": self.wanted.note, "reason": reason}
            try:
                await approve_item(self.context, tx, item, pack, self.principal, **what, uncontradicted=reason is None)
            except Contradicts:
                raise _NotOrdinary(self._is_ordinary(item, pack, contradicts=True)) from None
        self.ended |= {one.proposal.proposal_id for one in item.members}
        return True

    def _narrowed(self, item: Item) -> Item:
        """Narrow an item to the member that is promoted because it was acknowledged, if one was; the rest end with it.

        An acknowledgement is for one proposal: what says the same may be told in other words, or be dangerous itself.
        """
        both = (item.asked, *item.others)
        found = [one for one in both if one.proposal.proposal_id in self.wanted.acknowledge]
        if not found:
            return item
        others = (one for one in found if self._may_approve(one))
        first = next(others, found[0])
        return item.asking(first, frozenset({first.proposal.proposal_id}))

    def _may_approve(self, one: review.Loaded) -> bool:
        return may_approve(self.principal, one.proposal.candidate, one.editors, strict=True).passed

    def _is_ordinary(self, item: Item, pack: Pack, *, contradicts: bool = False) -> Decision:
        """Decide whether each proposal of an item is ordinary, with every reason against any of them."""
        found = [
            is_ordinary(one.proposal, self.principal.id, pack, contradicts=contradicts and one is item.asked)
            for one in (item.asked, *item.others)
        ]
        against = dict.fromkeys(reason for one in found if not one.passed for reason in one.reasons)
        return Decision(outcome="refuse", reasons=tuple(against)) if against else found[0]

    def _check_ordinary(self, item: Item, pack: Pack) -> None:
        """Raise `LeftOut` for an item that is neither ordinary nor acknowledged."""
        if item.only is None and not (decision := self._is_ordinary(item, pack)).passed:
            raise _NotOrdinary(decision)

    def _check_versions(self, item: Item) -> None:
        """Raise `VersionConflict` if one of an item's proposals is not at the version that was read."""
        for one in (item.asked, *item.others):
            review.check_version(one.proposal, self.wanted.versions.get(one.proposal.proposal_id))

    def _fail(self, item: Item, error: MunimentError) -> None:
        """Record the error of an item for each of its proposals that were to be approved."""
        self.errors |= dict.fromkeys(self._wanted_of(item), error)

    def _wanted_of(self, item: Item) -> list[str]:
        """Return those of an item's proposals that are to be approved."""
        names = (one.proposal.proposal_id for one in (item.asked, *item.others))
        return [name for name in names if name in self.proposal_ids]


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
