"""Recall through AsyncFabric against the bare statements it runs, at 100,000 memories in 100 tenants."""

import random
import sys
from typing import Any

import psycopg
from psycopg.rows import dict_row
from psycopg.sql import quote
from psycopg.types.json import Jsonb

from bench.furnish import furnish
from bench.measure import Figure, in_turns, median_ms
from muniment import AsyncFabric
from muniment.model.ids import make_id
from muniment.pack import builtin_pack
from muniment.pipeline.recall import Request, filters
from muniment.policy.visibility import view_of
from muniment.storage.address import Address
from muniment.storage.statements import statement
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS

TENANTS, PER_TENANT, USERS = 100, 1000, 10
BAR = 2.0


async def run(server: TestServer) -> list[Figure]:
    """The same run contexts in the same order for both."""
    database = server.clone()
    await furnish(server, database, tenants=TENANTS, per_tenant=PER_TENANT, users=USERS)
    chance = random.Random(7)
    runs = [
        People(f"tenant_{chance.randrange(TENANTS)}").run(
            f"user_{chance.randrange(USERS)}", intent_id="support.orders.change"
        )
        for _ in range(3000)
    ]
    pack = builtin_pack()
    # The same login with the same settings as ours: neither waits for the disk.
    login = Address.parse(server.url(database), None).for_task("recall")
    bare = await psycopg.AsyncConnection.connect(login, autocommit=True, row_factory=dict_row)

    async def statements(round_: int) -> int:
        """Just the SQL: begin, the filters, the bodies, the record, commit. Nothing is checked, opened or built."""
        run, now = runs[round_], clock()
        given: dict[str, Any] = filters(view_of(run, pack, now), pack, Request(8))
        given |= {"tenant_id": run.tenant_id, "now": now}
        cursor = psycopg.AsyncRawCursor(bare)
        tenant = quote(run.tenant_id)
        await cursor.execute(f"BEGIN ISOLATION LEVEL REPEATABLE READ; SET LOCAL muniment.tenant = {tenant}")
        visible = statement("recall.visible")
        await cursor.execute(visible.sql, visible.arguments(given), prepare=True)
        ids = [row["memory_id"] for row in await cursor.fetchall()]
        bodies = statement("recall.bodies")
        await cursor.execute(
            bodies.sql, [ids if n == "memory_ids" else run.tenant_id for n in bodies.parameters], prepare=True
        )
        await cursor.fetchall()
        record = statement("recall.record")
        values = {
            "tenant_id": run.tenant_id,
            "recall_id": make_id("rcl", now),
            "now": now,
            "agent_id": "bot",
            "run_id": "run_1",
            "user_id": run.user_id,
            "pack": pack.ref,
            "request": Jsonb({}),
            "result_ids": ids,
            "omitted": 0,
        }
        await cursor.execute(record.sql, record.arguments(values), prepare=True)
        await cursor.execute("COMMIT")
        return len(ids)

    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS) as fabric:
        clock = fabric._desk.now

        async def ours(round_: int) -> int:
            return len((await fabric.recall(runs[round_])).records)

        assert await ours(0) == 8 <= await statements(0)
        times = await in_turns(2000, 300, ours=ours, bare=statements)
    await bare.close()
    server.drop(database)
    ratio = median_ms(times["ours"]) / median_ms(times["bare"])
    detail = f"ours {median_ms(times['ours']):.2f} ms, its SQL {median_ms(times['bare']):.2f} ms, medians of 2,000"
    print(detail, file=sys.stderr)
    return [
        Figure(
            "recall against its bare SQL, 100,000 memories in 100 tenants",
            ratio,
            "times its median",
            f"<= {BAR}",
            ratio <= BAR,
            detail,
        )
    ]
