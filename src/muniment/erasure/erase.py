"""Erasing a person or a single memory, and reading the receipts (ERA-2, ERA-5)."""

from muniment.context import FabricContext, retry_on_pack_change
from muniment.erasure import store as erasure
from muniment.model.context import Asker
from muniment.model.erasure import Erasure, ErasureInput
from muniment.model.promoted import Retraction


@retry_on_pack_change
async def erase(context: FabricContext, asker: Asker, person: ErasureInput) -> Erasure:
    """Erase a person; the content is gone when this returns. The purge job then sets `purged_at` on the receipt."""
    officer = await context.authorise(asker, "erase")
    await context.open_tenant(officer.tenant_id)
    pack = await context.pack_for(officer)
    async with context.write_once(officer.tenant_id, "privacy", under=pack) as tx:
        receipt, sessions = await erasure.erase(tx, context.vault, officer, person, pack)
    # If the session store is unavailable, it keeps sealed bytes that no key opens; the purge clears them.
    for session_id, memory_ids in sessions.items():
        await context.sessions.forget(officer.tenant_id, session_id, memory_ids)
    return receipt


async def erase_memory(context: FabricContext, asker: Asker, memory_id: str) -> Retraction:
    """Retract one memory as erased and delete its text; raises `NotFound`, or `Conflict` if that was done before."""
    officer = await context.authorise(asker, "erase")
    async with context.write_once(officer.tenant_id, "privacy") as tx:
        retraction, session_id = await erasure.erase_memory(tx, officer, memory_id)
    if session_id is not None:
        await context.sessions.forget(officer.tenant_id, session_id, [memory_id])
    return retraction


async def receipts(context: FabricContext, asker: Asker, count: int, after: str | None) -> list[Erasure]:
    """A page of the tenant's erasures, the latest first; raises `NotFound` for an unknown `after`."""
    await context.authorise(asker, "read_erasures")
    async with context.transaction(asker.tenant_id, "auditor") as tx:
        return await erasure.receipts(tx, count, after)
