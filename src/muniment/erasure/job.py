"""The purge job (ERA-3): rotate the key, rewrite the tables, clear the old log, and date the receipts."""

from functools import partial

import anyio

from muniment.archives import verbs as archives
from muniment.database.cluster import checks
from muniment.database.migrate import as_owner_of_schema
from muniment.erasure import key_rotation as rotation
from muniment.erasure import purge
from muniment.erasure.purge_nodes import Servers
from muniment.errors import PurgeIncomplete
from muniment.job import JobResult
from muniment.opening import Opened

# How often to check whether all processes have confirmed that they dropped what was erased.
_TRIES = 10


async def run(opened: Opened, tenant_id: str) -> JobResult:
    """Purge all erasures that wait for it together, and set `purged_at` on their receipts."""
    context = opened.context
    async with context.transaction(tenant_id, "jobs") as tx:
        waiting = [row["erasure_id"] for row in await tx.rows("erasure.unpurged")]
    if not waiting:
        return JobResult()
    await _clear_sessions(opened, tenant_id, waiting)
    await _require_all_read(opened, tenant_id)
    await archives.blank(context, tenant_id)
    await rotation.rotate(context, tenant_id)
    servers = await Servers.of(opened.superuser)
    await servers.each(purge.require_possible)
    await servers.each(purge.wait_for_snapshots)
    await _require_dropped(opened, tenant_id, waiting)
    await servers.require_nothing_left_behind()
    shards = await servers.rewrite(opened.address, tenant_id)
    await servers.each(partial(purge.remove_unowned_files, data=opened.data))
    await servers.clear_logs(opened.standbys)
    await servers.require_unmoved(opened.address, tenant_id, shards)
    await _require_sound(opened)
    async with context.transaction(tenant_id, "jobs") as tx:
        done = await tx.rows("erasure.purged", erasure_ids=waiting)
        if done:
            for row in done:
                tx.event_rows.add("erasures.purged", erasure_id=row["erasure_id"], purged_at=row["purged_at"])
            tx.emit("memory.note", "auto", about="purged", erasures=[row["erasure_id"] for row in done])
    return JobResult({"erasures": len(done)})


async def _require_sound(opened: Opened) -> None:
    """Raise `PurgeIncomplete` while a cluster keeps less than is promised, or a node cannot be checked (SCL-2)."""
    async with as_owner_of_schema(opened.address) as connection:
        if found := await checks.problems(connection):
            raise PurgeIncomplete(f"the cluster is not safe to use: {found[0]}")


async def _require_all_read(opened: Opened, tenant_id: str) -> None:
    """Raise `PurgeIncomplete` while captures from before the erasure are unread: whom they name is not known yet."""
    async with opened.context.transaction(tenant_id, "auditor") as tx:
        row = await tx.row("erasure.unread")
    if row is not None and row["captures"]:
        raise PurgeIncomplete(f"{row['captures']} captures from before the erasure are not consolidated yet")


async def _require_dropped(opened: Opened, tenant_id: str, erasure_ids: list[str]) -> None:
    """Raise `PurgeIncomplete` while a process may hold vectors or words of what was erased in memory.

    INVARIANT: no open transaction still sees what was erased, so that no process can read it any more.
    """
    context = opened.context
    await context.index.confirm(tenant_id)
    row = None
    for _ in range(_TRIES):
        async with context.transaction(tenant_id, "jobs") as tx:
            row = await tx.row("erasure.unconfirmed", erasure_ids=erasure_ids)
        if row is None or not row["processes"]:
            return
        await anyio.sleep(purge.PAUSE)
    raise PurgeIncomplete(
        f"{row['processes'] if row is not None else 0} processes have not confirmed yet that they dropped what was "
        "erased from memory; each does so within a minute, or its lease ends after three"
    )


async def _clear_sessions(opened: Opened, tenant_id: str, erasure_ids: list[str]) -> None:
    """Clear the session store once more: it may have been unavailable when the erasure was made."""
    context = opened.context
    async with context.transaction(tenant_id, "jobs") as tx:
        rows = await tx.rows("erasure.working", erasure_ids=erasure_ids)
    for row in rows:
        await context.sessions.forget(tenant_id, row["session_id"], row["memory_ids"])
    if context.sessions.away:
        raise PurgeIncomplete("the session store is away, and may hold sealed bytes of what was erased")
