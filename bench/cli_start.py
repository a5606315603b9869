"""How long the command line takes to start: its help, and a command that goes to a server."""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.measure import Figure, at_most
from muniment.testing import TestServer

BAR_SECONDS = 0.4
BAR_IMPORT_SECONDS = 0.15
MUNIMENT = str(Path(sys.executable).with_name("muniment"))
NOWHERE = "http://127.0.0.1:1"


async def run(_server: TestServer, quick: bool) -> list[Figure]:
    """Wall time of a process, the median of several."""
    python = [sys.executable, "-c"]
    cases = (
        ("muniment --help", [MUNIMENT, "--help"], BAR_SECONDS),
        (
            "a command for a server",
            [*python, f"from bench.cli_first_request import load; load({NOWHERE!r})"],
            BAR_SECONDS,
        ),
        ("import muniment", [*python, "import muniment"], BAR_IMPORT_SECONDS),
    )
    return [await asyncio.to_thread(_measure, *one, 2 if quick else 11) for one in cases]


def _measure(what: str, command: list[str], bar: float, starts: int) -> Figure:
    taken: list[float] = []
    spent = os.times()
    for _ in range(starts):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        taken.append(time.perf_counter() - start)
    ended = os.times()
    # The first start may compile modules.
    median = statistics.median(taken[1:])
    used = ended.children_user + ended.children_system - spent.children_user - spent.children_system
    detail = f"whole process, {starts - 1} times: {min(taken):.2f} to {max(taken):.2f} s, {used / len(taken):.2f} s of processor"
    return at_most(f"start: {what}", median, "s", bar, "none", detail)
