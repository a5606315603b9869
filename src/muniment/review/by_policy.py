"""Policy approves: proposals that wait and need no person are promoted without one (REV-3)."""

from collections.abc import Sequence
from contextlib import suppress

from muniment.context import FabricContext, retry_on_pack_change
from muniment.errors import NotPromotable
from muniment.promotion.promote import promote_many, promote_proposal, regate
from muniment.review import store as review

# Proposals promoted in one transaction.
AT_ONCE = 200
# Proposals that one pass looks at.
MOST = 10_000
# The cursor up to which policy has no proposal left to promote.
_CURSOR = "promote"


async def promote_by_policy(context: FabricContext, tenant_id: str) -> tuple[str, ...]:
    """Promote the proposals that need no person; returns the ids of the memories.

    Proposals without neighbours are promoted together, the others one by one.
    """
    promoted: list[str] = []
    async with context.transaction(tenant_id, "auditor") as tx:
        eligible, settled = await review.auto_promotable(tx, MOST)
    if settled is not None:
        async with context.transaction(tenant_id, "writer") as tx:
            tx.defer("cursor.advance", cursor=_CURSOR, seq=settled[0], place=settled[1])
    for first in range(0, len(eligible), AT_ONCE):
        part = eligible[first : first + AT_ONCE]
        done = await _promote_together(context, tenant_id, part)
        promoted += done.values()
        for proposal_id in part:
            if proposal_id not in done:
                with suppress(NotPromotable):  # It stays pending, and stops no other.
                    if (memory_id := await promote_if_eligible(context, tenant_id, proposal_id)) is not None:
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
async def promote_if_eligible(context: FabricContext, tenant_id: str, proposal_id: str) -> str | None:
    """Promote one proposal if policy may; returns the memory's id, None if it waits. Raises `NotPromotable`."""
    pack = await context.pack_in_force(tenant_id)
    async with context.transaction(tenant_id, "writer", under=pack) as tx:
        loaded = await review.load(tx, context.vault, proposal_id, locked=True)
        if loaded.proposal.status != "pending" or not loaded.proposal.auto_promote_eligible:
            return None
        if await regate(context, tx, loaded, pack) is not None:
            return None
        return await promote_proposal(context, tx, loaded, pack, None)
