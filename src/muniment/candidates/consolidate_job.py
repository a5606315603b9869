"""JOB-1: consolidate the captures that wait, then promote what policy alone may promote."""

from collections.abc import Callable

from muniment.candidates.consolidation import consolidate_batch
from muniment.context import FabricContext
from muniment.job import JobResult
from muniment.model.candidate import Consolidation
from muniment.opening import Opened
from muniment.review.policy import promote_by_policy
from muniment.tracing import with_span

# Batches of a run; other tenants' jobs come between.
BATCHES = 4

Progress = Callable[[Consolidation], None]


async def run(opened: Opened, tenant_id: str) -> JobResult:
    """Consolidate a few batches, in the order of their commits."""
    context, total, more = opened.context, Consolidation(), True
    for _ in range(BATCHES):
        done = await consolidate_batch(context, tenant_id)
        if not (more := done is not None):
            break
        total = _sum(total, done)
    promoted = await promote_by_policy(context, tenant_id)
    async with context.transaction(tenant_id, "writer") as tx:
        again = await tx.row("candidate.next_try")
    counts = {
        "captures": total.captures,
        "proposals": len(total.proposals),
        "promoted": len(promoted),
        "parked": len(total.failed),
    }
    return JobResult(counts, more, again["at"] if again is not None else None)


@with_span("consolidate")
async def consolidate(context: FabricContext, tenant_id: str, on_progress: Progress | None = None) -> Consolidation:
    """Consolidate all captures that wait, then promote what policy alone may promote."""
    total = Consolidation()
    while (done := await consolidate_batch(context, tenant_id)) is not None:
        total = _sum(total, done)
        if on_progress is not None and done != Consolidation():
            on_progress(total)
    return _sum(total, Consolidation(promoted=await promote_by_policy(context, tenant_id)))


def _sum(one: Consolidation, other: Consolidation) -> Consolidation:
    return Consolidation(**{name: getattr(one, name) + getattr(other, name) for name in Consolidation.model_fields})
