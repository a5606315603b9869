"""One tenant at full load, another's recall: how much longer it takes than when all is quiet (ISO-3)."""

import asyncio
import statistics
import time

from bench.capture import batch
from bench.furnish import furnish
from bench.measure import Figure, median_ms
from muniment import AsyncFabric
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS

BAR = 3.0
BUSY = 24
BATCH = 1000


async def run(server: TestServer) -> list[Figure]:
    """The loud tenant recalls, captures singly and in batches, from many tasks at once, all through the same process."""
    database = server.clone()
    await furnish(server, database, tenants=2, per_tenant=1000, users=10)
    loud, calm = People("tenant_0"), People("tenant_1")
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS) as fabric:

        async def recalls(count: int) -> list[float]:
            times: list[float] = []
            for n in range(count):
                start = time.perf_counter()
                await fabric.recall(calm.run(f"user_{n % 10}"))
                times.append(time.perf_counter() - start)
            return times

        async def noise(worker: int) -> None:
            for n in range(100_000):
                if worker % 3 == 0:
                    await fabric.recall(loud.run(f"user_{n % 10}"))
                elif worker % 3 == 1:
                    await fabric.capture(loud.run(None), **load[n % 1000])
                else:
                    await fabric.capture_many(loud.run(None), load[:BATCH])

        load = batch(0)
        await recalls(100)
        idle = await recalls(300)
        tasks = [asyncio.create_task(noise(worker)) for worker in range(BUSY)]
        await asyncio.sleep(2)
        loaded = await recalls(300)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    server.drop(database)
    ratio = statistics.median(loaded) / statistics.median(idle)
    detail = f"idle {median_ms(idle):.1f} ms, beside {BUSY} busy tasks of another tenant {median_ms(loaded):.1f} ms"
    return [
        Figure(
            "another tenant's recall under full load", ratio, "times its idle median", f"<= {BAR}", ratio <= BAR, detail
        )
    ]
