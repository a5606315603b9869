"""The memories that a spoken request to forget or to correct may mean (CAN-12)."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from muniment.contradictions.rules import Compared
from muniment.contradictions.store import EmbeddedCandidate, TextComparer, near_to
from muniment.database.storage import Transaction
from muniment.model.candidate import Candidate
from muniment.model.proposal import MOST_TARGETS
from muniment.pack import Pack

# Similarity down to which a memory may be meant: a request names its memory in other words.
_LEAST_SIMILARITY = 0.30
_READ = 4 * MOST_TARGETS


async def find_targets(
    tx: Transaction, one: EmbeddedCandidate, compared: Compared, comparer: TextComparer, pack: Pack
) -> tuple[str, ...]:
    """Return the ids of at most five live memories of the candidate's own user that may be meant, the likeliest first.

    Those that it repeats or contradicts come first, then the nearest. What only refers to what was said before means
    the memories of the capture before it.
    """
    candidate = one.candidate
    met = (*(each.memory for each in compared.contradicts), *compared.says_the_same)
    found = [memory.memory_id for memory in met if memory.scope.user_id == candidate.scope.user_id]
    if candidate.follows is not None and not found:
        whose = {"user_id": candidate.scope.user_id or "", "sensitive": pack.sensitive_labels}
        rows = await tx.rows("neighbours.of_capture", capture_id=candidate.follows, **whose)
        found += [row["memory_id"] for row in rows]
    found += await _near(tx, one, comparer, pack)
    return _first(found)


async def _near(tx: Transaction, one: EmbeddedCandidate, comparer: TextComparer, pack: Pack) -> Sequence[str]:
    # Compared as a plain text, so that facts on keys may be meant too.
    plain: Candidate = one.candidate.model_copy(update={"entity": None, "predicate": None})
    query = near_to(replace(one, candidate=plain), comparer, pack, _READ, least=_LEAST_SIMILARITY)
    if query is None:
        return ()
    name, values = query
    rows = await tx.rows(name, **values)
    user = one.candidate.scope.user_id or ""
    return [row["memory_id"] for row in rows if (row["user_id"] or "") == user and not row["hidden"]]


def _first(ids: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(ids))[:MOST_TARGETS]
