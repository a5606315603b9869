"""The jobs of this package: alerts (JOB-7), and the scan for personal data that redaction should have masked (MET-4).

An alert is raised once: for reviews past their due time, a backlog, memories about to expire, full budgets, purges that
fail.
"""

from typing import Any

from muniment.database.storage import Transaction
from muniment.job import JobResult
from muniment.metrics.verbs import scan_pii
from muniment.opening import Opened
from muniment.pack import Pack
from muniment.promotion import store as promotion
from muniment.promotion.rules import budget_name


async def scan(opened: Opened, tenant_id: str) -> JobResult:
    """Scan a bounded number of memories; the metrics show what was found."""
    found = await scan_pii(opened.context, tenant_id)
    return JobResult({"memories": found.scanned, "violations": len(found.found)}, more=not found.done)


AT_ONCE = 1000
PURGE = "purge"
BACKLOG = "contradictions"


async def alert(opened: Opened, tenant_id: str) -> JobResult:
    """Raise each alert that is due and was not raised yet, and end those whose cause is gone."""
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
    return JobResult(counts, more=AT_ONCE in counts.values())


async def _overdue(tx: Transaction) -> int:
    rows = {f"sla {row['proposal_id']}": row for row in await tx.rows("jobs.overdue", count=AT_ONCE)}
    raised = await _raise(tx, list(rows))
    for key, row in rows.items():
        if key in raised:
            event = {"proposal_id": row["proposal_id"], "write_class": row["class"]}
            tx.emit("memory.sla_breached", "auto", **event, due_at=row["due_at"].isoformat())
    return len(raised)


async def _backlog(tx: Transaction, pack: Pack) -> int:
    (row,) = await tx.rows("jobs.backlog")
    due = row["contradictions"] >= pack.memory_layer.alerts.contradictions
    return await _raise_or_end(tx, BACKLOG, due, {"about": "contradiction_backlog", **row})


async def _expiring(tx: Transaction, pack: Pack) -> int:
    count = 0
    for tier, within in pack.memory_layer.alerts.expiring_within.items():
        if within is None:
            continue
        rows = await tx.rows("jobs.expiring", tier=tier, until=tx.now + within, count=AT_ONCE)
        if raised := await _raise(tx, [f"expiring {row['memory_id']}" for row in rows]):
            first = rows[0]["expires_at"].isoformat()
            tx.emit("memory.expiring", "auto", tier=tier, memories=len(raised), first_at=first)
        count += len(raised)
    return count


async def _budgets(tx: Transaction, pack: Pack) -> int:
    count = 0
    for budget, share in (await promotion.room(tx, pack)).shares():
        name = budget_name(budget)
        near, full = f"budget {name} near", f"budget {name} full"
        over = [near] if share >= pack.memory_layer.alerts.budget_share else []
        over += [full] if share >= 1 else []
        tx.defer("jobs.end_alerts", keys=[key for key in (near, full) if key not in over])
        for key in await _raise(tx, over):
            tx.emit("memory.budget_exceeded", "auto", budget=name, share=round(share, 4), full=key == full)
            count += 1
    return count


async def _purges(tx: Transaction) -> int:
    """Erasures that wait for their purge because the last one failed."""
    (row,) = await tx.rows("jobs.unpurged")
    due = bool(row["erasures"]) and row["error"] is not None
    event = {"about": "purge_waits", "erasures": row["erasures"], "since": row["since"], "why": row["error"]}
    return await _raise_or_end(tx, PURGE, due, event)


async def _raise_or_end(tx: Transaction, key: str, due: bool, event: dict[str, Any]) -> int:
    """Raise the tenant's alert of that key as a note, once; end it if it is not due."""
    if not due:
        tx.defer("jobs.end_alerts", keys=[key])
    elif await _raise(tx, [key]):
        tx.emit("memory.note", "auto", **event | {"since": event["since"].isoformat()})
        return 1
    return 0


async def _raise(tx: Transaction, keys: list[str]) -> set[str]:
    """Raise these alerts, and return the new ones; of two runs at the same time only one raises each."""
    raised = await tx.gather(*(("jobs.raise_alert", {"key": key}) for key in sorted(keys)))
    return {row["key"] for rows in raised for row in rows}
