"""One reviewer's action on one proposal: it is locked with those that say the same, and passes the gates again."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from muniment.context import FabricContext
from muniment.database.storage import Transaction
from muniment.model.context import Principal
from muniment.model.fields import Name
from muniment.model.inputs import VerbInput, Whole
from muniment.model.proposal import Action, Proposal
from muniment.pack import Pack
from muniment.promotion.promote import regate
from muniment.review import store as review
from muniment.review.item_store import Item, load_item


class ProposalId(VerbInput):
    """A proposal."""

    proposal_id: Name


class ProposalAction(ProposalId):
    """An action on a proposal; with `version`, only if it is still at that version."""

    version: Annotated[int, Whole(0, 2**31)] | None = Field(
        None,
        description="the version that was read; if it has changed since, nothing is done (412). `If-Match` says the "
        "same.",
    )


@dataclass(frozen=True)
class LockedProposal:
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
async def locked(
    context: FabricContext, reviewer: Principal, request: ProposalAction, *, ended: bool = False, regated: bool = True
) -> AsyncGenerator[LockedProposal]:
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
        review.check_version(loaded.proposal, version)
        withdrawn: Proposal | None = None
        if not ended:
            review.check_undecided(loaded)
            if regated and (instead := await regate(context, tx, loaded, pack)) is not None:
                withdrawn = await read_proposal(context, tx, instead)
        yield LockedProposal(tx, item, pack, withdrawn)


async def decide(
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
    async with locked(context, reviewer, request, ended=ended) as one:
        if one.withdrawn is not None:
            return one.withdrawn
        check(one.loaded.proposal)
        await review.decide(one.tx, one.loaded, action, reviewer, one.pack, **verdict)
        return await read_proposal(context, one.tx, request.proposal_id)


async def read_proposal(context: FabricContext, tx: Transaction, proposal_id: str) -> Proposal:
    """Read a proposal as it is now; raises `NotFound`."""
    return (await review.load(tx, context.vault, proposal_id)).proposal
