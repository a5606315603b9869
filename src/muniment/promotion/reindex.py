"""Reindexing: rebuild the durable tier's index from its log, and add the words and vectors that memories lack."""

from collections.abc import Callable

from muniment.candidates.neighbours import TextComparer
from muniment.context import FabricContext
from muniment.contradictions.rules import Comparison
from muniment.database.address import Address
from muniment.database.storage import as_owner
from muniment.model.promoted import Reindexed
from muniment.promotion.indexing import Rebuilt, index_missing, rebuild_durable

Progress = Callable[[int], None]


async def rebuilt(context: FabricContext, address: Address, tenant_id: str) -> Rebuilt:
    """Rebuild the index of a tenant's durable tier; readers go on meanwhile, writers wait."""
    async with as_owner(address, tenant_id, context.now()) as tx:
        if await context.vault.tenant(tx) is None:
            return Rebuilt(0)
        return await rebuild_durable(tx, context.vault, _comparer(context))


async def reindexed(context: FabricContext, tenant_id: str, on_progress: Progress | None = None) -> Reindexed:
    """Index every memory of a tenant that lacks words or a vector; then the fabric's embedder is complete.

    Safe to run twice, at once, or to be killed: each part is one transaction.
    """
    done, after = 0, ""
    while True:
        async with context.transaction(tenant_id, "writer") as tx:
            if await context.vault.tenant(tx) is None:
                break
            await context.embedders.register(tx)
            count, last = await index_missing(tx, context.vault, _comparer(context), after)
            if last is None:
                await tx.do("indexing.complete_embedder", embedder=context.embedders.own.name)
                break
        done, after = done + count, last
        if on_progress is not None:
            on_progress(done)
    async with context.transaction(tenant_id, "recall") as tx:
        return Reindexed(done, (await context.embedders.read(tx)).in_use.name)


async def tenants(context: FabricContext) -> list[str]:
    """List all tenants."""
    # The list of tenants has no tenant of its own: any name opens the transaction.
    async with context.transaction("*", "jobs") as tx:
        return [row["tenant_id"] for row in await tx.rows("tenant.every")]


def _comparer(context: FabricContext) -> TextComparer:
    """Return the fabric's own embedder as a comparer; its thresholds are not used here."""
    own = context.embedders.own
    thresholds = context.packs.default.memory_layer.contradiction.thresholds_for(own.name)
    return TextComparer(own, Comparison(thresholds, context.judge))
