"""Recall through AsyncFabric against the bare statements it runs, and recall as of the past against recall now."""

import random
import sys
from datetime import UTC, datetime, timedelta

from bench.bare import Script, connected, listening
from bench.furnish import WORDS, furnish
from bench.measure import Figure, in_turns, median_ms
from muniment import AsyncFabric, RunContext
from muniment.database.address import Address
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS

TENANTS, PER_TENANT, USERS = 100, 1000, 10
KEPT = 500
BARE_BAR, AS_OF_BAR = 2.0, 1.5


def questions(count: int, tenants: int, seed: int = 7) -> list[tuple[RunContext, str]]:
    """Runs of different tenants and users, each with something to ask."""
    chance = random.Random(seed)
    return [
        (
            People(f"tenant_{chance.randrange(tenants)}").run(
                f"user_{chance.randrange(USERS)}", intent_id="support.orders.change"
            ),
            " ".join(chance.choices(WORDS, k=5)),
        )
        for _ in range(count)
    ]


async def run(server: TestServer) -> list[Figure]:
    """The same questions in the same order for all."""
    database = server.clone()
    shape = {"tenants": TENANTS, "per_tenant": PER_TENANT, "users": USERS}
    await furnish(server, database, **shape, vectors=True, terms=True, index=False)
    asked = questions(KEPT, TENANTS)
    bare = await connected(Address.parse(server.url(database), None).for_task("recall"))
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS) as fabric:
        for who, query in asked:  # keys and packs are known from here on
            await fabric.recall(who, query)
        scripts: list[Script] = []
        with listening(scripts):
            for who, query in asked:
                assert (await fabric.recall(who, query)).records
        assert len(scripts) == KEPT
        then = datetime.now(UTC) - timedelta(hours=1)

        async def ours(round_: int) -> object:
            return await fabric.recall(*asked[round_ % KEPT])

        async def statements(round_: int) -> object:
            return await scripts[round_ % KEPT].say(bare)

        async def earlier(round_: int) -> object:
            return await fabric.recall(*asked[round_ % KEPT], as_of=then)

        times = await in_turns(2000, 300, ours=ours, bare=statements, as_of=earlier)
    await bare.close()
    server.drop(database)
    now, sql, past = (median_ms(times[name]) for name in ("ours", "bare", "as_of"))
    detail = f"ours {now:.2f} ms, its SQL {sql:.2f} ms, medians of 2,000; {len(scripts[0].trips) + 1} round trips"
    print(detail, file=sys.stderr)
    return [
        Figure(
            "recall by a query against its bare SQL, 100,000 memories in 100 tenants",
            now / sql,
            "times its median",
            f"<= {BARE_BAR}",
            now / sql <= BARE_BAR,
            detail,
        ),
        Figure(
            "as-of recall against recall now",
            past / now,
            "times its median",
            f"<= {AS_OF_BAR}",
            past / now <= AS_OF_BAR,
            f"{past:.2f} ms against {now:.2f} ms",
        ),
    ]
