"""JOB-11: after a change of embedder, or an upgrade, memories get the words and vectors that they lack."""

from muniment.job import Done
from muniment.opening import Opened
from muniment.promotion import reindex as upkeep


async def run(opened: Opened, tenant_id: str) -> Done:
    """Until the fabric's own embedder is complete in the tenant; recall goes on with the old vectors meanwhile."""
    context = opened.context
    async with context.transaction(tenant_id, "recall") as tx:
        known = await context.embedders.look(tx)
    if known.coming is None and known.complete:
        return Done()
    done = await upkeep.reindexed(context, tenant_id)
    return Done({"memories": done.memories})
