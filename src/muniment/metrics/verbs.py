"""The verbs of metrics: measure a window, record golden results, scan for personal data."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

from pydantic import Field

from muniment.context import FabricContext
from muniment.database.storage import Transaction
from muniment.errors import InvalidInput
from muniment.metrics import measure as measuring
from muniment.metrics import writebacks
from muniment.model.context import Principal
from muniment.model.fields import Instant
from muniment.model.ids import make_id
from muniment.model.inputs import VerbInput
from muniment.model.metrics import GoldenResult, Metrics, PiiScan
from muniment.model.zones import UTC_NAME, ZoneName
from muniment.pack import Pack
from muniment.standby_reads import opening_beside, reading
from muniment.verbs.declaration import verb

# The window by default.
WINDOW = timedelta(days=30)
MOST_GOLDEN = 10_000
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


class Window(VerbInput):
    """A window of time."""

    since: Instant | None = None
    until: Instant | None = None
    zone: ZoneName = Field(UTC_NAME, description="the time zone of the days that decisions are counted by")
    storage: bool = Field(True, description="count what is stored and how full budgets are: reads every live memory")


@verb("metrics", right="metrics", http="GET /metrics", custom_route=True, standby=True)
async def metrics(context: FabricContext, reader: Principal, request: Window) -> Metrics:
    """Compute the metrics of the tenant for the time after `since` up to `until`.

    By default the 30 days up to now. Numbers, names and ids; no content. Raises `InvalidInput` for a window that ends
    before it begins.
    """
    now = context.now()
    end = request.until if request.until is not None else now
    if end > now:
        raise InvalidInput("lies in the future", field="until")
    # Nothing was ever written so long ago; the calendar has no month before its first.
    begin = request.since if request.since is not None else max(end, _EARLIEST) - WINDOW
    if begin >= end:
        raise InvalidInput("must lie before until", field="since" if request.since is not None else "until")

    async def measure(tx: Transaction, opening: Transaction, pack: Pack) -> Metrics:
        where = (tx, opening, context.vault, context.packs, pack)
        return await measuring.measure(*where, begin, end, zone=request.zone, storage=request.storage)

    async with reading(context, reader.tenant_id) as tx, opening_beside(context, tx) as opening:
        pack = await context.packs.read_in_force(tx)
        if pack is not None:
            return await measure(tx, opening, pack)
    # A tenant without any pack of its own.
    pack = await context.current_pack(reader.tenant_id)
    async with reading(context, reader.tenant_id) as tx, opening_beside(context, tx) as opening:
        return await measure(tx, opening, pack)


class GoldenResults(VerbInput):
    """How golden queries were answered."""

    results: Annotated[tuple[GoldenResult, ...], Field(min_length=1, max_length=MOST_GOLDEN, fail_fast=True)]


@verb("record_golden", right="golden", effect="pass", http="POST /golden", status=204, positional=("results",))
async def record_golden(context: FabricContext, admin: Principal, request: GoldenResults) -> None:
    """Record how golden queries were answered, each by its name, for `metrics` to count.

    An agent may not: it would judge itself.
    """
    names = [one.query for one in request.results]
    if len(set(names)) < len(names):
        raise InvalidInput("holds a query twice", field="results")
    rows = [(one.query, one.passed, one.precision, one.recall) for one in request.results]
    async with context.transaction(admin.tenant_id, "recall") as tx:
        await tx.insert_many("metrics.record_golden", rows, golden_id=make_id("gld", tx.now), by=admin.id)


@verb("scan_pii", right="work", effect="pass", http="POST /work/scan")
async def scan_pii(context: FabricContext, tenant_id: str) -> PiiScan:
    """Scan promoted memory that was not scanned yet for personal data, independently of redaction.

    One bounded pass, `done` when none is left; `metrics` counts what it finds. Safe to run twice, concurrently, or to
    be killed: a pass is recorded with where it ended.
    """
    async with context.transaction(tenant_id, "auditor") as tx:
        passed = await writebacks.next_pass(tx, context.vault, context.packs)
    if passed is None:
        return PiiScan()
    async with context.transaction(tenant_id, "jobs") as tx:
        await writebacks.record(tx, passed)
    return passed.scan
