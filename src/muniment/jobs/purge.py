"""ERA-3: what erasures left beneath the tables goes: keys rotated away, tables rewritten, the log of before cleared."""

from muniment.errors import PurgeIncomplete
from muniment.fabric import archives, rotation
from muniment.fabric.connect import Opened
from muniment.jobs.job import Done
from muniment.storage import purging, unowned


async def run(opened: Opened, tenant_id: str) -> Done:
    """For all erasures that were not purged yet, at once; each receipt then has its `purged_at`."""
    desk = opened.desk
    async with desk.transaction(tenant_id, "jobs") as tx:
        waiting = [row["erasure_id"] for row in await tx.rows("erasure.unpurged")]
    if not waiting:
        return Done()
    await _clear_sessions(opened, tenant_id, waiting)
    await _read_before(opened, tenant_id)
    await archives.blank(desk, tenant_id)
    await rotation.rotate(desk, tenant_id)
    await purging.require_possible(opened.superuser)
    await purging.outlive_snapshots(opened.superuser)
    await purging.rewrite(opened.address, tenant_id)
    await unowned.clear(opened.superuser, opened.data)
    await purging.clear_log(opened.superuser)
    async with desk.transaction(tenant_id, "jobs") as tx:
        done = await tx.rows("erasure.purged", erasure_ids=waiting)
        if done:
            for row in done:
                tx.told.row("erasures.purged", erasure_id=row["erasure_id"], purged_at=row["purged_at"])
            tx.emit("memory.note", "auto", about="purged", erasures=[row["erasure_id"] for row in done])
    return Done({"erasures": len(done)})


async def _read_before(opened: Opened, tenant_id: str) -> None:
    """Whom a capture names is known once it was read: those from before the erasure come first."""
    async with opened.desk.transaction(tenant_id, "auditor") as tx:
        row = await tx.row("erasure.unread")
    if row is not None and row["captures"]:
        raise PurgeIncomplete(f"{row['captures']} captures from before the erasure wait to be consolidated")


async def _clear_sessions(opened: Opened, tenant_id: str, erasure_ids: list[str]) -> None:
    """Once more: the store may have been away when the erasure was made."""
    desk = opened.desk
    async with desk.transaction(tenant_id, "jobs") as tx:
        rows = await tx.rows("erasure.working", erasure_ids=erasure_ids)
    for row in rows:
        await desk.sessions.forget(tenant_id, row["session_id"], row["memory_ids"])
    if desk.sessions.away:
        raise PurgeIncomplete("the session store is away, and may hold sealed bytes of what was erased")
