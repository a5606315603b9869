"""JOB-11: index memories that lack words or vectors; make the vector index and the postings of a large tenant."""

from muniment.database import vector_index
from muniment.job import JobResult
from muniment.opening import Opened
from muniment.promotion import postings
from muniment.promotion.reindex import reindexed


async def run(opened: Opened, tenant_id: str) -> JobResult:
    """Index until the fabric's own embedder is complete in the tenant; recall uses the old vectors meanwhile.

    Then make the vector index and the postings of a tenant that has become large, or drop those of one that is no
    longer.
    """
    context, memories = opened.context, 0
    async with context.transaction(tenant_id, "recall") as tx:
        known = await context.embedders.read(tx)
    if known.next_embedder is not None or not known.complete:
        memories = (await reindexed(context, tenant_id)).memories
    async with context.transaction(tenant_id, "recall") as tx:
        step = await vector_index.next_step(tx)
    indexes = int(step is not None and await vector_index.take(opened.address, tenant_id, step))
    posted = await postings.update(context, opened.address, tenant_id)
    return JobResult({"memories": memories, "indexes": indexes, "posted": posted})
