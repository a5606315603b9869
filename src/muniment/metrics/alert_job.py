"""JOB-7: what needs somebody is told once: reviews past their time, a backlog, what is about to end, full budgets."""

from muniment.database.storage import Transaction
from muniment.job import Done
from muniment.opening import Opened
from muniment.pack import Pack
from muniment.promotion import store as promotion
from muniment.promotion.rules import budget_name

AT_ONCE = 1000
PURGE = "purge"
BACKLOG = "contradictions"


async def run(opened: Opened, tenant_id: str) -> Done:
    """Each alert that is due and was not raised yet; those that are over are taken back."""
    context = opened.context
    pack = await context.current_pack(tenant_id)
    async with context.transaction(tenant_id, "jobs") as tx:
        tx.defer("jobs.stale_alerts")
        counts = {
            "sla": await _overdue(tx),
            "backlog": await _backlog(tx, pack),
            "expiring": await _expiring(tx, pack),
            "budgets": await _budgets(tx, pack),
            "purges": await _purges(tx),
        }
    return Done(counts, more=AT_ONCE in counts.values())


async def _overdue(tx: Transaction) -> int:
    rows = await tx.rows("jobs.overdue", count=AT_ONCE)
    raised = await _raise(tx, [f"sla {row['proposal_id']}" for row in rows])
    for row in rows:
        if f"sla {row['proposal_id']}" in raised:
            said = {"proposal_id": row["proposal_id"], "write_class": row["class"], "due_at": row["due_at"].isoformat()}
            tx.emit("memory.sla_breached", "auto", **said)
    return len(raised)


async def _backlog(tx: Transaction, pack: Pack) -> int:
    row = await tx.row("jobs.backlog")
    waiting = row["contradictions"] if row is not None else 0
    if waiting < pack.memory_layer.alerts.contradictions:
        tx.defer("jobs.end_alerts", keys=[BACKLOG])
        return 0
    if not await _raise(tx, [BACKLOG]):
        return 0
    assert row is not None
    tx.emit(
        "memory.note", "auto", about="contradiction_backlog", contradictions=waiting, since=row["since"].isoformat()
    )
    return 1


async def _expiring(tx: Transaction, pack: Pack) -> int:
    told = 0
    for tier, within in pack.memory_layer.alerts.expiring_within.items():
        if within is None:
            continue
        rows = await tx.rows("jobs.expiring", tier=tier, until=tx.now + within, count=AT_ONCE)
        raised = await _raise(tx, [f"expiring {row['memory_id']}" for row in rows])
        if raised:
            first = rows[0]["expires_at"].isoformat()
            tx.emit("memory.expiring", "auto", tier=tier, memories=len(raised), first_at=first)
        told += len(raised)
    return told


async def _budgets(tx: Transaction, pack: Pack) -> int:
    told = 0
    for budget, share in (await promotion.room(tx, pack)).shares():
        near, full = f"budget {budget_name(budget)} near", f"budget {budget_name(budget)} full"
        over = [near] if share >= pack.memory_layer.alerts.budget_share else []
        over += [full] if share >= 1 else []
        tx.defer("jobs.end_alerts", keys=[key for key in (near, full) if key not in over])
        for key in await _raise(tx, over):
            said = {"budget": budget_name(budget), "share": round(share, 4), "full": key == full}
            tx.emit("memory.budget_exceeded", "auto", **said)
            told += 1
    return told


async def _purges(tx: Transaction) -> int:
    """Erasures that wait for their purge because the last one could not be finished."""
    row = await tx.row("jobs.unpurged")
    if row is None or not row["erasures"] or row["error"] is None:
        tx.defer("jobs.end_alerts", keys=[PURGE])
        return 0
    if not await _raise(tx, [PURGE]):
        return 0
    since = row["since"].isoformat()
    tx.emit("memory.note", "auto", about="purge_waits", erasures=row["erasures"], since=since, why=row["error"])
    return 1


async def _raise(tx: Transaction, keys: list[str]) -> set[str]:
    """Those of them that nobody had raised: of two runs at once each alert is one's."""
    raised = await tx.gather(*(("jobs.raise_alert", {"key": key}) for key in sorted(keys)))
    return {row["key"] for rows in raised for row in rows}
