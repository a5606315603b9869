"""What every peer goes through, inside its environment: add the turns, ask the questions, print one JSON result."""

import asyncio
import gc
import json
import resource
import statistics
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from bench.locomo import FOUND_AMONG, recall_at

WARM_UP = 20
BATCH = 500


@dataclass(frozen=True)
class Said:
    """A turn as the job tells it."""

    id: str
    text: str
    date: str


class Contestant:
    """A store under test; every conversation is a user, namespace or collection of its own."""

    package: ClassVar[str]
    has_batches: ClassVar[bool] = False

    async def add(self, conversation: str, turn: Said) -> None:
        """One turn, one call; when it returns the turn can be found."""
        raise NotImplementedError

    async def add_many(self, conversation: str, turns: Sequence[Said]) -> None:
        """That many turns in one call, if it `has_batches`."""
        raise NotImplementedError

    async def search(self, conversation: str, text: str, limit: int) -> list[str]:
        """The ids of the turns found, best first."""
        raise NotImplementedError

    async def settle(self) -> None:
        """What the store would do by itself in a quiet minute between the adds and the searches."""

    async def disk_bytes(self) -> int:
        """What the turns take on disk."""
        raise NotImplementedError


Opener = Callable[[dict[str, Any]], AbstractAsyncContextManager[Contestant]]


def main(opener: Opener) -> None:
    """Read the job from standard input, go through it, print the result as the last line of standard output."""
    print(json.dumps(asyncio.run(_contest(json.load(sys.stdin), opener))))


async def _contest(job: dict[str, Any], opener: Opener) -> dict[str, object]:
    talks = [(talk["id"], [Said(**turn) for turn in talk["turns"]]) for talk in job["conversations"]]
    asked = [(talk["id"], one["text"], one["evidence"]) for talk in job["conversations"] for one in talk["questions"]]
    async with opener(job) as store:
        # The job is no cost of the peer: its collector need not walk it again and again.
        gc.collect()
        gc.freeze()
        adds = [await _seconds(store.add(talk, turn)) for talk, turns in talks for turn in turns]
        await store.settle()
        for talk, text, _ in asked[:WARM_UP]:
            await store.search(talk, text, FOUND_AMONG)
        searches: list[float] = []
        shares: list[float] = []
        for round_ in range(int(job.get("rounds", 1))):
            for talk, text, evidence in asked:
                start = time.perf_counter()
                found = await store.search(talk, text, FOUND_AMONG)
                searches.append(time.perf_counter() - start)
                if round_ == 0:
                    shares.append(recall_at(found, evidence))
        disk, memory = await store.disk_bytes(), _peak_bytes()
        batches = await _in_batches(store, talks) if store.has_batches else None
    return {
        "version": version(store.package),
        "turns": len(adds),
        "adds_per_second": len(adds) / sum(adds),
        "add_median_ms": statistics.median(adds) * 1000,
        "batch_adds_per_second": batches,
        "n": len(asked),
        "search_median_ms": statistics.median(searches) * 1000,
        "search_p95_ms": statistics.quantiles(searches, n=20)[-1] * 1000,
        "recall_at_10": statistics.fmean(shares),
        "peak_memory_mb": memory / 2**20,
        "disk_mb": disk / 2**20,
    }


async def _in_batches(store: Contestant, talks: Sequence[tuple[str, Sequence[Said]]]) -> float:
    """Turns a second, the same ones again under other names."""
    taken = 0.0
    for talk, turns in talks:
        for n in range(0, len(turns), BATCH):
            taken += await _seconds(store.add_many(f"{talk}-batch", turns[n : n + BATCH]))
    return sum(len(turns) for _, turns in talks) / taken


async def _seconds(call: Awaitable[object]) -> float:
    start = time.perf_counter()
    await call
    return time.perf_counter() - start


def folder_bytes(folder: Path) -> int:
    """What the files of a folder take on disk."""
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())


def _peak_bytes() -> int:
    """The most memory this process had, the peer's libraries and the embedder included."""
    # Not by getrusage: that counts what the process it was started from once had.
    status = Path("/proc/self/status")
    if status.is_file():
        found = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(found.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
