"""The work in hand, for those who run it; and the passes that the worker makes, made at once."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query

from muniment.http.bodies import ClockResetBody, Page, RequeueBody, page
from muniment.http.caller import Asking, May
from muniment.http.idempotency import IdempotentRoute
from muniment.http.lists import After, Limit
from muniment.model.backfill import Backfill
from muniment.model.breaker import Breaker
from muniment.model.candidate import Consolidation
from muniment.model.consent import Sweep
from muniment.model.fields import Artifact, WriteClass
from muniment.model.metrics import PiiScan
from muniment.model.promoted import Reindexed
from muniment.model.webhook import Deliveries
from muniment.model.work import Backlog, ClockReset, JobRun, Parked

router = APIRouter(prefix="/work", tags=["work"], route_class=IdempotentRoute)

Reader = Annotated[Asking, Depends(May("read_work"))]
Admin = Annotated[Asking, Depends(May("work"))]


class Sealed(Artifact):
    """How many events were sealed."""

    events: int


@router.get("/backlog")
async def backlog(asking: Reader) -> Backlog:
    """How much waits to be consolidated."""
    return await asking.fabric.work.backlog(asking.principal)


@router.get("/parked")
async def parked(asking: Reader, limit: Limit = 50, after: After = None) -> Page[Parked]:
    """Captures that were given up after the last try, oldest first."""
    return page(await asking.fabric.work.parked(asking.principal, limit=limit, after=after), limit, "capture_id")


@router.post("/requeue")
async def requeue(asking: Admin, body: RequeueBody | None = None) -> list[str]:
    """Have parked captures tried again; gives those that were parked."""
    ids = body.capture_ids if body is not None else None
    return list(await asking.fabric.work.requeue(asking.principal, ids))


@router.post("/clock/reset")
async def reset_clock(asking: Admin, body: ClockResetBody) -> ClockReset:
    """Bring the tenant's clock back to now, after a program's clock was ahead; the numbers go on."""
    return await asking.fabric.work.reset_clock(asking.principal, reason=body.reason)


@router.get("/jobs")
async def jobs(asking: Reader) -> list[JobRun]:
    """When each job ran last."""
    return list(await asking.fabric.work.jobs(asking.principal))


@router.get("/breakers")
async def breakers(asking: Reader) -> list[Breaker]:
    """The classes whose promotion without a person was ever suspended, and how they stand."""
    return list(await asking.fabric.work.breakers(asking.principal))


@router.post("/breakers/{write_class}/resume")
async def resume(asking: Admin, write_class: WriteClass) -> Breaker:
    """Let a suspended class be promoted without a person again."""
    return await asking.fabric.work.resume(asking.principal, write_class)


@router.post("/consolidate")
async def consolidate(asking: Admin) -> Consolidation:
    """Turn waiting captures into proposals or refusals, and promote what policy alone may."""
    return await asking.fabric.consolidate(asking.tenant_id)


@router.post("/reindex")
async def reindex(asking: Admin) -> Reindexed:
    """Give memories the words and vectors that they lack, as after a change of embedder."""
    return await asking.fabric.reindex(asking.tenant_id)


@router.post("/seal")
async def seal(asking: Admin) -> Sealed:
    """Seal events in batches of the audit chain."""
    return Sealed(events=await asking.fabric.seal(asking.tenant_id))


@router.post("/scan")
async def scan_pii(asking: Admin) -> PiiScan:
    """Look once more, independently of redaction, for personal data in promoted memory."""
    return await asking.fabric.scan_pii(asking.tenant_id)


@router.post("/sweep")
async def sweep(asking: Admin) -> Sweep:
    """Take away the content of memories whose consent ended."""
    return await asking.fabric.consent.sweep(asking.tenant_id)


@router.post("/deliver")
async def deliver(
    asking: Admin, max_events: Annotated[int, Query(ge=1, le=10_000, description="how many at most")] = 1000
) -> Deliveries:
    """Post what waits to the webhooks."""
    return await asking.fabric.webhooks.deliver(asking.tenant_id, max_events=max_events)


@router.post("/backfill")
async def run_backfill(asking: Admin) -> Backfill | None:
    """Carry out the order to follow a pack's ontology; nothing where none was given."""
    return await asking.fabric.packs.run_backfill(asking.tenant_id)
