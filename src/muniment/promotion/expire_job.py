"""JOB-2: report memories that expired; beyond the replay horizon remove their content and leave tombstones."""

from muniment.database import cursors
from muniment.database.locks import block_erasures
from muniment.job import JobResult
from muniment.opening import Opened
from muniment.pack.combined import replay_horizon
from muniment.promotion.retraction_store import remove_content

CURSOR = "expire"
AT_ONCE = 500


async def run(opened: Opened, tenant_id: str) -> JobResult:
    """Report what expired since the last run, by tier and class, and collect some of what can be collected."""
    expired = await _report(opened, tenant_id)
    collected = await _collect(opened, tenant_id)
    return JobResult({"expired": expired, "collected": collected}, more=collected == AT_ONCE)


async def _report(opened: Opened, tenant_id: str) -> int:
    async with opened.context.transaction(tenant_id, "jobs") as tx:
        cursor = await cursors.lock(tx, CURSOR)
        clock = await tx.row("tenant.clock")
        # By the tenant's own time, which never runs backwards: nothing promoted later can have ended before it.
        until = max(tx.now, clock["at"]) if clock is not None and clock["at"] is not None else tx.now
        rows = await tx.rows("jobs.expired", since=cursor["at"], until=until)
        tx.defer("cursor.move_to", cursor=CURSOR, at=max(until, cursor["at"] or until))
        for row in rows:
            tx.emit("memory.expired", "auto", tier=row["tier"], write_class=row["class"], memories=row["memories"])
        return sum(row["memories"] for row in rows)


async def _collect(opened: Opened, tenant_id: str) -> int:
    context = opened.context
    await context.current_pack(tenant_id)
    async with context.transaction(tenant_id, "jobs") as tx:
        horizon = replay_horizon(await context.packs.within_notice(tx))
        await cursors.lock(tx, CURSOR)
        await block_erasures(tx)
        tx.defer("holders.clean")
        rows = await tx.rows("jobs.collectable", before=tx.now - horizon, count=AT_ONCE)
        if rows:
            ids = [row["memory_id"] for row in rows]
            await remove_content(tx, ids, await tx.rows("tombstone.digests", memory_ids=ids))
            tx.emit("memory.note", "auto", about="collected", memories=len(rows))
        return len(rows)
