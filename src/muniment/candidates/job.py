"""JOB-1: captures that wait become candidates, proposals or refusals; what policy alone may promote is promoted."""

from muniment.candidates import consolidation
from muniment.job import Done
from muniment.opening import Opened

# Batches of a run; other tenants' jobs come between.
BATCHES = 4


async def run(opened: Opened, tenant_id: str) -> Done:
    """A few batches, in the order of their commits."""
    context = opened.context
    captures = proposals = parked = 0
    more = False
    for _ in range(BATCHES):
        done = await consolidation.consolidate_some(context, tenant_id)
        if more := done is not None:
            captures += done.captures
            proposals += len(done.proposals)
            parked += len(done.failed)
        else:
            break
    promoted = await consolidation.promote_by_policy(context, tenant_id)
    async with context.transaction(tenant_id, "writer") as tx:
        again = await tx.row("candidate.next_try")
    counts = {"captures": captures, "proposals": proposals, "promoted": len(promoted), "parked": parked}
    return Done(counts, more, again["at"] if again is not None else None)
