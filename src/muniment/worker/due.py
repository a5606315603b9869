"""Where work waits: which jobs of which tenants are due, by the fabric's own clock.

A clock that jumps does no harm: ahead, a job runs once and not once for each time it missed; back, it runs at once
rather than wait for a time long gone to come again.
"""

import logging
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from muniment.database.storage import Row
from muniment.job import Job
from muniment.opening import Opened
from muniment.pack import Pack
from muniment.worker.registry import JOBS

log = logging.getLogger("muniment.jobs")

# A job that fails is tried again after its pause, doubled for each failure in a row, up to this.
LONGEST_PAUSE = timedelta(hours=1)
# Seconds.
PACK_KEPT = 30.0
# Seconds between two looks for what is due, at least.
LOOK_EVERY = 1.0
# Looking takes a fifth of the time at most, however many tenants there are.
_REST = 4


@dataclass(frozen=True)
class Due:
    """A job that has work, or may have."""

    tenant_id: str
    job: str


@dataclass(frozen=True)
class Ran:
    """When a job ran last, and how far the tenant was then."""

    at: datetime
    seq: int
    next_at: datetime | None
    failures: int


def is_due(job: Job, pause: timedelta | None, seq: int, ran: Ran | None, now: datetime, *, eager: bool = False) -> bool:
    """Whether a job should run in a tenant that is at that number; eager, it does not rest where the log moved."""
    if pause is None:
        return False
    if ran is None or (eager and seq != ran.seq and not ran.failures):
        return True
    if ran.next_at is not None and ran.next_at <= now and not ran.failures:
        return True
    waited = now - ran.at
    if waited < timedelta(0):
        return True
    rests = min(pause * 2 ** min(ran.failures, 16), max(pause, LONGEST_PAUSE))
    return waited >= rests and (not job.follows_log or seq != ran.seq or ran.failures > 0)


def rest_after(took: float) -> float:
    """For how many seconds to rest after a look that took so many."""
    return max(LOOK_EVERY, _REST * took)


class DueJobs:
    """Looks at all tenants at once; what their packs say of the schedule is asked again now and then."""

    def __init__(self, opened: Opened, *, eager: bool = False) -> None:
        self._opened = opened
        self._eager = eager
        self._packs: dict[str, tuple[float, Pack]] = {}

    async def due(self, tenants: Iterable[str] | None = None) -> list[Due]:
        """All that is due now; in those tenants only, where they are named."""
        context = self._opened.context
        now = context.now()
        # Any name opens the transaction: the jobs' login sees where all tenants are.
        async with context.transaction("*", "jobs") as tx:
            rows = await tx.rows("jobs.known")
        by_tenant: dict[str, list[Row]] = {}
        for row in rows:
            by_tenant.setdefault(row["tenant_id"], []).append(row)
        wanted = set(tenants) if tenants is not None else by_tenant.keys()
        found: list[Due] = []
        for tenant_id in sorted(wanted & by_tenant.keys()):
            try:
                pack = await self._pack(tenant_id)
            except Exception as error:
                # What one tenant registered stops no other: its jobs go by the built-in schedule.
                log.warning("the pack of tenant %s cannot be read: %s", tenant_id, type(error).__name__)
                pack = self._opened.context.packs.default
            found += [Due(tenant_id, name) for name in _due_here(by_tenant[tenant_id], pack, now, self._eager)]
        return found

    async def _pack(self, tenant_id: str) -> Pack:
        read_at, pack = self._packs.get(tenant_id, (0.0, None))
        if pack is None or time.monotonic() - read_at > PACK_KEPT:
            pack = await self._opened.context.current_pack(tenant_id)
            self._packs[tenant_id] = (time.monotonic(), pack)
        return pack


def _due_here(rows: list[Row], pack: Pack, now: datetime, eager: bool) -> list[str]:
    ran: Mapping[str, Ran] = {
        row["job"]: Ran(row["ran_at"], row["ran_seq"], row["next_at"], row["failures"])
        for row in rows
        if row["job"] is not None
    }
    schedule, seq = pack.memory_layer.jobs, rows[0]["seq"]
    return [
        name for name, job in JOBS.items() if is_due(job, getattr(schedule, name), seq, ran.get(name), now, eager=eager)
    ]
