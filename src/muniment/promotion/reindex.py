"""Reindexing: rebuild the durable tier's index from its log, and add the words and vectors that memories lack."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from muniment.context import FabricContext
from muniment.contradictions.rules import Comparison
from muniment.contradictions.store import TextComparer
from muniment.database.address import Address
from muniment.database.cluster.node_liveness import EVERY_TENANT
from muniment.database.rows import memory_of, open_memory
from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction, as_owner
from muniment.language.embedding import embedded
from muniment.language.instructions import visible_text
from muniment.model.promoted import Reindexed
from muniment.promotion import postings
from muniment.promotion.store import TermHashes, index_memory

# Memories indexed in one go.
AT_ONCE = 200

Progress = Callable[[int], None]


@dataclass(frozen=True)
class Rebuilt:
    """The result of a rebuild of the durable tier: how many memories, and those whose index had to be repaired."""

    memories: int
    repaired: tuple[str, ...] = ()


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
                if await tx.do("indexing.complete_embedder", embedder=context.embedders.own.name):
                    await _record_rebuild(tx, 0)
                break
            await _record_rebuild(tx, count)
        done, after = done + count, last
        if on_progress is not None:
            on_progress(done)
    async with context.transaction(tenant_id, "recall") as tx:
        return Reindexed(done, (await context.embedders.read(tx)).in_use.name)


async def tenants(context: FabricContext) -> list[str]:
    """List all tenants."""
    async with context.transaction(EVERY_TENANT, "jobs") as tx:
        return sorted(row["tenant_id"] for row in await tx.rows("jobs.clocks"))


def _comparer(context: FabricContext) -> TextComparer:
    """Return the fabric's own embedder as a comparer; its thresholds are not used here."""
    own = context.embedders.own
    thresholds = context.packs.default.memory_layer.contradiction.thresholds_for(own.name)
    return TextComparer(own, Comparison(thresholds, context.judge))


async def rebuild_durable(tx: Transaction, vault: Vault, comparer: TextComparer) -> Rebuilt:
    """Rebuild the index of the durable tier from its log, in one transaction, and compare it with the old one.

    A memory whose content does not open keeps only its filters.
    """
    await tx.do("durable.hold")
    before = await _digests(tx)
    if not before and not await tx.rows("durable.bodies", after="", count=1):
        return Rebuilt(0)
    for name in ("durable.clear_words", "durable.clear_terms", "durable.clear_links", "durable.clear_scope"):
        tx.defer(name)
    tx.defer("durable.clear_vectors", embedder=comparer.embedder.name)
    tx.defer("durable.fill_scope")
    after = ""
    while rows := await tx.rows("durable.bodies", after=after, count=AT_ONCE):
        await _index_rows(tx, vault, comparer, rows)
        after = rows[-1]["memory_id"]
    after = ""
    while rows := await tx.rows("durable.words", after=after, count=AT_ONCE):
        await postings.write(tx, rows)
        after = rows[-1]["memory_id"]
    now = await _digests(tx)
    await _record_rebuild(tx, len(now))
    changed = [one for one in {**before, **now} if before.get(one) != now.get(one)]
    return Rebuilt(len(now), tuple(sorted(changed)))


async def index_missing(tx: Transaction, vault: Vault, comparer: TextComparer, after: str) -> tuple[int, str | None]:
    """Index the next memories that lack words or a vector; returns how many, and the last id, None at the end."""
    rows = await tx.rows("indexing.unindexed", embedder=comparer.embedder.name, after=after, count=AT_ONCE)
    if not rows:
        return 0, None
    await _index_rows(tx, vault, comparer, rows)
    if lacking := [row["born_seq"] for row in rows if row["lacks_words"]]:
        tx.defer("indexing.reopen_postings", seq=min(lacking) - 1)
    return len(rows), rows[-1]["memory_id"]


async def _record_rebuild(tx: Transaction, memories: int) -> None:
    """Record that words or vectors were made anew: indexes in processes that were read before are read again."""
    tick = await tx.tick()
    tx.defer("indexing.record_rebuild", seq=tick.seq, at=tick.at)
    tx.emit("memory.note", "auto", about="reindexed", memories=memories)


async def _digests(tx: Transaction) -> dict[str, str]:
    return {row["memory_id"]: row["mark"] for row in await tx.rows("durable.projection")}


async def _index_rows(tx: Transaction, vault: Vault, comparer: TextComparer, rows: Sequence[Row]) -> None:
    contents = [(row, await open_memory(tx, vault, row)) for row in rows]
    memories = [memory_of(row, content) for row, content in contents if content is not None]
    vectors = await embedded(comparer.embedder, [visible_text(memory.text) for memory in memories])
    hashes = TermHashes(await vault.tenant_data_key(tx))
    for memory, vector in zip(memories, vectors, strict=True):
        index_memory(tx, memory.memory_id, memory, memory.observed_at, (vector, None), comparer, hashes)
