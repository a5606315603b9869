"""Growth: recall by a query at 10,000, 100,000 and 1,000,000 memories, the scope of each run of the same size."""

import sys

from bench.furnish import furnish
from bench.measure import Figure, in_turns, median_ms
from bench.picture import Growth
from bench.recall import USERS, questions
from muniment import AsyncFabric
from muniment.testing import TestServer
from muniment.testing.database import MASTER_KEYS

SIZES = (10, 100, 1000)
PER_TENANT, WORDS, KEPT = 1000, 6, 400
BAR = 1.5


async def run(server: TestServer) -> tuple[list[Growth], list[Figure]]:
    """The largest against the smallest."""
    found = [await _at(server, tenants) for tenants in SIZES]
    ratio = found[-1].search_median_ms / found[0].search_median_ms
    said = ", ".join(f"{one.memories:,}: {one.search_median_ms:.2f} ms" for one in found)
    return found, [
        Figure(
            "recall at 1,000,000 memories in 1,000 tenants against 10,000 in 10",
            ratio,
            "times its median",
            f"<= {BAR}",
            ratio <= BAR,
            said,
        )
    ]


async def _at(server: TestServer, tenants: int) -> Growth:
    database = server.clone()
    shape = {"tenants": tenants, "per_tenant": PER_TENANT, "users": USERS, "words": WORDS}
    await furnish(server, database, **shape, vectors=True, terms=True, index=False)
    asked = questions(KEPT, tenants)
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS) as fabric:

        async def recall(round_: int) -> object:
            return await fabric.recall(*asked[round_ % KEPT])

        times = (await in_turns(1200, KEPT, recall=recall))["recall"]
    server.drop(database)
    grown = Growth(tenants * PER_TENANT, median_ms(times), sorted(times)[int(len(times) * 0.95)] * 1000)
    print(grown, file=sys.stderr)
    return grown
