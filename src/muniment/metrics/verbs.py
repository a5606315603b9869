"""Metrics: over which window they are asked for, how golden queries were answered, and the scan for personal data."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from pydantic import Field

from muniment.context import FabricContext
from muniment.errors import InvalidInput
from muniment.metrics import measure as measuring
from muniment.metrics import writebacks
from muniment.model.context import Asker
from muniment.model.fields import Artifact, Instant, build
from muniment.model.ids import make_id
from muniment.model.metrics import GoldenResult, Metrics, PiiScan

# The window when nobody says.
WINDOW = timedelta(days=30)
MOST_GOLDEN = 10_000
_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)


class _Window(Artifact):
    since: Instant | None = None
    until: Instant | None = None


class _Golden(Artifact):
    results: tuple[GoldenResult, ...] = Field(min_length=1, max_length=MOST_GOLDEN, fail_fast=True)


async def measured(context: FabricContext, asker: Asker, since: datetime | None, until: datetime | None) -> Metrics:
    """The metrics of the asker's tenant; raises `InvalidInput` for a window that ends before it begins."""
    given = build(_Window, {"since": since, "until": until})
    await context.authorise(asker, "metrics")
    now = context.now()
    end = given.until if given.until is not None else now
    if end > now:
        raise InvalidInput("lies in the future", field="until")
    # Nothing was ever written so long ago; the calendar has no month before its first.
    begin = given.since if given.since is not None else max(end, _EARLIEST) - WINDOW
    if begin >= end:
        raise InvalidInput("must lie before until", field="since" if given.since is not None else "until")
    pack = await context.current_pack(asker.tenant_id)
    async with context.transaction(asker.tenant_id, "auditor") as tx:
        return await measuring.measure(tx, context.vault, context.packs, pack, begin, end)


async def record_golden(context: FabricContext, asker: Asker, results: Sequence[GoldenResult]) -> None:
    """Write down how golden queries were answered; an agent may not: it would judge itself."""
    given = build(_Golden, {"results": results})
    names = [one.query for one in given.results]
    if len(set(names)) < len(names):
        raise InvalidInput("holds a query twice", field="results")
    principal = await context.authorise(asker, "golden")
    rows = [(one.query, one.passed, one.precision, one.recall) for one in given.results]
    async with context.transaction(principal.tenant_id, "recall") as tx:
        await tx.insert_many("metrics.record_golden", rows, golden_id=make_id("gld", tx.now), by=principal.id)


async def scan_for_pii(context: FabricContext, tenant_id: str) -> PiiScan:
    """One pass over promoted memories that were not looked at yet; `done` when none is left.

    Safe to run twice, at once, or to be killed: a pass is written down with where it ended.
    """
    async with context.transaction(tenant_id, "auditor") as tx:
        passed = await writebacks.next_pass(tx, context.vault, context.packs)
    if passed is None:
        return PiiScan()
    async with context.transaction(tenant_id, "jobs") as tx:
        await writebacks.record(tx, passed)
    return passed.scan
