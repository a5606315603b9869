"""The verbs of candidates: propose a typed fact, and consolidate captures into proposals."""

from collections.abc import Mapping
from typing import Any

from muniment.access.roles import Right as Right
from muniment.candidates import consolidate_job as consolidation
from muniment.candidates.propose import submit
from muniment.capture.inputs import ProposeFields, proposal_input, run_fields
from muniment.context import FabricContext
from muniment.model.candidate import Consolidation, Refusal
from muniment.model.context import Asker, Principal
from muniment.model.proposal import Submission
from muniment.verbs.declaration import verb


def _right(_: Asker, fields: Mapping[str, Any]) -> Right:
    return "correct" if fields.get("write_class") == "correction" else "propose"


@verb(
    "propose",
    right="propose",
    right_for=_right,
    effect="write",
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
async def consolidate(
    context: FabricContext, tenant_id: str, *, on_progress: consolidation.Progress | None = None
) -> Consolidation:
    """Turn the tenant's waiting captures into proposals or refusals, and promote what needs no person.

    A capture whose extractor fails is tried again later, and parked in the end; nothing is lost. Safe to run twice,
    concurrently, or to be killed.
    """
    return await consolidation.consolidate(context, tenant_id, on_progress)
