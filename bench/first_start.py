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
    """The README's first example in a process of its own, start of the interpreter included."""
    taken: list[float] = []
    for _ in range(1 if quick else RUNS):
        with tempfile.TemporaryDirectory(prefix="mb") as folder:
            start = time.perf_counter()
            env = {**os.environ, "MUNIMENT_HOME": str(Path(folder) / "home")}
            await asyncio.to_thread(
                subprocess.run, [sys.executable, str(STORY)], env=env, check=True, capture_output=True
            )
            taken.append(time.perf_counter() - start)
    median = statistics.median(taken)
    detail = f"whole process with its shutdown, {len(taken)} times: {min(taken):.2f} to {max(taken):.2f} s"
    return [at_most("first start to first recall", median, "s", BAR_SECONDS, "1", detail)]
