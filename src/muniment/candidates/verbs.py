"""The verbs of candidates, propose a typed fact and consolidate captures, and the job that consolidates (JOB-1)."""

from collections.abc import Callable, Mapping
from typing import Any

from muniment.access.roles import Right as Right
from muniment.candidates.consolidation import consolidate_batch
from muniment.candidates.propose import submit
from muniment.capture.rules import ProposeFields, proposal_input, run_fields
from muniment.context import FabricContext
from muniment.job import JobResult
from muniment.model.candidate import Consolidation, Refusal
from muniment.model.context import Asker, Principal
from muniment.model.proposal import Submission
from muniment.opening import Opened
from muniment.review.approve import promote_by_policy
from muniment.tracing import span
from muniment.verbs.declaration import verb

# Batches of a run of the job; other tenants' jobs come between.
BATCHES = 4

Progress = Callable[[Consolidation], None]


def _right(_: Asker, fields: Mapping[str, Any]) -> Right:
    return "correct" if fields.get("write_class") == "correction" else "propose"


@verb(
    "propose",
    right="propose",
    right_for=_right,
    http="POST /proposals",
    status=201,
    unchecked=ProposeFields,
    keywords=ProposeFields,
    retry=True,
)
async def propose(
    context: FabricContext, asker: Asker, fields: Mapping[str, Any], *, principal: Principal
) -> Submission | Refusal:
    """Propose a typed fact. It is captured, passes the gates and enters the queue, in one transaction.

    When a gate refuses it, the refusal is returned, with the gate and the reason, and the capture stays.
    """
    item = proposal_input(run_fields(asker), fields)
    return await submit(context, principal, await context.pack_for(asker), item)


@verb("consolidate", right="work", effect="pass", http="POST /work/consolidate")
async def consolidate(context: FabricContext, tenant_id: str, *, on_progress: Progress | None = None) -> Consolidation:
    """Turn the tenant's waiting captures into proposals or refusals, and promote what needs no person.

    A capture whose extractor fails is tried again later, and parked in the end; nothing is lost. Safe to run twice,
    concurrently, or to be killed.
    """
    with span("consolidate"):
        total = Consolidation()
        while (done := await consolidate_batch(context, tenant_id)) is not None:
            total = _sum(total, done)
            if on_progress is not None and done != Consolidation():
                on_progress(total)
        return _sum(total, Consolidation(promoted=await promote_by_policy(context, tenant_id)))


async def run_job(opened: Opened, tenant_id: str) -> JobResult:
    """Consolidate a few batches, in the order of their commits, then promote what policy may promote."""
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


def _sum(one: Consolidation, other: Consolidation) -> Consolidation:
    return Consolidation(**{name: getattr(one, name) + getattr(other, name) for name in Consolidation.model_fields})
