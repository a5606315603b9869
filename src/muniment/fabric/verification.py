"""The audit chain's verbs: seal what happened, prove that it stands, give the head to keep elsewhere."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from muniment.errors import InvalidInput, SealBroken
from muniment.fabric.desk import Desk
from muniment.governance import chain, row_sweeps
from muniment.governance.chain import Progress
from muniment.model.chain import Head, Verification
from muniment.model.context import Asker
from muniment.model.fields import build
from muniment.policy.row_lists import RowKey

__all__ = ["Progress", "head", "seal", "verify"]


async def seal(desk: Desk, tenant_id: str) -> int:
    """Seal all that is not sealed yet, batch after batch; how many events that were."""
    if (own := await desk.own_key(tenant_id)) is None:
        return 0
    key, sealed = chain.ChainKey(own), 0
    rows_key = await adopt(desk, tenant_id)
    while True:
        sweep = None
        if rows_key is not None:
            async with desk.transaction(tenant_id, "auditor") as tx:
                sweep = await row_sweeps.sweep(tx, rows_key)
        # The login that writes batches reads no keys.
        async with desk.transaction(tenant_id, "jobs") as tx:
            done = await chain.seal(tx, key, sweep=sweep)
        if done.events == 0 and not done.rows:
            return sealed
        sealed += done.events


async def adopt(desk: Desk, tenant_id: str) -> RowKey | None:
    """The tenant's audit key; where it has none, make it and list all rows that are there, in one transaction.

    That is the first sealing after an upgrade. It holds the tenant's clock, so that no row is written meanwhile. None
    for a key that was changed, or taken away after the log listed rows: `verify` tells of it.
    """
    try:
        async with desk.transaction(tenant_id, "writer") as tx:
            if (known := await desk.vault.row_key(tx)) is not None:
                return known
            await tx.tick()
            if await desk.vault.row_key(tx) is None and await tx.row("rows.any_list") is None:
                await desk.vault.create_row_key(tx)
                async with desk.transaction(tenant_id, "auditor") as reading:
                    told = await row_sweeps.every_row(reading)
                tx.told.hashed(told)
                tx.emit("memory.note", "auto", about="rows_adopted", rows=len(told))
        async with desk.transaction(tenant_id, "writer") as tx:
            return await desk.vault.row_key(tx)
    except SealBroken:
        return None


async def head(desk: Desk, asker: Asker) -> Head:
    """The head of the chain; raises `NotFound` when nothing is sealed yet."""
    await desk.authorise(asker, "audit")
    async with desk.transaction(asker.tenant_id, "auditor") as tx:
        return await chain.head(tx)


async def verify(
    desk: Desk,
    asker: Asker,
    given: Head | Mapping[str, Any] | None,
    on_progress: Progress | None,
    *,
    cursor: str | None = None,
    count: int | None = None,
) -> Verification:
    """Whether the chain holds, a head that was exported is still in it, and rows are what the log says."""
    if cursor is not None and not isinstance(cursor, str):
        raise InvalidInput("expected a cursor as an answer had it", field="cursor")
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= 2**31):
        raise InvalidInput("expected a whole number of events, at least 1", field="count")
    if given is not None and not isinstance(given, Head):
        if not isinstance(given, Mapping):
            raise InvalidInput("expected a head as it was exported", field="head")
        given = build(Head, dict(given), within="head")
    await desk.authorise(asker, "audit")
    opening = partial(desk.shadow, asker.tenant_id)
    found = await chain.verify(opening, desk.vault, given, on_progress, cursor=cursor, count=count)
    async with opening() as tx:
        row = await tx.row("tenant.clock_bound")
    bound = row["bound"] if row is not None else None
    return found.model_copy(update={"clock_bound_s": bound.total_seconds() if bound is not None else None})
