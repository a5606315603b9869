"""A writer beside what is measured: a process that promotes one memory after the other in one tenant.

usage: python -m bench.writer URL PACK TENANT USER A_SECOND   writes a line for each memory that is promoted
"""

import asyncio
import random
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.furnish import WORDS
from bench.meter import Meter
from muniment import AsyncFabric
from muniment.testing import People
from muniment.testing.database import MASTER_KEYS

A_SECOND = 20.0
PACK = Path(__file__).parent / "pack.yaml"


class Writer:
    """The running process: how many memories it has promoted, and what PostgreSQL spends on one of them."""

    def __init__(self, running: "subprocess.Popen[str]") -> None:
        self._running = running
        self.promoted = 0
        self.cpu_ms_each = 0.0
        threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        assert self._running.stdout is not None
        # The pipe is closed while it is read when the writer is stopped.
        with suppress(ValueError):
            for _ in self._running.stdout:
                self.promoted += 1

    def settle(self, meter: Meter, seconds: float) -> None:
        """Wait for its first memory, then measure what it costs while nobody else does anything."""
        started = time.monotonic()
        while not self.promoted:
            assert self._running.poll() is None and time.monotonic() - started < 120, "the writer did not start"
            time.sleep(0.05)
        before = self.promoted
        with meter.block() as spent:
            time.sleep(seconds)
        self.cpu_ms_each = spent.cpu * 1000 / max(self.promoted - before, 1)


@contextmanager
def writing(url: str, tenant_id: str, user: str | None) -> Generator[Writer]:
    """A writer that promotes `A_SECOND` memories a second which runs of that user can see, or all runs without one."""
    command = [sys.executable, "-m", "bench.writer", url, str(PACK), tenant_id, user or "", str(A_SECOND)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        try:
            yield Writer(running)
        finally:
            running.terminate()


async def main(url: str, pack: str, tenant_id: str, user: str, a_second: str) -> None:
    people, chance, pause = People(tenant_id), random.Random(), 1 / float(a_second)
    async with AsyncFabric.open(url, master_keys=MASTER_KEYS, pack=pack) as fabric:
        due = time.monotonic()
        while True:
            text = " ".join(chance.choices(WORDS, k=9))
            item = {"kind": "statement", "text": text, "classification": "INTERNAL", "user_id": user or None}
            await fabric.capture_many(people.service, [item])
            done = await fabric.consolidate(tenant_id)
            if done.proposals and not done.promoted:
                await fabric.queue.approve_many(people.reviewer, done.proposals)
            print("promoted", flush=True)
            # One that is late does not hurry afterwards.
            due = max(due + pause, time.monotonic())
            await asyncio.sleep(due - time.monotonic())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
