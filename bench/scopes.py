"""Recall in one tenant as what a run can see grows: cold, warm, and with a writer beside it."""

import random
import sys
import time
from dataclasses import dataclass

from bench.furnish import WORDS, furnish, scope_size
from bench.measure import Figure, at_most, postmaster
from bench.meter import RUNS, Cost, Meter, median
from bench.picture import ScopeGrowth
from bench.writer import PACK, writing
from muniment import AsyncFabric, RunContext
from muniment.pack import load_pack
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS

BARS = {15_000: 8.0, 100_000: 30.0}
# So that the run sees all of them.
NO_INTENT = ("",)
WARM_UP, QUERIES, QUIET_SECONDS = 10, 40, 5.0


@dataclass(frozen=True)
class Shape:
    """A tenant: all of its memories for all its runs, or spread over users so that each run sees a part."""

    memories: int
    users: int = 0
    shared: int = 10


SHAPES = (Shape(1_000), Shape(15_000), Shape(100_000), Shape(1_000_000, users=1000, shared=1000))
QUICK = (Shape(200), Shape(300, users=3))


async def run(server: TestServer, quick: bool) -> list[Figure | ScopeGrowth]:
    """CPU milliseconds of one recall by a query, every query different."""
    found = [await _at(server, shape, quick) for shape in (QUICK if quick else SHAPES)]
    figures = [
        at_most(f"recall with {one.scope:,} memories in scope, warm", one.warm.cpu_ms, "ms CPU", BARS[one.scope], f"{one.scope:,}",
                f"{one.warm}; cold {one.cold}; with a writer beside {one.written}")
        for one in found if one.scope in BARS
    ]  # fmt: skip
    return [*found, *figures]


async def _at(server: TestServer, shape: Shape, quick: bool) -> ScopeGrowth:
    database, meter, pack = server.clone(), Meter(postmaster(server)), load_pack(PACK)
    await furnish(server, database, tenants=1, per_tenant=shape.memories, users=shape.users, shared=shape.shared,
                  vectors=True, terms=True, index=not shape.users, pack=pack, intents=NO_INTENT)  # fmt: skip
    user = "user_0" if shape.users else None
    who, chance, queries = (
        People("tenant_0").run(user, intent_id="support.orders.change"),
        random.Random(17),
        5 if quick else QUERIES,
    )
    cold = [await _first(server, database, meter, who, _query(chance)) for _ in range(RUNS)]
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS, pack=pack) as fabric:
        for _ in range(WARM_UP):
            await fabric.recall(who, _query(chance))
        warm = [await _ask(fabric, meter, who, [_query(chance) for _ in range(queries)]) for _ in range(RUNS)]
        written: list[Cost] = []
        with writing(server.url(database), "tenant_0", user) as writer:
            writer.settle(meter, 1.0 if quick else QUIET_SECONDS)
            began, started = writer.promoted, time.perf_counter()
            for _ in range(RUNS):
                before = writer.promoted
                cost = await _ask(fabric, meter, who, [_query(chance) for _ in range(queries)])
                written.append(cost.less((writer.promoted - before) * writer.cpu_ms_each / queries))
            rate = (writer.promoted - began) / (time.perf_counter() - started)
    server.drop(database)
    scope = scope_size(shape.memories, shape.users, shape.shared, NO_INTENT)
    grown = ScopeGrowth(shape.memories, scope, median(cold), median(warm), median(written), rate)
    print(grown, file=sys.stderr)
    return grown


def _query(chance: random.Random) -> str:
    return " ".join(chance.choices(WORDS, k=5))


async def _first(server: TestServer, database: str, meter: Meter, who: RunContext, query: str) -> Cost:
    """The first recall of a fresh fabric: connections, keys, pack and scope are all read anew."""
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS, pack=PACK) as fabric:
        return await _ask(fabric, meter, who, [query])


async def _ask(fabric: AsyncFabric, meter: Meter, who: RunContext, queries: list[str]) -> Cost:
    with meter.block() as spent:
        for query in queries:
            await fabric.recall(who, query)
    return spent.each(len(queries))
