"""One tenant at full load, another's recall: how much longer it takes than when all is quiet (ISO-3)."""

import asyncio
import random
import statistics
import time

from bench.capture import batch
from bench.furnish import WORDS, furnish, scope_size
from bench.measure import Figure, at_most, median_ms
from bench.meter import RUNS
from bench.recall import USERS, questions
from muniment import AsyncFabric, RunContext
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS

BAR = 3.0
BUSY, PER_TENANT, ASKED, BATCH = 24, 1000, 100, 1000


async def run(server: TestServer, quick: bool) -> list[Figure]:
    """The loud tenant recalls, captures singly and in batches, from many tasks at once, all through the same process."""
    per_tenant, asked, size, busy = (100, 4, 50, 3) if quick else (PER_TENANT, ASKED, BATCH, BUSY)
    database, loud, load = server.clone(), People("tenant_1"), batch(0)
    await furnish(server, database, tenants=2, per_tenant=per_tenant, users=USERS, vectors=True, terms=True)
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS) as fabric:

        async def noise(worker: int) -> None:
            chance = random.Random(worker)
            while True:
                if worker % 3 == 0:
                    query = " ".join(chance.choices(WORDS, k=5))
                    await fabric.recall(loud.run(f"user_{chance.randrange(USERS)}"), query)
                elif worker % 3 == 1:
                    await fabric.capture(loud.run(None), **chance.choice(load))
                else:
                    await fabric.capture_many(loud.run(None), load[:size])

        await _times(fabric, questions(asked, 1, seed=100))
        idle = [await _times(fabric, questions(asked, 1, seed=200 + n)) for n in range(RUNS)]
        tasks = [asyncio.create_task(noise(worker)) for worker in range(busy)]
        await asyncio.sleep(2)
        loaded = [await _times(fabric, questions(asked, 1, seed=300 + n)) for n in range(RUNS)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    server.drop(database)
    quiet, beside = (statistics.median(median_ms(times) for times in runs) for runs in (idle, loaded))
    detail = f"idle {quiet:.1f} ms, beside {busy} busy tasks of another tenant {beside:.1f} ms wall; {RUNS} runs of {asked} recalls"
    scope = f"{scope_size(per_tenant, USERS):,}"
    return [
        at_most("another tenant's recall under full load", beside / quiet, "times its idle median", BAR, scope, detail)
    ]


async def _times(fabric: AsyncFabric, asked: list[tuple[RunContext, str]]) -> list[float]:
    """Seconds of each recall in the calm tenant, which is the first."""
    times: list[float] = []
    for who, query in asked:
        start = time.perf_counter()
        await fabric.recall(who, query)
        times.append(time.perf_counter() - start)
    return times
