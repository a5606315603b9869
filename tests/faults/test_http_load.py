"""Load over HTTP: many clients on one server with its worker inside; nothing fails, is lost or done twice, memory stays.

MUNIMENT_LOAD_SECONDS says for how long; `make soak` gives it a minute, and shows what it prints.
"""

import asyncio
import os
import sys
import time
from collections import Counter
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from muniment import Fabric
from muniment.database import embedded
from muniment.opening import DATABASE
from muniment.testing import People
from tests.faults.load import Measured, Serving, agent, clients, reviewer, token
from tests.faults.servers import eventually

SECONDS = float(os.environ.get("MUNIMENT_LOAD_SECONDS", "2.5"))
MEGABYTE = 1024 * 1024
# What a process may come to need once (connections, plans, caches that are filled), and for each 10,000 requests.
ONCE, FOR_TEN_THOUSAND = 12 * MEGABYTE, 4 * MEGABYTE


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
@pytest.mark.rule("CAP-10", "JOB-1", "ERR-2")
def test_a_server_under_load_answers_all_and_does_each_thing_once(new_home: Path) -> None:
    cast = [People("tenant_a"), People("tenant_b")]
    with Fabric.open(home=new_home) as local:
        server = Serving("--home", new_home, MUNIMENT_MASTER_KEY="")
        with server.running():
            warm, measured = Measured(), Measured()
            while not (warm.recalled and warm.approved):  # On a busy machine one round may not come so far.
                asyncio.run(load(local, server.url, cast, SECONDS / 3, warm, seed=1))
            for people in cast:
                eventually(lambda: local.work.backlog(people.admin).behind == 0, 60)  # noqa: B023  called at once
            before = server.resident()
            began = time.monotonic()
            asyncio.run(load(local, server.url, cast, SECONDS, measured, seed=2))
            taken = time.monotonic() - began
            for people in cast:
                eventually(lambda: local.work.backlog(people.admin).behind == 0, 60)  # noqa: B023  called at once
            grown = server.resident() - before
            assert server.stop() == 0
        for_ten_thousand = grown / len(measured.seconds) * 10_000
        print(
            f"\nload over HTTP: {measured.figures(taken)}; {measured.recalled} recalls, {measured.approved} approvals;"
            f" memory from {before / MEGABYTE:.0f} MB on grown by {grown / MEGABYTE:.1f} MB,"
            f" {for_ten_thousand / MEGABYTE:.1f} MB for 10,000 requests"
        )
        assert measured.recalled and measured.approved
        for people in cast:
            kept = [*warm.acknowledged[people.tenant_id], *measured.acknowledged[people.tenant_id]]
            assert consolidated(new_home, people.tenant_id) == Counter({(one, 1, 1): 1 for one in kept})
        assert grown < ONCE + FOR_TEN_THOUSAND * len(measured.seconds) / 10_000


async def load(local: Fabric, url: str, cast: list[People], seconds: float, measured: Measured, *, seed: int) -> None:
    """Two agents and a reviewer of each tenant, for so long; whatever fails is raised."""
    tokens = [token(local, who) for people in cast for who in (people.run(), people.run(), people.reviewer)]
    until = time.monotonic() + seconds
    async with clients(url, tokens, retries=0) as opened, asyncio.TaskGroup() as tasks:
        for n, people in enumerate(cast):
            first, second, third = opened[3 * n : 3 * n + 3]
            tasks.create_task(agent(first, people, 100 * seed + 2 * n, until, measured))
            tasks.create_task(agent(second, people, 100 * seed + 2 * n + 1, until, measured))
            tasks.create_task(reviewer(third, people, until, measured))


def consolidated(home: Path, tenant_id: str) -> "Counter[tuple[object, ...]]":
    """Every capture there is, with how many candidates came of it and how often it was consolidated."""
    with embedded.acquire(home) as lease:
        place = make_conninfo(lease.conninfo, dbname=DATABASE, options="-c search_path=muniment,public")
        with psycopg.connect(place) as owner:
            rows = owner.execute(
                "SELECT c.capture_id,"
                " (SELECT count(*) FROM candidates d WHERE d.tenant_id = c.tenant_id AND d.capture_id = c.capture_id),"
                " (SELECT count(*) FROM consolidations e WHERE e.tenant_id = c.tenant_id AND e.capture_id = c.capture_id)"
                " FROM captures c WHERE c.tenant_id = %s",
                [tenant_id],
            ).fetchall()
    return Counter(rows)
