"""Packs: the registered ones, what differs between two, and what another would have done."""

from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends

from muniment.api.asking import Asking, May
from muniment.api.bodies import BackfillBody, BacktestBody, CompareBody, PackBody, Page, given, page
from muniment.api.lists import After, Limit
from muniment.api.once import OnceRoute
from muniment.governance.packs import RegisteredPack
from muniment.model.backfill import Backfill
from muniment.model.backtest import Backtest
from muniment.model.fields import Artifact
from muniment.model.pack_difference import PackDifference

router = APIRouter(prefix="/packs", tags=["packs"], route_class=OnceRoute)

Reader = Annotated[Asking, Depends(May("read_packs"))]


class PackShown(Artifact):
    """A pack as it stands in the registry, with its whole document."""

    ref: str
    digest: str
    registered_at: datetime
    registered_by: str
    document: dict[str, Any]

    @classmethod
    def of(cls, one: RegisteredPack) -> "PackShown":
        """The registered pack as data."""
        return cls(
            ref=one.ref,
            digest=one.digest,
            registered_at=one.registered_at,
            registered_by=one.registered_by,
            document=one.pack.document(),
        )


@router.get("")
async def list_(asking: Reader, limit: Limit = 50, after: After = None) -> Page[PackShown]:
    """All, in the order of their registration."""
    found = await asking.fabric.packs.list(asking.principal, limit=limit, after=after)
    return page([PackShown.of(one) for one in found], limit, "ref")


@router.post("", status_code=201)
async def register(asking: Annotated[Asking, Depends(May("packs"))], body: PackBody) -> PackShown:
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
    """Order that live memories follow the ontology of a registered pack; with `dry_run` nothing is ordered."""
    return await asking.fabric.packs.backfill(asking.principal, **given(body))


@router.get("/{ref}")
async def get(asking: Reader, ref: str) -> PackShown:
    """One registered pack."""
    return PackShown.of(await asking.fabric.packs.get(asking.principal, ref))
