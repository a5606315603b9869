"""Recall through AsyncFabric against the bare statements it runs, and recall as of the past against recall now."""

import random
import sys
from datetime import UTC, datetime, timedelta

from bench.bare import Script, connected, listening
from bench.furnish import WORDS, furnish, scope_size
from bench.measure import Figure, at_most, in_turns, median_ms, without_bar
from muniment import AsyncFabric, RunContext
from muniment.database.address import Address
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS

TENANTS, PER_TENANT, USERS = 100, 1000, 10
ASKED = 1200
BARE_BAR = 2.0


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


def ask_each(tenants: int, seed: int) -> list[tuple[RunContext, str]]:
    """One question in each tenant; another seed gives other questions."""
    return [
        (People(f"tenant_{n}").run(who.user_id, intent_id=who.intent_id), query)
        for n, (who, query) in enumerate(questions(tenants, tenants, 1000 + seed))
    ]


async def run(server: TestServer, quick: bool) -> list[Figure]:
    """The same questions in the same order for all."""
    database = server.clone()
    tenants, per_tenant, asked_of = (3, 100, 40) if quick else (TENANTS, PER_TENANT, ASKED)
    shape = {"tenants": tenants, "per_tenant": per_tenant, "users": USERS}
    await furnish(server, database, **shape, vectors=True, terms=True, index=False)
    asked = questions(asked_of, tenants)
    bare = await connected(Address.parse(server.url(database), None).for_task("recall"))
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS) as fabric:
        for who, query in asked:  # keys and packs are known from here on
            await fabric.recall(who, query)
        scripts: list[Script] = []
        with listening(scripts):
            for who, query in asked:
                assert (await fabric.recall(who, query)).records
        scripts = [one for one in scripts if one.is_a_call]
        assert len(scripts) == asked_of
        then = datetime.now(UTC) - timedelta(hours=1)

        async def ours(round_: int) -> object:
            return await fabric.recall(*asked[round_ % asked_of])

        async def statements(round_: int) -> object:
            return await scripts[round_ % asked_of].say(bare)

        async def earlier(round_: int) -> object:
            return await fabric.recall(*asked[round_ % asked_of], as_of=then)

        times = await in_turns(asked_of - asked_of // 6, asked_of // 6, ours=ours, bare=statements, as_of=earlier)
    await bare.close()
    server.drop(database)
    now, sql, past = (median_ms(times[name]) for name in ("ours", "bare", "as_of"))
    # The last trip of each holds the commit.
    trips = max(len(one.trips) for one in scripts)
    detail = f"ours {now:.2f} ms, its SQL {sql:.2f} ms, medians of {len(times['ours']):,}; round trips: {trips}"
    print(detail, file=sys.stderr)
    what = f"recall by a query against its bare SQL, {tenants * per_tenant:,} memories in {tenants} tenants"
    scope = f"{scope_size(per_tenant, USERS):,}"
    return [
        at_most(what, now / sql, "times its median", BARE_BAR, scope, detail),
        without_bar(
            "as-of recall, which takes the path of SQL, against recall now",
            past / now,
            "times its median",
            scope,
            f"{past:.2f} ms against {now:.2f} ms",
        ),
    ]
