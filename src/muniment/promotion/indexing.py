"""Indexing: what a promoted memory is found by. All of it can be made again from its body."""

from datetime import datetime

from muniment.candidates.comparison import TextComparer, Vector, to_sql
from muniment.database.sealing import SubjectKey
from muniment.database.storage import Transaction
from muniment.language.words import index_of
from muniment.model.candidate import Candidate
from muniment.model.promoted import PromotedMemory
from muniment.recall.rules import linked_entity


def mark(key: SubjectKey, term: str) -> int:
    """A word as it is kept: a hash under the tenant's own key."""
    return int.from_bytes(key.digest(b"term\0" + term.encode())[:8], "big", signed=True)


def end(key: SubjectKey, entity: str) -> int:
    """An end of a link as it is kept, likewise."""
    return int.from_bytes(key.digest(b"link\0" + entity.encode())[:8], "big", signed=True)


def index(
    tx: Transaction,
    memory_id: str,
    fact: Candidate | PromotedMemory,
    observed_at: datetime,
    vector: Vector | None,
    coming: Vector | None,
    comparer: TextComparer,
    key: SubjectKey,
) -> None:
    """Write its words, its link, and its vectors: of the embedder in use, and of one that is coming."""
    if fact.write_class == "evidence_link":
        return
    words = index_of(fact.text, observed_at)
    found = {"memory_id": memory_id, "user_id": fact.scope.user_id or "", "words": words.words}
    for term, times in sorted((mark(key, term), times) for term, times in words.terms.items()):
        tx.defer_row("indexing.add_terms", term=term, tf=times, **found)
    if (links_to := linked_entity(fact.entity, fact.value)) is not None:
        assert fact.entity is not None
        ends = {"entity": end(key, fact.entity), "links_to": end(key, links_to)}
        tx.defer_row("indexing.add_link", memory_id=memory_id, **ends)
    if vector is not None and vector.any():
        _add_vector(tx, memory_id, comparer.embedder.name, vector)
    if coming is not None and comparer.coming is not None:
        _add_vector(tx, memory_id, comparer.coming.name, coming)


def _add_vector(tx: Transaction, memory_id: str, embedder: str, vector: Vector) -> None:
    tx.defer_row("indexing.add_vector", memory_id=memory_id, embedder=embedder, vector=to_sql(vector))
