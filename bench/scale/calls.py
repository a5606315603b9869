"""What calls cost among so many: recall, capture, the queue's page, verifying, erasing."""

import random
import time
from collections.abc import Awaitable, Callable, Sequence

import httpx2
import psycopg

from bench.furnish import WORDS
from bench.meter import Cost, Meter, in_runs, median
from bench.scale.generate import SHARED, USERS, fill, tenant_name
from bench.scale.home import Home
from bench.scale.report import Line, timed
from muniment import AsyncFabric
from muniment.database.partitions import PARTITIONS, partition_of
from muniment.erasure.purge import REWRITTEN
from muniment.http.app import create_app
from muniment.http.settings import ServerSettings
from muniment.testing import People
from muniment.worker.registry import JOBS

# Tenants that are drawn for recalls and captures, and for verifying; rounds of the queue's page.
DRAWN, VERIFIED, ROUNDS = 200, 10, 15
# Open proposals of the tenant whose queue is looked at.
PROPOSALS, DESK = 1_000, "desk"

Call = Callable[[str, random.Random], Awaitable[object]]


def drawn(tenants: int, count: int, seed: int) -> list[str]:
    """Tenants, none of them twice."""
    return [tenant_name(number) for number in random.Random(seed).sample(range(tenants), min(count, tenants))]


def question(chance: random.Random) -> str:
    """Something to ask."""
    return " ".join(chance.choices(WORDS, k=5))


async def recalls(home: Home, tenants: int, share: int) -> list[Line]:
    """The first recall in each of some tenants, then others of the same users."""
    names, meter = drawn(tenants, DRAWN, 3), home.meter()
    own = share // SHARED
    scope = (
        f"{len(names)} tenants drawn of {tenants:,}, about {own + (share - own) // USERS} of {share} memories in scope"
    )

    async def ask(tenant_id: str, chance: random.Random) -> None:
        who = People(tenant_id).run("user_1", intent_id="support.orders.change")
        assert (await fabric.recall(who, question(chance))).recall_id

    async with home.fabric() as fabric:
        # Connections are there, and the statements planned.
        await _each(meter, drawn(tenants, 20, 4), ask, 5)
        cold = await _each(meter, names, ask, 6)
        warm = await _each(meter, names, ask, 7)
    return [
        timed("recall, the first in its tenant", cold, f"{scope}; keys, pack and scope are read"),
        timed("recall, warm", warm, "the same users, other questions"),
    ]


async def captures(home: Home, tenants: int) -> list[Line]:
    """One capture at a time, acknowledged, in tenants drawn at random."""
    names, meter = drawn(tenants, DRAWN, 13), home.meter()

    async def say(tenant_id: str, chance: random.Random) -> None:
        text = " ".join(chance.choices(WORDS, k=12))
        who = People(tenant_id).run("user_1", session_id="s1")
        await fabric.capture(who, kind="statement", text=text, classification="INTERNAL")

    async with home.fabric() as fabric:
        await _each(meter, drawn(tenants, 20, 14), say, 15)
        cold = await _each(meter, names, say, 16)
        warm = await _each(meter, names, say, 17)
    return [
        timed("capture, the first in its tenant", cold, f"one a call, acknowledged, {len(names)} tenants drawn"),
        timed("capture, warm", warm, "the same tenants"),
    ]


async def _each(meter: Meter, names: Sequence[str], call: Call, seed: int) -> Cost:
    """The median of some runs, of what one call took."""
    chance, costs = random.Random(seed), list[Cost]()
    for some in in_runs(len(names)):
        with meter.block() as spent:
            for name in names[some]:
                await call(name, chance)
        costs.append(spent.each(len(names[some])))
    return median(costs)


async def queue(home: Home, proposals: int) -> list[Line]:
    """The console's page of a queue, in a tenant of its own."""
    people, meter, chance = People(DESK), home.meter(), random.Random(23)
    async with home.fabric() as fabric:
        while (there := await _open_proposals(fabric, people)) < proposals:
            said = [
                {"kind": "statement", "text": " ".join(chance.choices(WORDS, k=12)), "classification": "INTERNAL"}
                for _ in range(min(proposals - there, 500))
            ]
            await fabric.capture_many(people.run(None, session_id="s1"), said)
            while (await fabric.consolidate(DESK)).waiting:
                pass
        key = await fabric.keys.create(
            people.admin, principal_id="eve", kind="operator", roles=frozenset({"reviewer"}), expires_in="1d"
        )
        transport = httpx2.ASGITransport(app=create_app(fabric, ServerSettings(rate=0)))
        async with httpx2.AsyncClient(transport=transport, base_url="http://bench", timeout=60) as browser:
            answer = await browser.post("/console/signin", data={"key": key.token})
            assert answer.status_code == 303, answer.text

            async def look(_: str, __: random.Random) -> None:
                page = await browser.get("/console/queue", headers={"Accept": "text/html"})
                assert page.status_code == 200, page.text

            await _each(meter, ["warm up"] * 3, look, 0)
            cost = await _each(meter, ["page"] * ROUNDS, look, 0)
        await fabric.keys.revoke(people.admin, key.key_id)
    return [
        timed(
            "a page of the queue",
            cost,
            f"in the console, 50 rows and the counts, {there:,} proposals open in its tenant",
        )
    ]


async def _open_proposals(fabric: AsyncFabric, people: People) -> int:
    return (await fabric.queue.counts(people.reviewer)).open


async def verifying(home: Home, tenants: int) -> list[Line]:
    """Sealing and verifying one tenant after the other."""
    names, meter, rows = drawn(tenants, VERIFIED, 33), home.meter(), 0
    async with home.fabric() as fabric:
        with meter.block() as sealing:
            for name in names:
                await fabric.seal(name)
        with meter.block() as spent:
            for name in names:
                found = await fabric.verify(People(name).auditor)
                assert found.ok, found
                rows += found.rows
    each = spent.each(len(names))
    all_of_them = f"all {tenants:,} in one process: {each.cpu_ms * tenants / 1000:,.0f} s CPU"
    return [
        timed(
            "seal the log of a tenant",
            sealing.each(len(names)),
            f"{len(names)} tenants drawn, since their last sealing",
        ),
        timed("verify a tenant", each, f"its log and {rows // len(names):,} rows; {all_of_them}"),
    ]


async def erasing(home: Home, share: int) -> list[Line]:
    """Erasing a user of a tenant like the others, and purging what lies beneath; the tenant is made for it."""
    meter, tenant_id = home.meter(), f"erased_{time.time_ns()}"
    async with home.fabric() as fabric:
        await fill(fabric, tenant_id, 0, share)
        sizes = await _sizes(fabric, tenant_id)
        home.require_room(2 * sum(sizes))
        with meter.block() as erased:
            receipt = await fabric.erase(People(tenant_id).officer, user_id="user_1")
        with meter.block() as purged:
            done = await JOBS["purge"].run(fabric.opened, tenant_id)
        assert done.nonzero, done
    rewritten = f"rewrites the tenant's partition, one of {PARTITIONS}, {sum(sizes) / 1e6:,.0f} MB, and clears the log"
    return [
        timed("erase a user", erased.each(1), f"{receipt.memories} memories of {share} in the tenant"),
        timed("purge after it", purged.each(1), rewritten),
    ]


async def _sizes(fabric: AsyncFabric, tenant_id: str) -> list[int]:
    """The bytes of each table that a purge in the tenant rewrites, with its indexes."""
    async with await psycopg.AsyncConnection.connect(fabric.opened.address.for_owner(), autocommit=True) as owner:
        found = [await partition_of(owner, table, tenant_id) for table in REWRITTEN]
        query = "SELECT pg_total_relation_size(('muniment.' || name)::regclass) FROM unnest(%s::text[]) name"
        return [int(row[0]) for row in await (await owner.execute(query, [found])).fetchall()]
