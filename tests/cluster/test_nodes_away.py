"""A node that is refused, cut or silent: what the tenants on it and the others get, and how soon (SCL-3)."""

import asyncio
import time
from datetime import UTC, datetime

import pytest

from muniment.database.cluster import node_liveness
from muniment.database.server_liveness import PATIENCE_SECONDS
from muniment.database.storage import Storage
from tests.cluster.databases import ClusterDatabase, storage_of
from tests.outcomes import outcome

# SCL-3 in figures.
AT_ONCE = 0.1
# The first calls that find a node silent: a second of patience, the look at the coordinator and at the node.
SILENT = PATIENCE_SECONDS + 2 * node_liveness.ANSWER_SECONDS + node_liveness.LOOKUP_SECONDS
BACK = 2.0


async def read(storage: Storage, tenant: str) -> None:
    async with storage.transaction(tenant, "recall", datetime.now(UTC)) as tx:
        await tx.rows("tenant.clock")


async def written(storage: Storage, tenant: str) -> None:
    async with storage.transaction(tenant, "jobs", datetime.now(UTC)) as tx:
        await tx.do("jobs.ran", job="j", seq=1, next_at=None, took=0.1, failures=0, error=None)


async def until_served(storage: Storage, tenant: str) -> float:
    began = time.monotonic()
    while (await outcome(read(storage, tenant)))[0] != "ok":
        assert time.monotonic() < began + 10 * BACK
        await asyncio.sleep(0.02)
    return time.monotonic() - began


@pytest.mark.rule("SCL-3")
def test_tenants_of_a_node_that_is_cut_off_fail_at_once_and_others_notice_nothing(divided: ClusterDatabase) -> None:
    far, near = divided.tenants(3)

    async def story() -> None:
        async with storage_of(divided) as storage:
            for tenant in (*far, *near):
                assert (await outcome(read(storage, tenant)))[0] == "ok"
                assert (await outcome(written(storage, tenant)))[0] == "ok"
            before = {task: pool.size for task, pool in storage._pools.items()}
            divided.last.cut()
            for _ in range(5):
                for tenant in far:
                    for call in (read, written):
                        code, took = await outcome(call(storage, tenant))
                        assert (code, took < AT_ONCE) == ("storage_unavailable", True), took
                for tenant in near:
                    assert (await outcome(read(storage, tenant)))[0] == "ok"
                    assert (await outcome(written(storage, tenant)))[0] == "ok"
            assert len(storage.nodes.away) == 1, "from now on nobody tries"
            assert {task: pool.size for task, pool in storage._pools.items()} == before, "no connection was given up"
            divided.last.restore()
            assert await until_served(storage, far[0]) < BACK
            assert storage.nodes.away == []
            assert (await outcome(written(storage, far[1])))[0] == "ok"

    asyncio.run(story())


@pytest.mark.rule("SCL-3")
def test_a_node_that_falls_silent_holds_up_only_the_calls_that_find_it_so(divided: ClusterDatabase) -> None:
    far, near = divided.tenants(2)

    async def story() -> None:
        async with storage_of(divided) as storage:
            for tenant in (*far, *near):
                assert (await outcome(read(storage, tenant)))[0] == "ok"
            divided.last.silence()
            first = asyncio.gather(*(outcome(read(storage, far[0])) for _ in range(4)))
            while not first.done():
                assert (await outcome(read(storage, near[0])))[0] == "ok"
                await asyncio.sleep(0.02)
            assert {code for code, _ in await first} == {"storage_unavailable"}
            assert max(took for _, took in await first) < SILENT
            for tenant in far:
                code, took = await outcome(read(storage, tenant))
                assert (code, took < AT_ONCE) == ("storage_unavailable", True), took
            divided.last.restore()
            assert await until_served(storage, far[1]) < BACK

    asyncio.run(story())


@pytest.mark.rule("SCL-3", "ERR-2")
def test_a_node_that_is_lost_between_a_write_and_its_commit_is_an_error(divided: ClusterDatabase) -> None:
    (tenant,), _ = divided.tenants(1)

    async def story() -> None:
        async with storage_of(divided) as storage:
            await written(storage, tenant)

            async def lost() -> None:
                async with storage.transaction(tenant, "jobs", datetime.now(UTC)) as tx:
                    await tx.do("jobs.ran", job="lost", seq=1, next_at=None, took=0.1, failures=0, error=None)
                    divided.last.cut()

            assert (await outcome(lost()))[0] == "storage_unavailable"
            divided.last.restore()
            await until_served(storage, tenant)
            async with storage.transaction(tenant, "jobs", datetime.now(UTC)) as tx:
                assert [row["job"] for row in await tx.rows("jobs.runs")] == ["j"]

    asyncio.run(story())
