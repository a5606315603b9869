"""JOB-1: captures that wait become candidates, proposals or refusals; what policy alone may promote is promoted."""

from muniment.fabric import consolidation
from muniment.fabric.connect import Opened
from muniment.jobs.job import Done

# Batches of a run; other tenants' jobs come between.
BATCHES = 4


async def run(opened: Opened, tenant_id: str) -> Done:
    """A few batches, in the order of their commits."""
    desk = opened.desk
    captures = proposals = parked = 0
    more = False
    for _ in range(BATCHES):
        done = await consolidation.consolidate_some(desk, tenant_id)
        if more := done is not None:
            captures += done.captures
            proposals += len(done.proposals)
            parked += len(done.failed)
        else:
            break
    promoted = await consolidation.promote_by_policy(desk, tenant_id)
    async with desk.transaction(tenant_id, "writer") as tx:
        again = await tx.row("candidate.next_try")
    counts = {"captures": captures, "proposals": proposals, "promoted": len(promoted), "parked": parked}
    return Done(counts, more, again["at"] if again is not None else None)
