"""A user's own correction in a home of one's own, which its owner approves."""

from muniment.fabric import AsyncFabric
from muniment.memory.opening import TENANT, local_owner
from muniment.model.proposal import Proposal


async def approve_correction(fabric: AsyncFabric, proposal_id: str, replaces: str) -> Proposal:
    """Approve a correction as `local_owner`, if nothing else holds it and the pack lets its user confirm facts.

    INVARIANT: the owner is the one who said it, so never the second person of REV-4.
    """
    owner = local_owner()
    waits = await fabric.queue.get(owner, proposal_id)
    pack = await fabric.opened.context.current_pack(TENANT)
    others = set(waits.contradiction_check.contradicted) - {replaces}
    reasons = set(waits.human_reasons) - {"user_correction", "contradiction", "low_confidence"}
    strict = waits.sensitive or waits.tier_target == "durable" or waits.trust < pack.memory_layer.trust.floor
    if reasons or others or strict or not pack.memory_layer.subject.confirms:
        return waits
    return await fabric.queue.approve(owner, proposal_id, note="the user's own correction")
