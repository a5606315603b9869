"""Which jobs of which tenants are due, by the fabric's own clock.

A clock that jumps does no harm: ahead, a job runs once and not once for each time that it missed; back, it runs at once
instead of waiting for a time long past to come again.
"""

import logging
import time
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Any, NamedTuple

from pydantic_core import from_json

from muniment.database.cluster.errors import NodeAway
from muniment.database.cluster.node_liveness import EVERY_TENANT
from muniment.database.storage import Row
from muniment.job import Job
from muniment.opening import Opened
from muniment.pack.jobs import Schedule
from muniment.worker.registry import JOBS

log = logging.getLogger("muniment.jobs")

# A failed job is tried again after its pause, doubled for each failure in a row, up to this.
LONGEST_PAUSE = timedelta(hours=1)
# In a tenant that nobody writes to, the pause grows to this part of the time since the last write, up to the longest of
# the job.
_OF_QUIET = 16
# Re-read a tenant's schedule after this long, in seconds, if it has new events.
PACK_KEPT = 30.0
# Seconds between two checks for due jobs, at least; and between two checks of all tenants.
CHECK_EVERY = 1.0
CHECK_ALL_EVERY = 10.0
# The job whose result most callers wait for.
CONSOLIDATE = "consolidate"
# `consolidate` goes first where it has not run for this long, or left nothing undone when it last ran.
RESTED_AFTER = timedelta(minutes=1)
# The sequence number of a last run that left something undone: it is due again, whatever was written since.
LEFT_MORE = -1
# Seconds after which a clock-driven job is returned again if it has not run.
RETURNED_AGAIN = 30.0
# A tenant with a job that is due again this soon is checked each time.
_SOON = timedelta(minutes=1)
# Schedules that are read in one check of all tenants, as at the start of a worker, and seconds after which no other is.
MOST_READ = 500
READ_SECONDS = 1.0
# Schedules that are compared, so that equal ones are held once.
_SCHEDULES = 64
# The rest after a check, as a multiple of its duration: checks take a fifth of the time at most.
_REST = 4
# The rest after a check of those that were written to, at most, for each tenant there is and in all at least: beside
# jobs, with which it takes turns, such a check takes much longer than it is work.
_REST_EACH, _REST_AT_MOST = 0.0002, 2.0


class Due(NamedTuple):
    """A job that is due in a tenant."""

    tenant_id: str
    job: str


class LastRun(NamedTuple):
    """The last run of a job in a tenant: its time, the tenant's sequence number then, and the failures since.

    The sequence number is `LEFT_MORE` where the run left something undone.
    """

    at: datetime
    seq: int
    next_at: datetime | None
    failures: int


_NO_TIME = timedelta(0)


def is_due(
    job: Job,
    pause: timedelta | None,
    seq: int,
    last: LastRun | None,
    now: datetime,
    *,
    eager: bool = False,
    quiet: timedelta = _NO_TIME,
) -> bool:
    """Whether a job should run in a tenant at that sequence number; `eager` ignores the pause after new events.

    In a tenant that has been `quiet` for long, jobs that look for work by themselves pause longer: a sixteenth of that
    time, up to the longest pause of the job, or up to an hour where the last run failed.
    """
    if pause is None:
        return False
    if last is None or (eager and seq != last.seq and not last.failures):
        return True
    if last.next_at is not None and last.next_at <= now and not last.failures:
        return True
    waited = now - last.at
    if waited < _NO_TIME:
        return True
    rests = min(pause * 2 ** min(last.failures, 16), max(pause, LONGEST_PAUSE))
    if job.follows_log:
        return waited >= rests and (seq != last.seq or last.failures > 0)
    return waited >= rests and waited >= min(quiet / _OF_QUIET, LONGEST_PAUSE if last.failures else job.longest_pause)


def _is_light(last: LastRun | None, now: datetime) -> bool:
    """Whether a job left nothing undone when it last ran, or did not run lately, also if the clock was set back."""
    return last is None or last.seq != LEFT_MORE or not _NO_TIME <= now - last.at < RESTED_AFTER


def rest_seconds(took: float, at_least: float = CHECK_EVERY) -> float:
    """How many seconds to rest after a check that took so many."""
    return max(at_least, _REST * took)


class _CachedSchedule(NamedTuple):
    """A cached schedule, when it was read, and the tenant's sequence number then.

    The sequence number is None where the pack could not be read: the schedule is the built-in one.
    """

    schedule: Schedule
    seq: int | None
    read_at: float


class DueJobs:
    """Finds the due jobs of all tenants, and caches the schedule of each tenant's pack.

    Jobs that do not follow the log are clock-driven: they are due by the time since their last run alone.
    """

    def __init__(self, opened: Opened, *, eager: bool = False) -> None:
        self._opened = opened
        self._eager = eager
        self._cached: dict[str, _CachedSchedule] = {}
        # Equal schedules are one object: most tenants follow the same.
        self._schedules: list[Schedule] = []
        # The sequence number of each tenant at the last check, and the tenants that may soon have more work.
        self._seqs: dict[str, int] = {}
        self._active: set[str] = set()
        # The jobs of the last check that go before the others.
        self._going_first: set[Due] = set()
        # Clock-driven jobs that are due and were not returned yet, with their last runs; and those that were returned,
        # with the time of that.
        self._waiting: dict[Due, datetime | None] = {}
        self._returned: dict[Due, tuple[datetime | None, float]] = {}
        # The tenants that the last check of all did not reach: too many schedules had to be read.
        self._unchecked: list[str] = []
        # When all tenants are checked next.
        self._check_all_at = 0.0
        # Seconds to rest until the next check.
        self.rest = 0.0

    async def due(self, tenants: Iterable[str] | None = None) -> list[Due]:
        """All jobs that are due now, in those tenants or in all: first those that follow the log.

        The others come in the order of their last runs, the earliest first.
        """
        found = await self._find(sorted(tenants) if tenants is not None else None)
        return [*found.following, *found.in_order()]

    def goes_first(self, due: Due) -> bool:
        """Whether a job that the last check found goes before the others.

        It is `consolidate` in a tenant where it left nothing undone the last time, or did not run lately: however many
        tenants have thousands of captures waiting, one that captured a single fact does not wait for a turn of each of
        them (ISO-3).
        """
        return due in self._going_first

    async def next(self, others: int) -> list[Due]:
        """The due jobs that follow the log, and at most so many clock-driven ones, those that wait the longest first.

        Now and then all tenants are checked, else only those that were written to, or whose work is not done. `rest`
        then says when to check again. A clock-driven job is not returned if another worker ran it meanwhile, nor again
        before it has run, except after a while.
        """
        began = time.monotonic()
        written_to = await self._written_to() if self._unchecked or began < self._check_all_at else None
        if written_to is None:
            found = await self._find(None, most_read=MOST_READ)
            self._waiting.clear()
            self._returned = {due: then for due, then in self._returned.items() if began - then[1] < RETURNED_AGAIN}
            self._unchecked = found.unchecked
            took = time.monotonic() - began
            # The next check reads few tenants, and the next full check is delayed accordingly. While a node is away
            # every check is a full one.
            self.rest = rest_seconds(took) if self._opened.context.storage.nodes.away else CHECK_EVERY
            self._check_all_at = time.monotonic() + rest_seconds(took, CHECK_ALL_EVERY)
        else:
            unchecked, self._unchecked = self._unchecked[:MOST_READ], self._unchecked[MOST_READ:]
            found = await self._find(sorted({*unchecked, *self._active, *written_to}), most_read=MOST_READ)
            self._unchecked = [*found.unchecked, *self._unchecked]
            at_most = max(_REST_AT_MOST, _REST_EACH * len(self._seqs))
            self.rest = min(rest_seconds(time.monotonic() - began), at_most)
        if self._unchecked:
            self.rest = 0.0
        for due, ran_at in found.in_order().items():
            if due not in self._returned or self._returned[due][0] != ran_at:
                self._waiting[due] = ran_at
        some = {due: self._waiting.pop(due) for due in list(islice(self._waiting, others))}
        some = await self._not_run_since(some)
        self._returned |= {due: (ran_at, began) for due, ran_at in some.items()}
        return [*found.following, *some]

    async def _not_run_since(self, jobs: dict[Due, datetime | None]) -> dict[Due, datetime | None]:
        """Those of the jobs whose last run is still the one that is given: another worker may have run them."""
        if not jobs:
            return {}
        rows = await self._known(sorted({one.tenant_id for one in jobs}))
        last = {Due(row["tenant_id"], row["job"]): row["ran_at"] for row in rows if row["job"] is not None}
        return {due: ran_at for due, ran_at in jobs.items() if last.get(due, ran_at) == ran_at}

    async def _find(self, tenants: Collection[str] | None, *, most_read: int | None = None) -> "_Found":
        """The due jobs of those tenants, or of all.

        At most so many schedules are read: first those that never were, of tenants that were written to before others,
        then those that were read the longest ago. Of the rest, tenants whose schedule was never read are left out, and
        the others follow the one that is cached.
        """
        now = self._opened.context.now()
        rows = await self._known(tenants)
        by_tenant: dict[str, list[Row]] = {}
        for row in rows:
            by_tenant.setdefault(row["tenant_id"], []).append(row)
        outdated = [tenant_id for tenant_id, of_tenant in by_tenant.items() if self._is_outdated(tenant_id, of_tenant)]
        in_turn = sorted(outdated, key=lambda one: (self._read_at(one), not _is_behind(by_tenant[one])))
        ends_at = time.monotonic() + READ_SECONDS
        for tenant_id in in_turn[:most_read]:
            await self._read_schedule(tenant_id, by_tenant[tenant_id][0]["seq"])
            if most_read is not None and time.monotonic() > ends_at:
                break
        found = _Found()
        for tenant_id, of_tenant in by_tenant.items():
            if (cached := self._cached.get(tenant_id)) is None:
                found.unchecked.append(tenant_id)
                continue
            self._seqs[tenant_id] = of_tenant[0]["seq"]
            if found.add(tenant_id, of_tenant, cached.schedule, now, eager=self._eager):
                self._active.add(tenant_id)
            else:
                self._active.discard(tenant_id)
        found.sort()
        self._going_first = found.first
        return found

    async def _written_to(self) -> list[str] | None:
        """The tenants that were written to since the last check, without those that it did not reach.

        None while a node is away: then all are checked.
        """
        if (rows := await self._read_all_nodes("jobs.clocks")) is None:
            return None
        unchecked = set(self._unchecked)
        return [
            row["tenant_id"]
            for row in rows
            if self._seqs.get(row["tenant_id"]) != row["seq"] and row["tenant_id"] not in unchecked
        ]

    async def _known(self, tenants: Collection[str] | None) -> list[Row]:
        """The clock of each of those tenants, or of all, with the runs of its jobs.

        Without the tenants whose node of a cluster is away: until it is back, their jobs stay due and count no failure.
        """
        wanted = set(tenants) if tenants is not None else None
        rows = await self._read_all_nodes("jobs.known", tenants=list(tenants) if tenants is not None else None)
        if rows is not None:
            return rows
        context = self._opened.context
        async with context.transaction(EVERY_TENANT, "jobs") as tx:
            (found,) = await tx.commit_with(("jobs.known_elsewhere", {"away": context.storage.nodes.away}))
        rows = [row for shard in found if shard["success"] and shard["result"] for row in _of_shard(shard["result"])]
        return [row for row in rows if wanted is None or row["tenant_id"] in wanted]

    async def _read_all_nodes(self, statement: str, **parameters: Any) -> list[Row] | None:
        """Run a statement that reads many tenants, which the jobs' login may; None while a node is away."""
        context, nodes = self._opened.context, self._opened.context.storage.nodes
        if nodes.away:
            return None
        try:
            async with context.transaction(EVERY_TENANT, "jobs") as tx:
                (rows,) = await tx.commit_with((statement, parameters))
        except NodeAway:
            if not await nodes.look(EVERY_TENANT):
                raise
            return None
        return rows

    def _is_outdated(self, tenant_id: str, rows: list[Row]) -> bool:
        """Whether the schedule of a tenant should be read, by its rows."""
        cached = self._cached.get(tenant_id)
        # Activating a pack raises the sequence number; unchanged number, same pack.
        return cached is None or (cached.seq != rows[0]["seq"] and time.monotonic() - cached.read_at > PACK_KEPT)

    def _read_at(self, tenant_id: str) -> float:
        cached = self._cached.get(tenant_id)
        return cached.read_at if cached is not None else float("-inf")

    async def _read_schedule(self, tenant_id: str, seq: int) -> None:
        try:
            schedule = (await self._opened.context.current_pack(tenant_id)).memory_layer.jobs
        except Exception as error:
            # A broken pack of one tenant stops no other: its jobs follow the built-in schedule, until it is read again.
            log.warning("the pack of tenant %s cannot be read: %s", tenant_id, type(error).__name__)
            schedule = self._opened.context.packs.default.memory_layer.jobs
            self._cached[tenant_id] = _CachedSchedule(schedule, None, time.monotonic())
            return
        if schedule in self._schedules:
            schedule = self._schedules[self._schedules.index(schedule)]
        elif len(self._schedules) < _SCHEDULES:
            self._schedules.append(schedule)
        self._cached[tenant_id] = _CachedSchedule(schedule, seq, time.monotonic())


def _is_behind(rows: list[Row]) -> bool:
    """Whether a tenant was written to since `consolidate` last ran, by its rows."""
    return not any(row["job"] == CONSOLIDATE and row["ran_seq"] == row["seq"] for row in rows)


def _of_shard(rows: str) -> list[Row]:
    """The rows of one shard, as `jobs.known` has them."""
    found: list[Row] = from_json(rows)
    for row in found:
        for name in ("wrote_at", "ran_at", "next_at"):
            row[name] = datetime.fromisoformat(row[name]) if row[name] is not None else None
    return found


class _Found:
    """The due jobs of some tenants."""

    def __init__(self) -> None:
        self.following: list[Due] = []
        # Those of them that go before all others.
        self.first: set[Due] = set()
        # The tenants whose schedule was never read, and was not read now.
        self.unchecked: list[str] = []
        self._others: dict[Due, datetime | None] = {}

    def sort(self) -> None:
        """Put first what somebody waits for the most: captures that are to become proposals and memories."""
        self.following.sort(key=lambda due: (due not in self.first, due.job != CONSOLIDATE))

    def in_order(self) -> dict[Due, datetime | None]:
        """Those that do not follow the log with their last runs: first those that never ran, then the earliest."""
        never = {due: at for due, at in self._others.items() if at is None}
        ran = sorted((at, due) for due, at in self._others.items() if at is not None)
        return never | {due: at for at, due in ran}

    def add(self, tenant_id: str, rows: list[Row], schedule: Schedule, now: datetime, *, eager: bool) -> bool:
        """Add the due jobs of a tenant; returns whether it may have others soon."""
        runs: Mapping[str, LastRun] = {
            row["job"]: LastRun(row["ran_at"], row["ran_seq"], row["next_at"], row["failures"])
            for row in rows
            if row["job"] is not None
        }
        seq, wrote_at = rows[0]["seq"], rows[0]["wrote_at"]
        quiet = now - wrote_at if wrote_at is not None else _NO_TIME
        more_soon, soon = False, now + _SOON
        for name, job in JOBS.items():
            pause, last = getattr(schedule, name), runs.get(name)
            if pause is None:
                continue
            if is_due(job, pause, seq, last, now, eager=eager, quiet=quiet):
                if job.follows_log:
                    self.following.append(Due(tenant_id, name))
                    if name == CONSOLIDATE and _is_light(last, now):
                        self.first.add(Due(tenant_id, name))
                else:
                    self._others[Due(tenant_id, name)] = last.at if last is not None else None
            if last is None:
                more_soon = more_soon or job.follows_log
            elif (job.follows_log and last.seq != seq) or (last.next_at is not None and last.next_at <= soon):
                more_soon = True
        return more_soon
