"""Programs that use an embedded home, as processes, for the tests of recovery."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from tests.faults.servers import environment

ROOT = Path(__file__).parents[2]


@contextmanager
def program(home: Path, mode: Literal["wait", "write", "async"] = "wait") -> Generator["subprocess.Popen[str]"]:
    """`fabric_process` on that home, which is open when this returns; killed at the end if it is still there."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.faults.fabric_process", str(home), mode],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=environment(),
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()
