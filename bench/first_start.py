"""From nothing to the first recall: an empty folder, a first start, one memory through the whole pipeline."""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.measure import Figure, at_most
from bench.meter import RUNS
from muniment.testing import TestServer

BAR_SECONDS = 3.0
STORY = Path(__file__).parent.parent / "examples" / "first_memory.py"


async def run(_server: TestServer, quick: bool) -> list[Figure]:
    """The README's first example in a process of its own, start of the interpreter and shutdown included.

    An installed package has its byte code; here a first run, which is not measured, writes it.
    """
    taken: list[float] = []
    on_cpu: list[float] = []
    with tempfile.TemporaryDirectory(prefix="mb") as compiled:
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = compiled
        for _ in range(1 + (1 if quick else RUNS)):
            with tempfile.TemporaryDirectory(prefix="mb") as folder:
                environment["MUNIMENT_HOME"] = str(Path(folder) / "home")
                before, start = os.times(), time.perf_counter()
                await asyncio.to_thread(
                    subprocess.run, [sys.executable, str(STORY)], env=environment, check=True, capture_output=True
                )
                taken.append(time.perf_counter() - start)
                after = os.times()
                on_cpu.append(
                    after.children_user - before.children_user + after.children_system - before.children_system
                )
    del taken[0], on_cpu[0]
    median = statistics.median(taken)
    detail = (
        f"whole process with its shutdown, {len(taken)} times: {min(taken):.2f} to {max(taken):.2f} s;"
        f" {statistics.median(on_cpu):.2f} s of CPU with PostgreSQL's"
    )
    return [at_most("first start to first recall", median, "s", BAR_SECONDS, "1", detail)]
