"""The verbs of promotion: retract a memory, and complete the search index of a tenant."""

from muniment.access.roles import Right as Right
from muniment.context import FabricContext
from muniment.erasure import name_search
from muniment.model.context import Asker, Principal
from muniment.model.fields import Name
from muniment.model.inputs import VerbInput
from muniment.model.promoted import Reindexed, Retraction, RetractionReason
from muniment.promotion import reindex as reindexing
from muniment.promotion.retract import retract_memory
from muniment.verbs.declaration import verb


class Retract(VerbInput):
    """Which memory to retract, and why."""

    memory_id: Name
    reason: RetractionReason


def _right(asker: Asker, request: Retract) -> Right:
    """A privacy officer erases a memory; everything else is a reviewer's retraction."""
    officer = isinstance(asker, Principal) and "privacy_officer" in asker.roles
    return "erase" if officer and request.reason == "erased" else "retract"


@verb(
    "retract",
    right="retract",
    other_right="erase",
    right_for=_right,
    http="POST /memories/{memory_id}/retract",
    retry=True,
)
async def retract(context: FabricContext, principal: Principal, request: Retract) -> Retraction:
    """Retract a memory for good; its row stays. Raises `NotFound`, or `Conflict` the second time.

    A privacy officer retracts only with the reason `erased`: then the memory's text, words and vectors are removed.
    """
    if _right(principal, request) == "erase":
        return await name_search.take_away(context, principal, request.memory_id)
    pack = await context.pack_for(principal)
    async with context.write_once(principal.tenant_id, "writer", under=pack) as tx:
        return await retract_memory(context, tx, request.memory_id, by=principal.id, reason=request.reason, pack=pack)


@verb("reindex", right="work", effect="pass", http="POST /work/reindex")
async def reindex(
    context: FabricContext, tenant_id: str, *, on_progress: reindexing.Progress | None = None
) -> Reindexed:
    """Add the words and vectors that a tenant's memories lack, for example after a change of embedder.

    Until it is done, recall uses the earlier vectors. Safe to run twice, concurrently, or to be killed.
    """
    return await reindexing.reindexed(context, tenant_id, on_progress)
