"""The index of promoted memory: words, links and vectors, all rebuildable from the bodies (TIR-4, JOB-11)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from muniment.candidates.neighbours import TextComparer, Vector, to_sql
from muniment.database.rows import memory_of, open_memory
from muniment.database.sealing import SubjectKey, Vault
from muniment.database.storage import Row, Transaction
from muniment.language.embedding import embedded
from muniment.language.instructions import visible_text
from muniment.language.words import index_of
from muniment.model.candidate import Candidate
from muniment.model.promoted import PromotedMemory
from muniment.promotion.rules import linked_entity

AT_ONCE = 200


@dataclass(frozen=True)
class Rebuilt:
    """The result of a rebuild of the durable tier: how many memories, and those whose index had to be repaired."""

    memories: int
    repaired: tuple[str, ...] = ()


def term_hash(key: SubjectKey, term: str) -> int:
    """Hash a word under the tenant's key: only hashes are stored."""
    return int.from_bytes(key.digest(b"term\0" + term.encode())[:8], "big", signed=True)


def entity_hash(key: SubjectKey, entity: str) -> int:
    """Hash an entity at the end of a link under the tenant's key."""
    return int.from_bytes(key.digest(b"link\0" + entity.encode())[:8], "big", signed=True)


def index(
    tx: Transaction,
    memory_id: str,
    fact: Candidate | PromotedMemory,
    observed_at: datetime,
    vectors: tuple[Vector | None, Vector | None],
    comparer: TextComparer,
    key: SubjectKey,
) -> None:
    """Index a memory: its words, its link, and its vectors by the embedder in use and by the next one."""
    if fact.write_class == "evidence_link":
        return
    words = index_of(fact.text, observed_at)
    common = {"memory_id": memory_id, "user_id": fact.scope.user_id or "", "words": words.words}
    for term, times in sorted((term_hash(key, term), times) for term, times in words.terms.items()):
        tx.defer_row("indexing.add_terms", term=term, tf=times, **common)
    if (other := linked_entity(fact.entity, fact.value)) is not None:
        assert fact.entity is not None
        ends = {"entity": entity_hash(key, fact.entity), "links_to": entity_hash(key, other)}
        tx.defer_row("indexing.add_link", memory_id=memory_id, **ends)
    for vector, embedder in zip(vectors, (comparer.embedder, comparer.next_embedder), strict=True):
        if vector is not None and vector.any() and embedder is not None:
            tx.defer_row("indexing.add_vector", memory_id=memory_id, embedder=embedder.name, vector=to_sql(vector))


async def rebuild_durable(tx: Transaction, vault: Vault, comparer: TextComparer) -> Rebuilt:
    """Rebuild the index of the durable tier from its log, in one transaction, and compare it with the old one.

    A memory whose content does not open keeps only its filters.
    """
    await tx.do("durable.hold")
    before = await _digests(tx)
    if not before and not await tx.rows("durable.bodies", after="", count=1):
        return Rebuilt(0)
    for name in ("durable.clear_terms", "durable.clear_links", "durable.clear_scope"):
        tx.defer(name)
    tx.defer("durable.clear_vectors", embedder=comparer.embedder.name)
    tx.defer("durable.fill_scope")
    after = ""
    while rows := await tx.rows("durable.bodies", after=after, count=AT_ONCE):
        await _index_rows(tx, vault, comparer, rows)
        after = rows[-1]["memory_id"]
    now = await _digests(tx)
    changed = [one for one in {**before, **now} if before.get(one) != now.get(one)]
    return Rebuilt(len(now), tuple(sorted(changed)))


async def index_missing(tx: Transaction, vault: Vault, comparer: TextComparer, after: str) -> tuple[int, str | None]:
    """Index the next memories that lack words or a vector; returns how many, and the last id, None at the end."""
    rows = await tx.rows("indexing.unindexed", embedder=comparer.embedder.name, after=after, count=AT_ONCE)
    if not rows:
        return 0, None
    await _index_rows(tx, vault, comparer, rows)
    return len(rows), rows[-1]["memory_id"]


async def _digests(tx: Transaction) -> dict[str, str]:
    return {row["memory_id"]: row["mark"] for row in await tx.rows("durable.projection")}


async def _index_rows(tx: Transaction, vault: Vault, comparer: TextComparer, rows: Sequence[Row]) -> None:
    contents = [(row, await open_memory(tx, vault, row)) for row in rows]
    memories = [memory_of(row, content) for row, content in contents if content is not None]
    vectors = await embedded(comparer.embedder, [visible_text(memory.text) for memory in memories])
    tenant_data_key = await vault.tenant_data_key(tx)
    for memory, vector in zip(memories, vectors, strict=True):
        index(tx, memory.memory_id, memory, memory.observed_at, (vector, None), comparer, tenant_data_key)
