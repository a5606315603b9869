"""What PgBouncer in transaction mode costs: recall and capture through it and without it, side by side in one run.

Through it no statement is prepared by name and every transaction sets its own settings, so the server parses and plans
more. CPU time is that of the program, of PostgreSQL and of PgBouncer together.
"""

import asyncio
import random
import statistics
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from psycopg.conninfo import conninfo_to_dict

from bench.furnish import furnish, scope_size
from bench.measure import Figure, postmaster, without_bar
from bench.meter import Cost, Meter, median
from bench.pgbouncer import PGBOUNCER, pooler_before
from bench.recall import USERS, questions
from muniment import AsyncFabric
from muniment.database.address import Address
from muniment.database.storage import CONNECTIONS
from muniment.opening import Opened, _context
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS

TENANTS, PER_TENANT = 20, 1000
ROUNDS, CALLS, AT_ONCE = 15, 60, 16
Calls = Callable[[AsyncFabric, int], Awaitable[object]]


async def run(server: TestServer, quick: bool) -> list[Figure]:
    """The same calls in turns; nothing where PgBouncer is not installed."""
    if PGBOUNCER is None:
        print("pgbouncer is not installed: left out", file=sys.stderr)
        return []
    database = server.clone()
    tenants, per_tenant, rounds, calls = (3, 50, 2, 8) if quick else (TENANTS, PER_TENANT, ROUNDS, CALLS)
    await furnish(server, database, tenants=tenants, per_tenant=per_tenant, users=USERS, vectors=True, terms=True)
    asked = questions(rounds * calls, tenants)
    said = _captures(rounds * calls, tenants)
    figures: list[Figure] = []
    with pooler_before(server.conninfo, database, pool_size=CONNECTIONS, emptied=False) as pooler:
        meter = Meter(postmaster(server), pooler.pid)
        direct = Address.parse(server.url(database), MASTER_KEYS.login_secret())
        through = replace(direct, pooler=conninfo_to_dict(pooler.address))
        ways = {"direct": opened(server.url(database), direct), "pooler": opened(server.url(database), through)}

        async def recall(fabric: AsyncFabric, n: int) -> object:
            return await fabric.recall(*asked[n])

        async def capture(fabric: AsyncFabric, n: int) -> object:
            tenant, fields = said[n]
            return await fabric.capture(People(tenant).run(None), **fields)

        try:
            for name, call in (("recall", recall), ("one capture", capture)):
                # Keys, packs, plans and indexes are known from here on.
                await _in_turns(meter, ways, call, rounds, calls, AT_ONCE // 2)
                for label, at_once in (("one at a time", 1), (f"{AT_ONCE} at once", AT_ONCE)):
                    costs = await _in_turns(meter, ways, call, rounds, calls, at_once)
                    scope = f"{scope_size(per_tenant, USERS):,}" if name == "recall" else "none"
                    figures += _figures(f"{name} through PgBouncer, {label}", scope, costs)
        finally:
            for fabric in ways.values():
                await fabric.close()
    server.drop(database)
    return figures


def opened(url: str, address: Address) -> AsyncFabric:
    """A fabric on that address, through a pooler or not."""
    fabric = AsyncFabric.open(url, master_keys=MASTER_KEYS)
    fabric._opened = Opened(_context(fabric._settings, address, MASTER_KEYS), address, None)
    return fabric


async def _in_turns(
    meter: Meter, ways: dict[str, AsyncFabric], call: Calls, rounds: int, calls: int, at_once: int
) -> dict[str, list[Cost]]:
    """What one call took in each round, each way."""
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    for round_ in range(rounds):
        # Who comes first changes from round to round.
        for name in sorted(ways, reverse=bool(round_ % 2)):
            numbers = iter(range(round_ * calls, (round_ + 1) * calls))

            async def work(numbers: Any = numbers, fabric: AsyncFabric = ways[name]) -> None:
                for n in numbers:
                    await call(fabric, n)

            with meter.block() as spent:
                await asyncio.gather(*(work() for _ in range(at_once)))
            costs[name].append(spent.each(calls))
    return costs


def _figures(what: str, scope: str, costs: dict[str, list[Cost]]) -> list[Figure]:
    direct, pooler = median(costs["direct"]), median(costs["pooler"])
    of_rounds = [two.wall_ms / one.wall_ms for one, two in zip(costs["direct"], costs["pooler"], strict=True)]
    detail = f"without {direct}; through it {pooler}; median of the rounds' ratios {statistics.median(of_rounds):.2f}"
    print(f"{what}: {detail}", file=sys.stderr)
    return [
        without_bar(what, pooler.wall_ms / direct.wall_ms, "times the time without", scope, detail),
        without_bar(f"{what}, CPU", pooler.cpu_ms / direct.cpu_ms, "times the CPU without", scope, ""),
    ]


def _captures(count: int, tenants: int) -> list[tuple[str, dict[str, Any]]]:
    chance = random.Random(11)
    return [
        (
            f"tenant_{chance.randrange(tenants)}",
            {"kind": "statement", "text": f"Delivery {n} goes to the side door.", "classification": "INTERNAL"},
        )
        for n in range(count)
    ]
