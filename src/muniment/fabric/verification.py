"""The audit chain's verbs: seal what happened, prove that it stands, give the head to keep elsewhere."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from muniment.errors import InvalidInput
from muniment.fabric.desk import Desk
from muniment.governance import chain
from muniment.governance.chain import Progress
from muniment.model.chain import Head, Verification
from muniment.model.context import Asker
from muniment.model.fields import build

__all__ = ["Progress", "head", "seal", "verify"]


async def seal(desk: Desk, tenant_id: str) -> int:
    """Seal all that is not sealed yet, batch after batch; how many events that were."""
    if (own := await desk.own_key(tenant_id)) is None:
        return 0
    key, sealed = chain.ChainKey(own), 0
    while True:
        # The login that writes batches reads no keys.
        async with desk.transaction(tenant_id, "jobs") as tx:
            done = await chain.seal(tx, key)
        if done == 0:
            return sealed
        sealed += done


async def head(desk: Desk, asker: Asker) -> Head:
    """The head of the chain; raises `NotFound` when nothing is sealed yet."""
    await desk.authorise(asker, "audit")
    async with desk.transaction(asker.tenant_id, "auditor") as tx:
        return await chain.head(tx)


async def verify(
    desk: Desk, asker: Asker, given: Head | Mapping[str, Any] | None, on_progress: Progress | None
) -> Verification:
    """Whether the chain holds, and a head that was exported is still in it."""
    if given is not None and not isinstance(given, Head):
        if not isinstance(given, Mapping):
            raise InvalidInput("expected a head as it was exported", field="head")
        given = build(Head, dict(given), within="head")
    await desk.authorise(asker, "audit")
    opening = partial(desk.transaction, asker.tenant_id, "auditor")
    found = await chain.verify(opening, desk.vault, given, on_progress)
    async with opening() as tx:
        row = await tx.row("tenant.clock_bound")
    bound = row["bound"] if row is not None else None
    return found.model_copy(update={"clock_bound_s": bound.total_seconds() if bound is not None else None})
