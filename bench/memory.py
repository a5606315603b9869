"""Memory in five lines: how long it takes from `add` until `search` finds it, in a home of its own."""

import sys
import tempfile
import time
from importlib.resources import files
from pathlib import Path
from statistics import median

from bench.measure import Figure, at_most
from muniment import AsyncMemory
from muniment.language.readers import Readers, find_readers
from muniment.testing import TestServer

RULES_BAR, READERS_BAR = 50.0, 150.0
USER = "joanna"
# Told before anything is measured: the first call makes the tenant and its keys, and loads what reads texts.
WARMING = 5


async def run(_: TestServer, quick: bool) -> list[Figure]:
    """With the rules alone, and with the trained readers where they are installed."""
    count = 10 if quick else 150
    found = [await _figure("with rules", RULES_BAR, None, count)]
    if (readers := find_readers()) is None or not isinstance(readers, Readers):
        print("no weights of trained readers are installed: left out", file=sys.stderr)
        return found
    return [*found, await _figure("with the readers", READERS_BAR, readers, count)]


def sentences() -> list[str]:
    """What a user may say: the sentences of `muniment eval verbatim`."""
    lines = files("muniment.evaluation").joinpath("sentences.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line.strip() and not line.startswith("#")]


async def _figure(how: str, bar: float, readers: Readers | None, count: int) -> Figure:
    told = sentences()[: WARMING + count]
    times: list[float] = []
    cpu: list[float] = []
    found = 0
    with tempfile.TemporaryDirectory(prefix="mb") as folder:
        async with AsyncMemory.open(user=USER, home=Path(folder) / "home", readers=readers) as memory:
            for number, text in enumerate(told):
                begun, used = time.perf_counter(), time.process_time()
                added = await memory.add(text)
                facts = await memory.search(text)
                spent, used = (time.perf_counter() - begun) * 1000, (time.process_time() - used) * 1000
                kept = {one.id for one in added.promoted}
                # What waits or is refused takes the same way, but there is nothing to find.
                if number >= WARMING and kept:
                    times.append(spent)
                    cpu.append(used)
                    found += not kept.isdisjoint(fact.id for fact in facts)
    what = f"from add to search finding it, embedded, {how}"
    detail = f"median of {len(times)}, {median(cpu):.0f} ms of the program's CPU, the slowest {max(times):.0f} ms; {found} of {len(times)} found"
    return at_most(what, median(times), "ms", bar, f"up to {len(times)} memories", detail)
