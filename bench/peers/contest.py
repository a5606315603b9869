"""What every peer goes through, inside its environment: add the turns, ask the questions, print one JSON result."""

import asyncio
import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any, ClassVar

from bench.locomo import FOUND_AMONG, recall_at
from bench.meter import Cost, Meter, in_runs, median, peak_memory_bytes

WARM_UP = 20


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

    async def log_bytes(self) -> int:
        """What it has written to PostgreSQL's log until now; 0 for a store that has none."""
        return 0


Opener = Callable[[dict[str, Any]], AbstractAsyncContextManager[Contestant]]


def main(opener: Opener) -> None:
    """Read the job from standard input, go through it, print the result as the last line of standard output."""
    print(json.dumps(asyncio.run(_contest(json.load(sys.stdin), opener))))


async def _contest(job: dict[str, Any], opener: Opener) -> dict[str, object]:
    said = [(talk["id"], Said(**turn)) for talk in job["conversations"] for turn in talk["turns"]]
    asked = [(talk["id"], one["text"], one["evidence"]) for talk in job["conversations"] for one in talk["questions"]]
    # Shuffled, so that each run asks in all conversations.
    asked = random.Random(1).sample(asked, len(asked))
    meter = Meter(*([job["postmaster"]] if "postmaster" in job else []))
    async with opener(job) as store:
        # The job is no cost of the peer: its collector need not walk it again and again.
        gc.collect()
        gc.freeze()
        log = await store.log_bytes()
        adds = [await _add(store, meter, said[some]) for some in in_runs(len(said))]
        log = await store.log_bytes() - log
        await store.settle()
        for talk, turn in said[:: max(len(said) // WARM_UP, 1)]:
            await store.search(talk, turn.text, FOUND_AMONG)
        searches: list[Cost] = []
        times: list[float] = []
        shares: list[float] = []
        for some in in_runs(len(asked)):
            with meter.block() as spent:
                for talk, text, evidence in asked[some]:
                    start = time.perf_counter()
                    found = await store.search(talk, text, FOUND_AMONG)
                    times.append(time.perf_counter() - start)
                    shares.append(recall_at(found, evidence))
            searches.append(spent.each(len(asked[some])))
        disk, memory = await store.disk_bytes(), peak_memory_bytes()
        batches = [await _add_batches(store, meter, said[some]) for some in in_runs(len(said)) if store.has_batches]
    return {
        "version": version(store.package),
        "add": asdict(median(adds)),
        "batch": asdict(median(batches)) if batches else None,
        "search": asdict(median(searches)),
        "search_p95_ms": statistics.quantiles(times, n=20)[-1] * 1000,
        "recall_at_10": statistics.fmean(shares),
        "memory_mb": memory / 2**20,
        "disk_kb": disk / len(said) / 1024,
        "log_kb": log / len(said) / 1024 if log else None,
    }


async def _add(store: Contestant, meter: Meter, said: Sequence[tuple[str, Said]]) -> Cost:
    """Turns added one a call."""
    with meter.block() as spent:
        for talk, turn in said:
            await store.add(talk, turn)
    return spent.each(len(said))


async def _add_batches(store: Contestant, meter: Meter, said: Sequence[tuple[str, Said]]) -> Cost:
    """The same turns again under other names, those of a conversation in one call."""
    with meter.block() as spent:
        for talk, some in groupby(said, key=lambda one: one[0]):
            await store.add_many(f"{talk}-batch", [turn for _, turn in some])
    return spent.each(len(said))


def folder_bytes(folder: Path) -> int:
    """What the files of a folder take on disk."""
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*") if file.is_file())
