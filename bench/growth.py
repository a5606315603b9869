"""Growth: recall by a query at 10,000, 100,000 and 1,000,000 memories, the scope of each run of the same size."""

import sys

from bench.furnish import furnish, scope_size
from bench.measure import Figure, at_most, postmaster
from bench.meter import Meter, in_runs, median
from bench.picture import Growth
from bench.recall import USERS, questions
from muniment import AsyncFabric
from muniment.testing import TestServer
from muniment.testing.database import MASTER_KEYS

SIZES, PER_TENANT, WORDS, ASKED = (10, 100, 1000), 1000, 6, 1000
# Recalls before those that are measured, for each tenant: the index is full by then, and all else that is kept is there.
WARM_UP = 8
INDEX_MB = 256
BAR = 1.5


async def run(server: TestServer, quick: bool) -> list[Figure | Growth]:
    """The largest against the smallest, tenants drawn at random."""
    found = [await _at(server, tenants, quick) for tenants in ((2, 4) if quick else SIZES)]
    ratio = found[-1].warm.cpu_ms / found[0].warm.cpu_ms
    detail = f"{INDEX_MB} MB of index; " + "; ".join(f"{one.memories:,}: {one.warm}" for one in found)
    what = f"recall at {found[-1].memories:,} memories in {found[-1].tenants:,} tenants against {found[0].memories:,} in {found[0].tenants:,}"
    return [*found, at_most(what, ratio, "times its CPU", BAR, f"{found[0].scope:,}", detail)]


async def _at(server: TestServer, tenants: int, quick: bool) -> Growth:
    database, meter = server.clone(), Meter(postmaster(server))
    per_tenant = 100 if quick else PER_TENANT
    shape = {"tenants": tenants, "per_tenant": per_tenant, "users": USERS, "words": WORDS}
    await furnish(server, database, **shape, vectors=True, terms=True, index=False)
    first = questions(20 if quick else max(WARM_UP * tenants, 400), tenants, seed=8)
    asked = questions(40 if quick else ASKED, tenants)
    costs = []
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS, index_mb=INDEX_MB) as fabric:
        for who, query in first:
            await fabric.recall(who, query)
        for some in in_runs(len(asked)):
            with meter.block() as spent:
                for who, query in asked[some]:
                    await fabric.recall(who, query)
            costs.append(spent.each(len(asked[some])))
    server.drop(database)
    grown = Growth(tenants * per_tenant, tenants, scope_size(per_tenant, USERS), median(costs))
    print(grown, file=sys.stderr)
    return grown
