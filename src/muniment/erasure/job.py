"""ERA-3: what erasures left beneath the tables goes: keys rotated away, tables rewritten, the log of before cleared."""

from muniment.archives import verbs as archives
from muniment.erasure import key_rotation as rotation
from muniment.erasure import purge as purging
from muniment.erasure import unowned_files as unowned
from muniment.errors import PurgeIncomplete
from muniment.job import Done
from muniment.opening import Opened


async def run(opened: Opened, tenant_id: str) -> Done:
    """For all erasures that were not purged yet, at once; each receipt then has its `purged_at`."""
    context = opened.context
    async with context.transaction(tenant_id, "jobs") as tx:
        waiting = [row["erasure_id"] for row in await tx.rows("erasure.unpurged")]
    if not waiting:
        return Done()
    await _clear_sessions(opened, tenant_id, waiting)
    await _read_before(opened, tenant_id)
    await archives.blank(context, tenant_id)
    await rotation.rotate(context, tenant_id)
    await purging.require_possible(opened.superuser)
    await purging.outlive_snapshots(opened.superuser)
    await purging.rewrite(opened.address, tenant_id)
    await unowned.clear(opened.superuser, opened.data)
    await purging.clear_log(opened.superuser)
    async with context.transaction(tenant_id, "jobs") as tx:
        done = await tx.rows("erasure.purged", erasure_ids=waiting)
        if done:
            for row in done:
                tx.told.row("erasures.purged", erasure_id=row["erasure_id"], purged_at=row["purged_at"])
            tx.emit("memory.note", "auto", about="purged", erasures=[row["erasure_id"] for row in done])
    return Done({"erasures": len(done)})


async def _read_before(opened: Opened, tenant_id: str) -> None:
    """Whom a capture names is known once it was read: those from before the erasure come first."""
    async with opened.context.transaction(tenant_id, "auditor") as tx:
        row = await tx.row("erasure.unread")
    if row is not None and row["captures"]:
        raise PurgeIncomplete(f"{row['captures']} captures from before the erasure wait to be consolidated")


async def _clear_sessions(opened: Opened, tenant_id: str, erasure_ids: list[str]) -> None:
    """Once more: the store may have been away when the erasure was made."""
    context = opened.context
    async with context.transaction(tenant_id, "jobs") as tx:
        rows = await tx.rows("erasure.working", erasure_ids=erasure_ids)
    for row in rows:
        await context.sessions.forget(tenant_id, row["session_id"], row["memory_ids"])
    if context.sessions.away:
        raise PurgeIncomplete("the session store is away, and may hold sealed bytes of what was erased")
