"""Recall in a tenant whose scope the process does not hold in memory, against the path that only uses SQL."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from bench.furnish import furnish, scope_size
from bench.measure import Figure, at_most, postmaster
from bench.meter import RUNS, Cost, Meter, median
from bench.recall import USERS, ask_each
from muniment import AsyncFabric, RunContext
from muniment.testing import TestServer
from muniment.testing.database import MASTER_KEYS

BAR = 1.2


async def run(server: TestServer, quick: bool) -> list[Figure]:
    """In each run a fresh fabric and every tenant once; a recall as of the past always takes the path of SQL."""
    tenants, per_tenant = (5, 100) if quick else (100, 1000)
    database, meter = server.clone(), Meter(postmaster(server))
    await furnish(server, database, tenants=tenants, per_tenant=per_tenant, users=USERS, vectors=True, terms=True)
    cold: list[Cost] = []
    by_sql: list[Cost] = []
    for number in range(RUNS):
        async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS) as fabric:
            # Keys, packs and connections are known after the first pass: only the scope is not.
            await _ask(fabric, meter, ask_each(tenants, 3 * number), datetime.now(UTC))
            by_sql.append(await _ask(fabric, meter, ask_each(tenants, 3 * number + 1), datetime.now(UTC)))
            cold.append(await _ask(fabric, meter, ask_each(tenants, 3 * number + 2), None))
    server.drop(database)
    ours, its = median(cold), median(by_sql)
    detail = f"{ours} against {its} as of now; {tenants} tenants once each, {RUNS} fresh fabrics"
    print(detail, file=sys.stderr)
    scope = f"{scope_size(per_tenant, USERS):,}"
    what = "recall whose scope is not in memory against the path of SQL"
    return [at_most(what, ours.cpu_ms / its.cpu_ms, "times its CPU", BAR, scope, detail)]


async def _ask(
    fabric: AsyncFabric, meter: Meter, asked: Sequence[tuple[RunContext, str]], as_of: datetime | None
) -> Cost:
    with meter.block() as spent:
        for who, query in asked:
            assert (await fabric.recall(who, query, as_of=as_of)).records
    return spent.each(len(asked))
