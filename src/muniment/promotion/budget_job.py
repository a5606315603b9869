"""JOB-10: release proposals that were held for want of room in a budget, when there is room again."""

from muniment.context import retry_on_pack_change
from muniment.job import JobResult
from muniment.opening import Opened
from muniment.promotion.store import room as read_room
from muniment.review import store as review

# Proposals read, so that a class without room blocks no other; and released in one transaction.
MOST, AT_ONCE = 5000, 200


@retry_on_pack_change
async def run(opened: Opened, tenant_id: str) -> JobResult:
    """Release as many held proposals as there is room for, in the order of their due time."""
    context = opened.context
    pack = await context.current_pack(tenant_id)
    async with context.transaction(tenant_id, "writer", under=pack) as tx:
        rows = await tx.rows("jobs.held_for_budget", count=MOST)
        if not rows:
            return JobResult()
        room = await read_room(tx, pack)
        fits = [row["proposal_id"] for row in rows if room.take(row["tier"], row["class"], row["size"]) is None][
            :AT_ONCE
        ]
        await review.lock(tx, fits)
        loaded = [
            one
            for one in await review.load_many(tx, context.vault, fits, skip_broken=True)
            if one.proposal.status == "held"
        ]
        for one in loaded:
            await review.decide(tx, one, "release", None, pack, locked=True)
    return JobResult({"released": len(loaded)}, more=len(loaded) == AT_ONCE)
