"""The verbs of promotion."""

from muniment.context import FabricContext, retry_on_pack_change
from muniment.erasure import name_search
from muniment.model.context import Asker, Principal
from muniment.model.fields import Artifact, Name, build
from muniment.model.promoted import Retraction, RetractionReason
from muniment.promotion.retract import retract_memory


class _Retraction(Artifact):
    memory_id: Name
    reason: RetractionReason


@retry_on_pack_change
async def retract(context: FabricContext, asker: Asker, memory_id: str, reason: RetractionReason) -> Retraction:
    """Retract a memory for somebody who may; raises `NotFound`, or `Conflict` when it was retracted before.

    For a privacy officer, with the reason `erased`, its text is removed too.
    """
    given = build(_Retraction, {"memory_id": memory_id, "reason": reason})
    if given.reason == "erased" and isinstance(asker, Principal) and "privacy_officer" in asker.roles:
        return await name_search.take_away(context, asker, given.memory_id)
    principal = await context.authorise(asker, "retract")
    pack = await context.pack_for(asker)
    async with context.write_once(principal.tenant_id, "writer", under=pack) as tx:
        return await retract_memory(context, tx, given.memory_id, by=principal.id, reason=given.reason, pack=pack)
