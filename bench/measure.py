"""Timing side by side: the contestants take turns within one run, so that a ratio means something."""

import gc
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from muniment.testing import TestServer


@dataclass(frozen=True)
class Figure:
    """One line of the report: what, the measured ratio or time, the bar, and how many memories a run could see."""

    what: str
    value: float
    unit: str
    bar: str
    reached: bool
    scope: str
    detail: str


def at_most(what: str, value: float, unit: str, bar: float, scope: str, detail: str) -> Figure:
    """A figure that must not be above its bar."""
    return Figure(what, value, unit, f"<= {bar:g}", value <= bar, scope, detail)


def at_least(what: str, value: float, unit: str, bar: float, scope: str, detail: str) -> Figure:
    """A figure that must not be below its bar."""
    return Figure(what, value, unit, f">= {bar:g}", value >= bar, scope, detail)


def without_bar(what: str, value: float, unit: str, scope: str, detail: str) -> Figure:
    """A figure that is worth knowing and has no bar."""
    return Figure(what, value, unit, "-", True, scope, detail)


async def in_turns(
    rounds: int, warm_up: int, **contestants: Callable[[int], Awaitable[object]]
) -> dict[str, list[float]]:
    """Seconds per call of each contestant, called in turns; the first rounds warm up and do not count.

    What the benchmark itself keeps ready for its rounds is taken out of the collector's sight: walking it again and
    again is no cost of either contestant.
    """
    gc.collect()
    gc.freeze()
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for round_ in range(warm_up + rounds):
        for name, call in contestants.items():
            start = time.perf_counter()
            await call(round_)
            taken = time.perf_counter() - start
            if round_ >= warm_up:
                times[name].append(taken)
    return times


def median_ms(times: list[float]) -> float:
    """The median in milliseconds."""
    return statistics.median(times) * 1000


def postmaster(server: TestServer) -> int:
    """The process under which all of PostgreSQL's run."""
    return int((server.home / "data" / "postmaster.pid").read_text().splitlines()[0])


def disk_bytes(server: TestServer, database: str) -> int:
    """What a database takes on disk once it was vacuumed."""
    with server.connect(database) as owner:
        owner.execute("VACUUM ANALYZE")
        found: Any = owner.execute("SELECT pg_database_size(current_database())").fetchone()
        return int(found[0])


def log_bytes(server: TestServer) -> int:
    """What PostgreSQL has written to its log (WAL) since it was made."""
    with server.connect("postgres") as owner:
        found: Any = owner.execute("SELECT pg_current_wal_lsn() - '0/0'").fetchone()
        return int(found[0])
