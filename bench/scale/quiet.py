"""What the jobs cost where there is nothing to do: one run of each in a tenant, the look for due ones, and a day of both."""

from collections.abc import Awaitable, Callable

from bench.meter import Cost, Meter
from bench.scale.calls import drawn
from bench.scale.home import PACK, Home
from bench.scale.report import Line, timed
from muniment.pack import load_pack
from muniment.pack.jobs import Schedule
from muniment.worker.due import Due, DueJobs
from muniment.worker.registry import JOBS
from muniment.worker.worker import run as run_job

# Tenants in which each job is run.
TENANTS = 40


async def run(home: Home, tenants: int) -> list[Line]:
    """Each job is run twice in some tenants: the first finds what there is to do, the second nothing."""
    names, meter = drawn(tenants, TENANTS, 53), home.meter()
    costs: dict[str, Cost] = {}
    async with home.fabric() as fabric:
        for job in JOBS:
            for name in names:
                await run_job(fabric.opened, Due(name, job))
            with meter.block() as spent:
                for name in names:
                    await run_job(fabric.opened, Due(name, job))
            costs[job] = spent.each(len(names))
        jobs = DueJobs(fabric.opened)

        async def read_all() -> list[Due]:
            found = await jobs.next(0)
            while not jobs.rest:
                found += await jobs.next(0)
            return found

        looks = [
            await _look("the first looks for due jobs, until the schedules of all tenants are read", meter, read_all),
            await _look("a later look at all tenants", meter, jobs.due),
        ]
        # This may be one at all of them.
        await jobs.next(0)
        looks.append(await _look("a look at the tenants that were written to since", meter, lambda: jobs.next(0)))
    sweep, schedule = costs["sweep"], load_pack(PACK).memory_layer.jobs
    each = ", ".join(f"{job} {cost.cpu_ms:.1f}" for job, cost in sorted(costs.items(), key=lambda one: -one[1].cpu_ms))
    return [
        timed(
            "sweep of a tenant with nothing to do",
            sweep,
            f"all {tenants:,}: {sweep.cpu_ms * tenants / 1000:,.0f} s CPU",
        ),
        Line(
            "each job with nothing to do, with recording that it ran",
            f"{sum(one.cpu_ms for one in costs.values()):,.0f} ms CPU for all {len(costs)}",
            f"{each} ms",
        ),
        _load("nobody writes to", costs, schedule, tenants, quiet=True),
        _load("are written to all the time", costs, schedule, max(tenants // 100, 1), quiet=False),
        *looks,
    ]


async def _look(what: str, meter: Meter, look: Callable[[], Awaitable[list[Due]]]) -> Line:
    with meter.block() as spent:
        found = len(await look())
    return timed(what, spent.each(1), f"{found:,} jobs found")


def _load(which: str, costs: dict[str, Cost], schedule: Schedule, tenants: int, *, quiet: bool) -> Line:
    """What the jobs of so many tenants take of a core, each running as often as it can, or as it does where it is quiet."""
    often = {
        name: 1 / max(own, JOBS[name].longest_pause if quiet else own).total_seconds()
        for name in costs
        if (own := getattr(schedule, name)) is not None and not (quiet and JOBS[name].follows_log)
    }
    cores = tenants * sum(costs[name].cpu_ms / 1000 * rate for name, rate in often.items())
    runs = tenants * sum(often.values())
    return Line(
        f"jobs of {tenants:,} tenants that {which}",
        f"{cores:.2f} cores",
        f"{runs:,.0f} runs a second by the schedule, at the cost above",
    )
