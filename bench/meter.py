"""CPU and wall time of one run: this process, and whole trees of other processes such as PostgreSQL's.

The peers measure themselves with it in their own environments: it needs the standard library alone.
"""

import os
import statistics
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

RUNS = 5
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """What one call took, in milliseconds."""

    cpu_ms: float
    wall_ms: float

    def __str__(self) -> str:
        return f"{self.cpu_ms:,.2f} ms CPU, {self.wall_ms:,.2f} ms wall"

    def less(self, cpu_ms: float) -> "Cost":
        """Without the CPU time that others took meanwhile."""
        return replace(self, cpu_ms=max(self.cpu_ms - cpu_ms, 0.0))


def median(runs: Sequence[Cost]) -> Cost:
    """The median of several runs, of CPU and of wall time each."""
    return Cost(statistics.median(one.cpu_ms for one in runs), statistics.median(one.wall_ms for one in runs))


@dataclass
class Spent:
    """What a block took in all, in seconds."""

    cpu: float = 0.0
    wall: float = 0.0

    def each(self, calls: int) -> Cost:
        """Its share for one call of so many."""
        return Cost(self.cpu / calls * 1000, self.wall / calls * 1000)


class Meter:
    """Measures this process together with the trees of processes under the given ids."""

    def __init__(self, *roots: int) -> None:
        self.roots = roots

    @contextmanager
    def block(self) -> Generator[Spent]:
        """Fill in what the block took; reading the others' times is not counted."""
        spent, others = Spent(), _trees_seconds(self.roots)
        own, start = time.process_time(), time.perf_counter()
        yield spent
        spent.wall = time.perf_counter() - start
        spent.cpu = time.process_time() - own + _trees_seconds(self.roots) - others


def _trees_seconds(roots: Sequence[int]) -> float:
    if not roots:
        return 0.0
    parents: dict[int, int] = {}
    spent: dict[int, float] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            on_cpu = sum(int((task / "schedstat").read_text().split()[0]) for task in (folder / "task").iterdir())
        except (OSError, ValueError, IndexError):
            continue  # it ended meanwhile: then its parent's count has it
        pid = int(folder.name)
        parents[pid] = int(fields[1])
        # Its own time in nanoseconds, and the time of its children that ended in ticks.
        spent[pid] = on_cpu / 1e9 + (int(fields[13]) + int(fields[14])) / _TICKS
    return sum(seconds for pid, seconds in spent.items() if _is_under(pid, roots, parents))


def _is_under(pid: int, roots: Sequence[int], parents: dict[int, int]) -> bool:
    while pid not in roots:
        if pid not in parents:
            return False
        pid = parents[pid]
    return True


def in_runs(count: int, runs: int = RUNS) -> list[slice]:
    """Equal shares of so many things, one for each run, so that no two runs have one in common."""
    runs = min(runs, count)
    edges = [count * n // runs for n in range(runs + 1)]
    return [slice(first, last) for first, last in pairwise(edges)]


def peak_memory_bytes() -> int:
    """The most memory this process had."""
    # Not by getrusage: that counts what the process it was started from once had.
    return _status_bytes("VmHWM")


def memory_bytes() -> int:
    """The memory that this process has now."""
    return _status_bytes("VmRSS")


def _status_bytes(name: str) -> int:
    found = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return int(found.split()[1]) * 1024
