"""Timing side by side: the contestants take turns within one run, so that a ratio means something."""

import gc
import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One line of the report: what, the measured ratio or time, and the bar."""

    what: str
    value: float
    unit: str
    bar: str
    reached: bool
    detail: str


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
