"""Reading out: recall, compile, why, and one memory with its papers."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from pydantic import Field

from muniment.errors import InvalidInput
from muniment.http.bodies import (
    CompileBody,
    ExplainBody,
    GoldenBody,
    Page,
    RecallBody,
    RetractBody,
    given,
    page,
    run_asked,
)
from muniment.http.caller import Asking, May, MayRetract, RunHeader
from muniment.http.idempotency import IdempotentRoute
from muniment.http.lists import Listing
from muniment.model.compiled import CompiledMemory
from muniment.model.explanation import Explanation, Replay
from muniment.model.fields import Name
from muniment.model.promoted import PromotedMemory, Retraction
from muniment.model.recall import Recall
from muniment.model.recalls import RecallNoted, RecallShown
from muniment.model.trail import Trail

router = APIRouter(tags=["reading"], route_class=IdempotentRoute)

Run = Annotated[Asking, Depends(May("recall"))]
Reader = Annotated[Asking, Depends(May("read_memory", agents="recall"))]


@router.post("/recall")
async def recall(asking: Run, body: RecallBody) -> Recall:
    """What this run may know: promoted memory through every filter, what matters most to the query first."""
    return await asking.fabric.recall(await asking.run(body.run), **given(body, "run"))


@router.post("/compile")
async def compile_(asking: Run, body: CompileBody) -> CompiledMemory:
    """What this run may know, as the memory section of a prompt within a budget of tokens."""
    return await asking.fabric.compile(await asking.run(body.run), **given(body, "run"))


@router.post("/explain")
async def explain(asking: Reader, body: ExplainBody) -> Explanation:
    """Why a memory was visible, or which filters hid it: in a recorded recall, at a past moment, or now."""
    about = given(body, "run")
    if asking.principal.kind == "agent":
        if body.run is None:
            raise InvalidInput("is required", field="run")
        if body.run.agent_id not in (None, asking.principal.id):
            raise InvalidInput("is another agent than the credential's", field="run.agent_id")
        return await asking.fabric.explain(await asking.run(body.run), **about)
    if body.run is not None:
        about["run"] = run_asked(body.run, asking.tenant_id)
    return await asking.fabric.explain(asking.principal, **about)


class RecallListing(Listing):
    """Which recalls."""

    user_id: Name | None = Field(default=None, description="the end user it was for")
    run_id: Name | None = None
    agent_id: Name | None = None
    memory_id: Name | None = Field(default=None, description="a memory that it returned")


@router.get("/recalls")
async def recalls(
    asking: Annotated[Asking, Depends(May("read_memory"))], listing: Annotated[RecallListing, Query()]
) -> Page[RecallNoted]:
    """The recorded recalls, the latest first; by agent or memory among the latest 20,000 of the rest."""
    found = await asking.fabric.recalls.list(asking.principal, **listing.asked())
    return page(found, listing.limit, "recall_id")


@router.get("/recalls/{recall_id}")
async def one_recall(asking: Reader, recall_id: str, run: RunHeader = None) -> RecallShown:
    """One recall with the papers of what it returned; a run, told of in the header, gets what it may see of its own."""
    return await asking.fabric.recalls.get(await asking.asker_by_header(run), recall_id)


@router.post("/recalls/{recall_id}/replay")
async def replay(asking: Annotated[Asking, Depends(May("audit"))], recall_id: str) -> Replay:
    """Run a recorded recall again as of then: whether it is the same, and where not, why."""
    return await asking.fabric.replay(asking.principal, recall_id)


@router.get("/memories/{memory_id}")
async def get(asking: Reader, memory_id: str, run: RunHeader = None) -> PromotedMemory:
    """One memory: a run, told of in the header, gets what it could recall now; a reviewer or auditor any."""
    return await asking.fabric.get(await asking.asker_by_header(run), memory_id)


@router.get("/memories/{memory_id}/trail")
async def trail(asking: Annotated[Asking, Depends(May("read_memory"))], memory_id: str) -> Trail:
    """From a memory back to its capture, with every verdict, and forward to the recalls that used it."""
    return await asking.fabric.trail(asking.principal, memory_id)


@router.post("/memories/{memory_id}/retract")
async def retract(asking: Annotated[Asking, Depends(MayRetract())], memory_id: str, body: RetractBody) -> Retraction:
    """Withdraw a memory for good; the row stays. For a privacy officer, with the reason `erased`, its text goes too."""
    return await asking.fabric.retract(asking.principal, memory_id, reason=body.reason)


@router.post("/golden", status_code=204)
async def record_golden(asking: Annotated[Asking, Depends(May("golden"))], body: GoldenBody) -> None:
    """Write down how golden queries were answered, each by its name, for the metrics to count."""
    await asking.fabric.record_golden(asking.principal, body.results)
