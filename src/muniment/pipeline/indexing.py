"""Indexing: what a promoted memory is found by. All of it can be made again from its body."""

from datetime import datetime

from muniment.model.candidate import Candidate
from muniment.model.promoted import PromotedMemory
from muniment.pipeline.senses import Senses, Vector, to_sql
from muniment.policy.links import link_of
from muniment.policy.words import index_of
from muniment.storage.sealing import SubjectKey
from muniment.storage.session import Transaction


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
    senses: Senses,
    key: SubjectKey,
) -> None:
    """Write its words, its link, and its vectors: of the embedder in use, and of one that is coming."""
    if fact.write_class == "evidence_link":
        return
    words = index_of(fact.text, observed_at)
    found = {"memory_id": memory_id, "user_id": fact.scope.user_id or "", "words": words.words}
    for term, times in sorted((mark(key, term), times) for term, times in words.terms.items()):
        tx.add("indexing.add_terms", term=term, tf=times, **found)
    if (links_to := link_of(fact.entity, fact.value)) is not None:
        assert fact.entity is not None
        ends = {"entity": end(key, fact.entity), "links_to": end(key, links_to)}
        tx.add("indexing.add_link", memory_id=memory_id, **ends)
    if vector is not None and vector.any():
        _add_vector(tx, memory_id, senses.embedder.name, vector)
    if coming is not None and senses.coming is not None:
        _add_vector(tx, memory_id, senses.coming.name, coming)


def _add_vector(tx: Transaction, memory_id: str, embedder: str, vector: Vector) -> None:
    tx.add("indexing.add_vector", memory_id=memory_id, embedder=embedder, vector=to_sql(vector))
