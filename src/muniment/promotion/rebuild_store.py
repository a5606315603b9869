"""Making again what memories are found by: all of it for the durable tier, what is missing for any (TIR-4, JOB-11)."""

from collections.abc import Sequence
from dataclasses import dataclass

from muniment.candidates.comparison import TextComparer
from muniment.database.rows import memory_of
from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction
from muniment.errors import SealBroken
from muniment.language.embedding import embedded
from muniment.language.instructions import as_seen
from muniment.model.promoted import PromotedMemory
from muniment.promotion import indexing

AT_ONCE = 200


@dataclass(frozen=True)
class Rebuilt:
    """What a rebuild of the durable tier found: how many memories, and those whose projection was another before."""

    memories: int
    repaired: tuple[str, ...] = ()


async def rebuild_durable(tx: Transaction, vault: Vault, comparer: TextComparer) -> Rebuilt:
    """Make the durable tier's projection again from its log, in one transaction, and compare it with what it replaces.

    Content that does not open keeps what can be known without it.
    """
    await tx.do("durable.hold")
    before = await _marks(tx)
    if not before and not await tx.rows("durable.bodies", after="", count=1):
        return Rebuilt(0)
    for name in ("durable.clear_terms", "durable.clear_links", "durable.clear_scope"):
        tx.defer(name)
    tx.defer("durable.clear_vectors", embedder=comparer.embedder.name)
    tx.defer("durable.fill_scope")
    after = ""
    while rows := await tx.rows("durable.bodies", after=after, count=AT_ONCE):
        await _index(tx, vault, comparer, rows)
        after = rows[-1]["memory_id"]
    now = await _marks(tx)
    changed = [one for one in {**before, **now} if before.get(one) != now.get(one)]
    return Rebuilt(len(now), tuple(sorted(changed)))


async def index_missing(tx: Transaction, vault: Vault, comparer: TextComparer, after: str) -> tuple[int, str | None]:
    """Index some memories that lack words or a vector, after an id; how many, and the last. None: there are no more."""
    rows = await tx.rows("indexing.unindexed", embedder=comparer.embedder.name, after=after, count=AT_ONCE)
    if not rows:
        return 0, None
    await _index(tx, vault, comparer, rows)
    return len(rows), rows[-1]["memory_id"]


async def _marks(tx: Transaction) -> dict[str, str]:
    return {row["memory_id"]: row["mark"] for row in await tx.rows("durable.projection")}


async def _index(tx: Transaction, vault: Vault, comparer: TextComparer, rows: Sequence[Row]) -> None:
    memories: list[PromotedMemory] = []
    for row in rows:
        try:
            key = await vault.open_key(tx, row["holder"], row["wrapped_key"], row["key_version"])
            memories.append(memory_of(row, key.open("memory_bodies.content", row["memory_id"], row["content"])))
        except SealBroken:
            continue
    vectors = await embedded(comparer.embedder, [as_seen(memory.text) for memory in memories])
    comparing = await vault.comparing(tx)
    for memory, vector in zip(memories, vectors, strict=True):
        indexing.index(tx, memory.memory_id, memory, memory.observed_at, vector, None, comparer, comparing)
