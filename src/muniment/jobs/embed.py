"""JOB-11: after a change of embedder, or an upgrade, memories get the words and vectors that they lack."""

from muniment.fabric import upkeep
from muniment.fabric.connect import Opened
from muniment.jobs.job import Done


async def run(opened: Opened, tenant_id: str) -> Done:
    """Until the fabric's own embedder is complete in the tenant; recall goes on with the old vectors meanwhile."""
    desk = opened.desk
    async with desk.transaction(tenant_id, "recall") as tx:
        known = await desk.embedders.look(tx)
    if known.coming is None and known.complete:
        return Done()
    done = await upkeep.reindexed(desk, tenant_id)
    return Done({"memories": done.memories})
