"""Fairness: how long a quiet tenant waits for its capture to be consolidated, beside nobody and beside busy tenants.

usage: python -m bench.scale.fairness FOLDER   a worker on that folder, until it is ended; writes a line for each job that ran
"""

import asyncio
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.furnish import WORDS
from bench.meter import Meter
from bench.scale.generate import item
from bench.scale.home import Home
from bench.scale.report import Line
from muniment import AsyncFabric
from muniment.job import JobResult
from muniment.testing import People
from muniment.worker.due import Due
from muniment.worker.registry import JOBS
from muniment.worker.worker import Worker

# Quiet tenants that are asked one after the other, at most; one in so many tenants is busy; a busy one has so many captures waiting.
PROBES, BUSY_SHARE, BACKLOG = 12, 100, 500
# Seconds after which a capture that is not consolidated is given up, and for which the first run of all jobs is waited for.
GIVEN_UP, SETTLING = 120.0, 3600.0


class Running:
    """A worker in a process of its own, and how many jobs it ran."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        self.ran = 0
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        assert self.process.stdout is not None
        # The pipe is closed while it is read when the worker is ended.
        with suppress(ValueError):
            for _ in self.process.stdout:
                self.ran += 1


@contextmanager
def working(home: Home) -> Generator[Running]:
    """A worker of the folder meanwhile."""
    command = [sys.executable, "-m", "bench.scale.fairness", str(home.folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield Running(process)
        finally:
            process.terminate()


async def run(home: Home, tenants: int, *, settling: float = SETTLING) -> list[Line]:
    """One tenant in a hundred busy, the rest quiet; every job has run in every tenant before."""
    quiet = [f"quiet_{number}" for number in range(min(PROBES, tenants))]
    busy = [f"busy_{number}" for number in range(max(tenants // BUSY_SHARE, 1))]
    async with home.fabric() as fabric:
        for name in (*quiet, *busy):
            await fabric.capture(People(name).service, **item(name, 0))
        with working(home) as worker:
            lines = await _settle(home, worker, settling)
            alone = await _ask(fabric, quiet, seed=1)
            rested = worker.ran
            began = time.monotonic()
            writers = [asyncio.create_task(_write(fabric, name)) for name in busy]
            try:
                # Until each of them has captures that wait.
                await asyncio.sleep(min(5.0, settling))
                beside = await _ask(fabric, quiet, seed=2)
            finally:
                for one in writers:
                    one.cancel()
                await asyncio.gather(*writers, return_exceptions=True)
            rate = (worker.ran - rested) / (time.monotonic() - began)
    what = "from capture to consolidated in a quiet tenant"
    return [
        *lines,
        Line(
            f"{what}, all tenants quiet",
            _told(alone),
            f"{len(alone)} tenants, one after the other, a worker in a process of its own",
        ),
        Line(
            f"{what}, {len(busy):,} others busy",
            _told(beside),
            f"each with {BACKLOG} captures that wait, and more meanwhile; {rate:.0f} jobs a second",
        ),
    ]


async def _settle(home: Home, worker: Running, settling: float) -> list[Line]:
    """Wait until every job has run once in every tenant, or a while."""
    meter, began = Meter(worker.process.pid, *home.meter().roots), time.monotonic()
    with home.connect() as owner, meter.block() as spent:
        (everything,) = owner.execute("SELECT count(*) FROM tenant_clock").fetchone() or (0,)
        there = 0
        while there < everything * len(JOBS) and time.monotonic() - began < settling:
            await asyncio.sleep(1.0)
            assert worker.process.poll() is None, "the worker ended"
            (there,) = owner.execute("SELECT count(*) FROM job_runs").fetchone() or (0,)
    if not worker.ran:
        return []
    left = everything * len(JOBS) - there
    detail = f"{worker.ran / spent.wall:,.0f} jobs a second" + (f"; {left:,} had not run by then" if left > 0 else "")
    each = spent.each(worker.ran)
    return [
        Line(
            f"every job once in every tenant, {worker.ran:,} runs",
            f"{spent.cpu:,.0f} s CPU, {spent.wall:,.0f} s wall",
            f"{each.cpu_ms:.1f} ms CPU each; {detail}",
        )
    ]


async def _ask(fabric: AsyncFabric, names: list[str], seed: int) -> list[float]:
    """Seconds from the acknowledged capture of one statement until it is consolidated, in each tenant once."""
    chance, times = random.Random(seed), list[float]()
    for name in names:
        people, text = People(name), " ".join(chance.choices(WORDS, k=12))
        await fabric.capture(people.service, kind="statement", text=text, classification="INTERNAL")
        began = time.monotonic()
        await _until_behind(fabric, people, 0, every=0.05)
        times.append(time.monotonic() - began)
    return times


async def _write(fabric: AsyncFabric, name: str) -> None:
    """Keep captures waiting in a tenant."""
    people, chance = People(name), random.Random(name)
    while True:
        said = [
            {"kind": "statement", "text": " ".join(chance.choices(WORDS, k=12)), "classification": "INTERNAL"}
            for _ in range(BACKLOG)
        ]
        await fabric.capture_many(people.service, said)
        await _until_behind(fabric, people, BACKLOG // 2, every=1.0)


async def _until_behind(fabric: AsyncFabric, people: People, at_most: int, *, every: float) -> None:
    """Wait until at most so many captures wait in the tenant, or a while."""
    given_up = time.monotonic() + GIVEN_UP
    while time.monotonic() < given_up:
        if (await fabric.work.backlog(people.admin)).behind <= at_most:
            return
        await asyncio.sleep(every)


def _told(times: list[float]) -> str:
    return f"{statistics.median(times):.1f} s, at most {max(times):.1f} s"


async def work(folder: Path) -> None:
    """Run jobs until the process is ended."""

    def told(due: Due, _: JobResult | None) -> None:
        print(due.job, flush=True)

    async with Home(folder).fabric() as fabric:
        await Worker(fabric.opened, on_done=told).forever()


if __name__ == "__main__":
    asyncio.run(work(Path(sys.argv[1])))
