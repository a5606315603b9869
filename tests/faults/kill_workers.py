"""Run by test_workers_killed: runs workers on a database, and kills and replaces them at random times.

usage: kill_workers.py URL SECONDS SEED   prints how many were killed
"""

import asyncio
import os
import random
import signal
import sys
import time

from muniment import AsyncFabric
from muniment.testing.database import MASTER_KEYS
from muniment.worker import worker

WORKERS = 2


async def _work(url: str) -> None:
    async with AsyncFabric.open(url, master_keys=MASTER_KEYS, private_webhooks=True) as fabric:
        opened = fabric._opened
        assert opened is not None
        await worker.Worker(opened).forever()


def _start(url: str) -> int:
    child = os.fork()
    if child == 0:
        random.seed()
        try:
            asyncio.run(_work(url))
        finally:
            os._exit(1)
    return child


def main(url: str, seconds: float, seed: int) -> None:
    chance, killed = random.Random(seed), 0
    ends_at = time.monotonic() + seconds
    alive: dict[int, float] = {}
    while time.monotonic() < ends_at:
        while len(alive) < WORKERS:
            alive[_start(url)] = time.monotonic() + chance.uniform(0.3, 2.5)
        for child, dies_at in list(alive.items()):
            if time.monotonic() >= dies_at:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                del alive[child]
                killed += 1
        time.sleep(0.01)
    for child in alive:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        killed += 1
    print(killed)


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
