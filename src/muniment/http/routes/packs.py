"""Packs: the registered ones, what differs between two, and what another would have done."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query

from muniment.http.bodies import (
    ActivateBody,
    BackfillBody,
    BacktestBody,
    CompareBody,
    PackBody,
    Page,
    RetireBody,
    given,
    page,
)
from muniment.http.caller import Asking, May
from muniment.http.idempotency import IdempotentRoute
from muniment.http.lists import After, Limit
from muniment.model.activation import Activation, ActivationPlan, Retirement
from muniment.model.backfill import Backfill
from muniment.model.backtest import Backtest
from muniment.model.fields import Artifact
from muniment.model.pack_difference import PackDifference
from muniment.packs.types import RegisteredPack

router = APIRouter(prefix="/packs", tags=["packs"], route_class=IdempotentRoute)

Reader = Annotated[Asking, Depends(May("read_packs"))]
Admin = Annotated[Asking, Depends(May("packs"))]
AfterSeq = Annotated[int | None, Query(ge=0, le=2**62, description="`next` of the page before")]


class PackShown(Artifact):
    """A pack as it stands in the registry, with its whole document."""

    ref: str
    digest: str
    registered_at: datetime
    registered_by: str
    retired: bool
    in_force: bool
    document: dict[str, Any]

    @classmethod
    def of(cls, one: RegisteredPack) -> "PackShown":
        """The registered pack as data."""
        return cls(
            ref=one.ref,
            digest=one.digest,
            registered_at=one.registered_at,
            registered_by=one.registered_by,
            retired=one.retired,
            in_force=one.in_force,
            document=one.pack.document(),
        )


@router.get("")
async def list_(asking: Reader, limit: Limit = 50, after: After = None) -> Page[PackShown]:
    """All, in the order of their registration."""
    found = await asking.fabric.packs.list(asking.principal, limit=limit, after=after)
    return page([PackShown.of(one) for one in found], limit, "ref")


@router.post("", status_code=201)
async def register(asking: Admin, body: PackBody) -> PackShown:
    """Register a pack; the same again changes nothing, other content under the same version is refused."""
    return PackShown.of(await asking.fabric.packs.register(asking.principal, body.pack))


@router.post("/compare")
async def compare(asking: Reader, body: CompareBody) -> PackDifference:
    """In what the other pack differs from the one, rule by rule."""
    return await asking.fabric.packs.compare(asking.principal, body.one, body.other)


@router.post("/backtest")
async def backtest(asking: Annotated[Asking, Depends(May("backtest"))], body: BacktestBody) -> Backtest:
    """Run the latest captures and recalls of a window through a pack, beside another. Nothing is written."""
    return await asking.fabric.packs.backtest(asking.principal, **given(body))


@router.get("/backfills")
async def backfills(asking: Reader, limit: Limit = 50, after: After = None) -> Page[Backfill]:
    """The orders to follow a pack's ontology, the latest first."""
    found = await asking.fabric.packs.backfills(asking.principal, limit=limit, after=after)
    return page(found, limit, "backfill_id")


@router.post("/backfills", status_code=201)
async def backfill(asking: Annotated[Asking, Depends(May("review"))], body: BackfillBody) -> Backfill:
    """Order that live memories follow the ontology of the pack in force; with `dry_run`, of any, nothing is ordered."""
    return await asking.fabric.packs.backfill(asking.principal, **given(body))


@router.get("/in-force")
async def in_force(asking: Reader, at: datetime | None = None) -> Activation:
    """The version in force, or the one that was at a time: who put it there, when and why."""
    return await asking.fabric.packs.in_force(asking.principal, at=at)


@router.get("/activations")
async def activations(asking: Reader, limit: Limit = 50, after: AfterSeq = None) -> Page[Activation]:
    """Every activation, the latest first."""
    found = await asking.fabric.packs.activations(asking.principal, limit=limit, after=after)
    return Page(items=found, next=str(found[-1].seq) if len(found) == limit else None)


@router.get("/{ref}/activation")
async def plan_activation(asking: Reader, ref: str) -> ActivationPlan:
    """What activating the version would change, and who may do it. Nothing is changed by asking."""
    return await asking.fabric.packs.plan_activation(asking.principal, ref)


@router.post("/{ref}/activate")
async def activate(asking: Admin, ref: str, body: ActivateBody) -> Activation:
    """Put the version in force: from this moment on everything in the tenant is decided under it."""
    return await asking.fabric.packs.activate(asking.principal, ref, **given(body))


@router.post("/{ref}/retire")
async def retire(asking: Admin, ref: str, body: RetireBody) -> Retirement:
    """End the use of the version for good: it can be neither activated nor pinned any more."""
    return await asking.fabric.packs.retire(asking.principal, ref, **given(body))


@router.get("/{ref}")
async def get(asking: Reader, ref: str) -> PackShown:
    """One registered pack."""
    return PackShown.of(await asking.fabric.packs.get(asking.principal, ref))
