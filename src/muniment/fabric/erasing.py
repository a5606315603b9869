"""Forgetting a person: at once for every interface, and then from beneath (ERA-2, ERA-3)."""

from muniment.fabric.desk import Desk, decided_again
from muniment.governance import erasure
from muniment.model.context import Asker
from muniment.model.erasure import Erasure, ErasureInput


@decided_again
async def erase(desk: Desk, asker: Asker, given: ErasureInput) -> Erasure:
    """Erase whom the officer names; the purge is a job's, and sets `purged_at` on the receipt."""
    officer = await desk.authorise(asker, "erase")
    await desk.open_tenant(officer.tenant_id)
    pack = await desk.pack_for(officer)
    async with desk.deed(officer.tenant_id, "privacy", under=pack) as tx:
        receipt, sessions = await erasure.erase(tx, desk.vault, officer, given, pack)
    # A store that is away keeps sealed bytes that nothing opens any more; the purge comes again.
    for session_id, memory_ids in sessions.items():
        await desk.sessions.forget(officer.tenant_id, session_id, memory_ids)
    return receipt


async def receipts(desk: Desk, asker: Asker, count: int, after: str | None) -> list[Erasure]:
    """The tenant's erasures, the latest first; raises `NotFound` for an `after` that it has not."""
    await desk.authorise(asker, "read_erasures")
    async with desk.transaction(asker.tenant_id, "auditor") as tx:
        return await erasure.receipts(tx, count, after)
