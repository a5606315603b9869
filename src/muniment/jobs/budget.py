"""JOB-10: what waits in the queue for room comes back when there is room."""

from muniment.fabric.connect import Opened
from muniment.fabric.desk import decided_again
from muniment.governance import budgets
from muniment.jobs.job import Done
from muniment.pipeline import review

# Looked at, so that a class without room keeps no other waiting; and released in one transaction.
MOST, AT_ONCE = 5000, 200


@decided_again
async def run(opened: Opened, tenant_id: str) -> Done:
    """Release what was held for want of room, the one due first first, as far as there is room now."""
    desk = opened.desk
    pack = await desk.current_pack(tenant_id)
    async with desk.transaction(tenant_id, "writer", under=pack) as tx:
        rows = await tx.rows("jobs.held_for_budget", count=MOST)
        if not rows:
            return Done()
        room = await budgets.room(tx, pack)
        fits = [row["proposal_id"] for row in rows if room.take(row["tier"], row["class"], row["size"]) is None][
            :AT_ONCE
        ]
        await review.lock(tx, fits)
        loaded = [
            one
            for one in await review.load_many(tx, desk.vault, fits, skip_broken=True)
            if one.proposal.status == "held"
        ]
        for one in loaded:
            await review.decide(tx, one, "release", None, pack, held=True)
    return Done({"released": len(loaded)}, more=len(loaded) == AT_ONCE)
