"""Capture in batches of 1,000 against a bare COPY of the same sealed bytes into an equal table without row security."""

from typing import Any, LiteralString, cast

import psycopg

from bench.measure import Figure, in_turns, median_ms, without_bar
from muniment import AsyncFabric, RunContext
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS

BATCH = 1000


def batch(round_: int) -> list[dict[str, Any]]:
    """A thousand captures about a hundred subjects, as an agent's run writes them."""
    return [
        {
            "kind": "statement",
            "text": f"In round {round_} customer {n % 100} said that delivery number {n} should go to the side door.",
            "classification": "INTERNAL",
            "subject": f"customer:cust_{n % 100}",
            "user_id": f"cust_{n % 100}",
            "origin": "channel:app_chat",
            "evidence_refs": [f"session:s{n % 100}"],
        }
        for n in range(BATCH)
    ]


async def run(server: TestServer, quick: bool) -> list[Figure]:
    """Both in turns in one database; rows a second of ours over rows a second of COPY."""
    database, rounds = server.clone(), 3 if quick else 35
    agent: RunContext = People("bench").run(None, session_id="sess_1", intent_id="support.orders")
    with server.connect(database) as owner:
        owner.execute("CREATE TABLE bare (LIKE captures INCLUDING ALL) PARTITION BY HASH (tenant_id)")
        for n in range(8):
            owner.execute(f"CREATE TABLE bare_{n} PARTITION OF bare FOR VALUES WITH (MODULUS 8, REMAINDER {n})")
        owner.execute("GRANT ALL ON bare TO muniment_writer")
    bare = await psycopg.AsyncConnection.connect(server.task_url(database, "writer"), autocommit=False)
    async with AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS) as fabric:
        batches = [batch(round_) for round_ in range(rounds)]

        async def ours(round_: int) -> None:
            await fabric.capture_many(agent, batches[round_])

        # The very rows that ours sealed, read back beforehand, under other ids.
        await ours(0)
        with server.connect(database) as owner:
            rows = owner.execute("SELECT * FROM captures").fetchall()

        async def copy(round_: int) -> None:
            async with bare.cursor() as cursor, cursor.copy(cast("LiteralString", "COPY bare FROM STDIN")) as writer:
                for row in rows_of(round_):
                    await writer.write_row(row)
            await bare.commit()

        prepared: dict[int, list[tuple[Any, ...]]] = {}

        def rows_of(round_: int) -> list[tuple[Any, ...]]:
            return prepared.pop(round_)

        for round_ in range(rounds):
            prepared[round_] = [(row[0], f"cap_{round_:012x}{str(row[1])[-16:]}", *row[2:]) for row in rows]
        times = await in_turns(rounds - rounds // 7, rounds // 7, ours=ours, copy=copy)
    await bare.close()
    server.drop(database)
    ratio = median_ms(times["copy"]) / median_ms(times["ours"])
    detail = f"ours {median_ms(times['ours']):.1f} ms, COPY {median_ms(times['copy']):.1f} ms a batch of {BATCH}"
    return [without_bar("capture in batches against bare COPY", ratio, "times its rows a second", "none", detail)]
