"""A scope too large to be read: what the vector index and the rarer words find, against ranking all of it."""

import random
import sys
import time

from bench.furnish import WORDS, furnish, scope_size
from bench.measure import Figure, at_least, median_ms
from muniment import AsyncFabric
from muniment.pack import builtin_pack
from muniment.recall.recall import dependencies, find
from muniment.recall.rules import view_of
from muniment.recall.search import Request
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS

# Searched as if a scope were too large from so many memories on; a tenant that really is takes long to furnish.
MEMORIES, LARGE, QUERIES, BAR = 50_000, 20_000, 60, 0.95


async def run(server: TestServer, quick: bool) -> list[Figure]:
    """The ten best of each query, exactly and approximately; all memories are the tenant's own, one in five hidden."""
    database, queries = server.clone(), 5 if quick else QUERIES
    memories, most_seen = (2_000, 500) if quick else (MEMORIES, LARGE)
    await furnish(server, database, tenants=1, per_tenant=memories, users=0, vectors=True, terms=True)
    chance, who, pack = (
        random.Random(3),
        People("tenant_0").run(None, intent_id="support.orders.change"),
        builtin_pack(),
    )
    shared = 0
    times: dict[str, list[float]] = {"exact": [], "approximate": []}
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS) as fabric:
        context = fabric._context
        for place in range(queries + 5):
            query = " ".join(chance.choices(WORDS, k=5))
            works_with = await dependencies(context, who.tenant_id, query)
            best: dict[str, set[str]] = {}
            for name, most in (("exact", 10 * memories), ("approximate", most_seen)):
                async with context.transaction(who.tenant_id, "recall") as tx:
                    started = time.perf_counter()
                    request = Request(limit=10, query=query, most_seen=most)
                    found = await find(tx, works_with, view_of(who, pack, tx.now), pack, request)
                    if place >= 5:
                        times[name].append(time.perf_counter() - started)
                assert (found.candidates is not None) == (name == "approximate")
                best[name] = set(found.plain)
            if place >= 5:
                shared += len(best["exact"] & best["approximate"])
    server.drop(database)
    share = shared / (10 * queries)
    exact, approximate = median_ms(times["exact"]), median_ms(times["approximate"])
    said = f"{memories:,} memories, {queries} queries; {approximate:.0f} ms against {exact:.0f} ms for all of them"
    print(said, share, file=sys.stderr)
    return [
        at_least(
            "of the ten best, found by the vector index and rare words",
            share,
            "of all",
            BAR,
            f"{scope_size(memories, 0):,}",
            said,
        )
    ]
