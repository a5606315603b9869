"""The audit chain's verbs: seal what happened, prove that it stands, give the head to keep elsewhere."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from muniment.audit import chain, row_audit
from muniment.audit import verify as verification
from muniment.audit.verify import Progress
from muniment.context import FabricContext
from muniment.database.row_lists import RowKey
from muniment.errors import InvalidInput, SealBroken
from muniment.model.chain import Head, Verification
from muniment.model.context import Asker
from muniment.model.fields import build

__all__ = ["Progress", "head", "seal", "verify"]


async def seal(context: FabricContext, tenant_id: str) -> int:
    """Seal all that is not sealed yet, batch after batch; how many events that were."""
    if (own := await context.own_key(tenant_id)) is None:
        return 0
    key, sealed = chain.ChainKey(own), 0
    rows_key = await adopt(context, tenant_id)
    while True:
        sweep = None
        if rows_key is not None:
            async with context.transaction(tenant_id, "auditor") as tx:
                sweep = await row_audit.sweep(tx, rows_key)
        # The login that writes batches reads no keys.
        async with context.transaction(tenant_id, "jobs") as tx:
            done = await chain.seal(tx, key, sweep=sweep)
        if done.events == 0 and not done.rows:
            return sealed
        sealed += done.events


async def adopt(context: FabricContext, tenant_id: str) -> RowKey | None:
    """The tenant's audit key; where it has none, make it and list all rows that are there, in one transaction.

    That is the first sealing after an upgrade. It holds the tenant's clock, so that no row is written meanwhile. None
    for a key that was changed, or taken away after the log listed rows: `verify` tells of it.
    """
    try:
        async with context.transaction(tenant_id, "writer") as tx:
            if (known := await context.vault.row_key(tx)) is not None:
                return known
            await tx.tick()
            if await context.vault.row_key(tx) is None and await tx.row("rows.any_list") is None:
                await context.vault.create_row_key(tx)
                async with context.transaction(tenant_id, "auditor") as reading:
                    told = await row_audit.every_row(reading)
                tx.event_rows.add_hashed(told)
                tx.emit("memory.note", "auto", about="rows_adopted", rows=len(told))
        async with context.transaction(tenant_id, "writer") as tx:
            return await context.vault.row_key(tx)
    except SealBroken:
        return None


async def head(context: FabricContext, asker: Asker) -> Head:
    """The head of the chain; raises `NotFound` when nothing is sealed yet."""
    await context.authorise(asker, "audit")
    async with context.transaction(asker.tenant_id, "auditor") as tx:
        return await chain.head(tx)


async def verify(
    context: FabricContext,
    asker: Asker,
    given: Head | Mapping[str, Any] | None,
    on_progress: Progress | None,
    *,
    cursor: str | None = None,
    count: int | None = None,
) -> Verification:
    """Whether the chain holds, a head that was exported is still in it, and rows are what the log says."""
    if cursor is not None and not isinstance(cursor, str):
        raise InvalidInput("expected a cursor that verify returned", field="cursor")
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 2**31):
        raise InvalidInput("expected a whole number of events, at least 1", field="count")
    if given is not None and not isinstance(given, Head):
        if not isinstance(given, Mapping):
            raise InvalidInput("expected a head as it was exported", field="head")
        given = build(Head, dict(given), within="head")
    await context.authorise(asker, "audit")
    opening = partial(context.read_only, asker.tenant_id)
    found = await verification.verify(opening, context.vault, given, on_progress, cursor=cursor, count=count)
    async with opening() as tx:
        row = await tx.row("tenant.clock_bound")
    bound = row["bound"] if row is not None else None
    return found.model_copy(update={"clock_bound_s": bound.total_seconds() if bound is not None else None})
