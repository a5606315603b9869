"""Forgetting a person: at once for every interface, and then from beneath (ERA-2, ERA-3)."""

from muniment.context import FabricContext, retry_on_pack_change
from muniment.erasure import store as erasure
from muniment.model.context import Asker
from muniment.model.erasure import Erasure, ErasureInput


@retry_on_pack_change
async def erase(context: FabricContext, asker: Asker, given: ErasureInput) -> Erasure:
    """Erase whom the officer names; the purge is a job's, and sets `purged_at` on the receipt."""
    officer = await context.authorise(asker, "erase")
    await context.open_tenant(officer.tenant_id)
    pack = await context.pack_for(officer)
    async with context.write_once(officer.tenant_id, "privacy", under=pack) as tx:
        receipt, sessions = await erasure.erase(tx, context.vault, officer, given, pack)
    # A store that is away keeps sealed bytes that nothing opens any more; the purge comes again.
    for session_id, memory_ids in sessions.items():
        await context.sessions.forget(officer.tenant_id, session_id, memory_ids)
    return receipt


async def receipts(context: FabricContext, asker: Asker, count: int, after: str | None) -> list[Erasure]:
    """The tenant's erasures, the latest first; raises `NotFound` for an `after` that it has not."""
    await context.authorise(asker, "read_erasures")
    async with context.transaction(asker.tenant_id, "auditor") as tx:
        return await erasure.receipts(tx, count, after)
