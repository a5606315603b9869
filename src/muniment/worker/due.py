"""Which jobs of which tenants are due, by the fabric's own clock.

A clock that jumps does no harm: ahead, a job runs once and not once for each time that it missed; back, it runs at once
instead of waiting for a time long past to come again.
"""

import logging
import time
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import NamedTuple

from muniment.database.storage import Row
from muniment.job import Job
from muniment.opening import Opened
from muniment.pack import Pack
from muniment.worker.registry import JOBS

log = logging.getLogger("muniment.jobs")

# A failed job is tried again after its pause, doubled for each failure in a row, up to this.
LONGEST_PAUSE = timedelta(hours=1)
# Seconds for which the pack of a tenant is cached.
PACK_KEPT = 30.0
# Seconds between two checks for due jobs, at least.
LOOK_EVERY = 1.0
# The rest after a check, as a multiple of its duration: checks take a fifth of the time at most.
_REST = 4


class Due(NamedTuple):
    """A job that is due in a tenant."""

    tenant_id: str
    job: str


class LastRun(NamedTuple):
    """The last run of a job in a tenant: its time, the tenant's sequence number then, and the failures since."""

    at: datetime
    seq: int
    next_at: datetime | None
    failures: int


def is_due(
    job: Job, pause: timedelta | None, seq: int, last: LastRun | None, now: datetime, *, eager: bool = False
) -> bool:
    """Whether a job should run in a tenant at that sequence number; `eager` ignores the pause after new events."""
    if pause is None:
        return False
    if last is None or (eager and seq != last.seq and not last.failures):
        return True
    if last.next_at is not None and last.next_at <= now and not last.failures:
        return True
    waited = now - last.at
    if waited < timedelta(0):
        return True
    rests = min(pause * 2 ** min(last.failures, 16), max(pause, LONGEST_PAUSE))
    return waited >= rests and (not job.follows_log or seq != last.seq or last.failures > 0)


def rest_seconds(took: float) -> float:
    """How many seconds to rest after a check of all tenants that took so many."""
    return max(LOOK_EVERY, _REST * took)


class DueJobs:
    """Finds the due jobs of all tenants; the schedule of a tenant's pack is read again now and then."""

    def __init__(self, opened: Opened, *, eager: bool = False) -> None:
        self._opened = opened
        self._eager = eager
        self._packs: dict[str, tuple[float, Pack]] = {}

    async def due(self, tenants: Iterable[str] | None = None) -> list[Due]:
        """All jobs that are due now, in those tenants or in all."""
        context = self._opened.context
        now = context.now()
        # Any tenant will do: the jobs' login reads the clocks of all.
        async with context.transaction("*", "jobs") as tx:
            (rows,) = await tx.commit_with(("jobs.known", {}))
        by_tenant: dict[str, list[Row]] = {}
        for row in rows:
            by_tenant.setdefault(row["tenant_id"], []).append(row)
        wanted = set(tenants) if tenants is not None else by_tenant.keys()
        found: list[Due] = []
        for tenant_id in sorted(wanted & by_tenant.keys()):
            try:
                pack = await self._pack(tenant_id)
            except Exception as error:
                # A broken pack of one tenant stops no other: its jobs follow the built-in schedule.
                log.warning("the pack of tenant %s cannot be read: %s", tenant_id, type(error).__name__)
                pack = self._opened.context.packs.default
            found += [Due(tenant_id, name) for name in _due_names(by_tenant[tenant_id], pack, now, self._eager)]
        return found

    async def _pack(self, tenant_id: str) -> Pack:
        read_at, pack = self._packs.get(tenant_id, (0.0, None))
        if pack is None or time.monotonic() - read_at > PACK_KEPT:
            pack = await self._opened.context.current_pack(tenant_id)
            self._packs[tenant_id] = (time.monotonic(), pack)
        return pack


def _due_names(rows: list[Row], pack: Pack, now: datetime, eager: bool) -> list[str]:
    ran: Mapping[str, LastRun] = {
        row["job"]: LastRun(row["ran_at"], row["ran_seq"], row["next_at"], row["failures"])
        for row in rows
        if row["job"] is not None
    }
    schedule, seq = pack.memory_layer.jobs, rows[0]["seq"]
    return [
        name for name, job in JOBS.items() if is_due(job, getattr(schedule, name), seq, ran.get(name), now, eager=eager)
    ]
