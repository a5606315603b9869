"""Upkeep of what memories are found by: the durable tier made again from its log, missing words and vectors added."""

from collections.abc import Callable
from dataclasses import dataclass

from muniment.fabric.desk import Desk
from muniment.pipeline.rebuilding import Rebuilt, index_missing, rebuild_durable
from muniment.pipeline.senses import Senses
from muniment.policy.contradiction import Comparison
from muniment.storage.address import Address
from muniment.storage.session import as_owner

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Reindexed:
    """How many memories got words or vectors that they lacked, and the embedder that is in use now."""

    memories: int
    embedder: str


async def rebuilt(desk: Desk, address: Address, tenant_id: str) -> Rebuilt:
    """The durable tier of one tenant; readers go on meanwhile, writers wait."""
    async with as_owner(address, tenant_id, desk.now()) as tx:
        if await desk.vault.tenant(tx) is None:
            return Rebuilt(0)
        return await rebuild_durable(tx, desk.vault, _senses(desk))


async def reindexed(desk: Desk, tenant_id: str, on_progress: Progress | None = None) -> Reindexed:
    """Give every memory of a tenant the words and the vector that it lacks; then the fabric's embedder is complete.

    Safe to run twice, at once, or to be killed: each part is one transaction.
    """
    done, after = 0, ""
    while True:
        async with desk.transaction(tenant_id, "writer") as tx:
            if await desk.vault.tenant(tx) is None:
                break
            await desk.embedders.enter(tx)
            count, last = await index_missing(tx, desk.vault, _senses(desk), after)
            if last is None:
                await tx.do("indexing.complete_embedder", embedder=desk.embedders.own.name)
                break
        done, after = done + count, last
        if on_progress is not None:
            on_progress(done)
    async with desk.transaction(tenant_id, "recall") as tx:
        return Reindexed(done, (await desk.embedders.look(tx)).in_use.name)


async def tenants(desk: Desk) -> list[str]:
    """Every tenant there is."""
    # The list of tenants has no tenant of its own: any name opens the transaction.
    async with desk.transaction("*", "jobs") as tx:
        return [row["tenant_id"] for row in await tx.rows("tenant.every")]


def _senses(desk: Desk) -> Senses:
    """Nothing is compared here."""
    own = desk.embedders.own
    thresholds = desk.packs.default.memory_layer.contradiction.thresholds_for(own.name)
    return Senses(own, Comparison(thresholds, desk.judge))
