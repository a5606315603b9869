"""What tests of the index in the process look at: the scopes that it holds, and the answer of the statements."""

from typing import Any

from muniment import Fabric, RunContext
from muniment.model.recall import Recall
from muniment.recall.scope_index import Counts, ScopeIndexes

QUERY = "which channel does the customer prefer"


def scopes(fabric: Fabric) -> ScopeIndexes:
    return fabric._fabric._context.scopes


def counts(fabric: Fabric) -> Counts:
    return scopes(fabric).counts


def by_statements(fabric: Fabric, run: RunContext, query: str = QUERY, **narrowed: Any) -> Recall:
    """The same recall without the index."""
    held = fabric._fabric._context.scopes
    limit, held.limit = held.limit, 0
    held.clear()
    try:
        return fabric.recall(run, query, **narrowed)
    finally:
        held.limit = limit


def shown(answer: Recall) -> dict[str, Any]:
    """All of an answer but what tells it from another one."""
    return answer.model_dump(exclude={"recall_id", "at", "seq"})
