"""JOB-11: after a change of embedder, or an upgrade, index the memories that lack words or vectors."""

from muniment.job import JobResult
from muniment.opening import Opened
from muniment.promotion.reindex import reindexed


async def run(opened: Opened, tenant_id: str) -> JobResult:
    """Index until the fabric's own embedder is complete in the tenant; recall uses the old vectors meanwhile."""
    context = opened.context
    async with context.transaction(tenant_id, "recall") as tx:
        known = await context.embedders.read(tx)
    if known.next_embedder is None and known.complete:
        return JobResult()
    done = await reindexed(context, tenant_id)
    return JobResult({"memories": done.memories})
