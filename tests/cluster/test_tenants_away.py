"""The whole program while one node of the cluster is away: its tenants, the others, and the jobs of both (SCL-3)."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from muniment import AsyncFabric
from muniment.database.cluster import checks, moving
from muniment.errors import StorageUnavailable
from muniment.opening import Opened
from muniment.testing import People
from muniment.testing.database import MASTER_KEYS
from muniment.worker.due import Due
from muniment.worker.worker import Worker
from tests.cluster.databases import ClusterDatabase
from tests.cluster.proxies import proxy
from tests.cluster.test_moved import superuser
from tests.outcomes import outcome

AT_ONCE = 1.0
FAILURES = "SELECT tenant_id, job, failures, error FROM muniment.job_runs WHERE failures > 0 OR error IS NOT NULL"


async def until(holds: Callable[[], bool], seconds: float = 30.0) -> None:
    give_up_at = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < give_up_at, "it never came"
        await asyncio.sleep(0.02)


def capture(fabric: AsyncFabric, people: People) -> Awaitable[Any]:
    return fabric.capture(people.run(), kind="statement", text="The depot is closed.", classification="INTERNAL")


def recall(fabric: AsyncFabric, people: People) -> Awaitable[Any]:
    return fabric.recall(people.run(), "depot")


def queue(fabric: AsyncFabric, people: People) -> Awaitable[Any]:
    return fabric.queue.list(people.reviewer)


def log(fabric: AsyncFabric, people: People) -> Awaitable[Any]:
    return fabric.events(people.auditor)


CALLS = (capture, recall, queue, log)


async def _jobs_of_others_go_on(fabric: AsyncFabric, near: People, done: list[Due]) -> None:
    done.clear()
    assert (await outcome(capture(fabric, near)))[0] == "ok"
    await until(lambda: Due(near.tenant_id, "consolidate") in done)


@pytest.mark.rule("SCL-3", "JOB-1", "ERR-3")
def test_a_node_s_tenants_fail_at_once_while_others_and_their_jobs_go_on_and_all_resumes(
    distributed: ClusterDatabase,
) -> None:
    (far_name,), (near_name,) = distributed.tenants(1)
    far, near = People(far_name), People(near_name)

    async def story() -> None:
        async with AsyncFabric.open(distributed.owner, master_keys=MASTER_KEYS) as fabric:
            parts: Opened = fabric._opened  # type: ignore[assignment]  # it is open
            for people in (far, near):
                for call in CALLS:
                    assert (await outcome(call(fabric, people)))[0] == "ok"
            done: list[Due] = []
            working = asyncio.create_task(Worker(parts, on_done=lambda what, _: done.append(what)).forever())
            await until(lambda: {Due(far_name, "consolidate"), Due(near_name, "consolidate")} <= set(done))
            assert (await outcome(capture(fabric, far)))[0] == "ok"
            distributed.last.cut()
            for _ in range(5):
                for call in CALLS:
                    code, took = await outcome(call(fabric, far))
                    assert (code, took < AT_ONCE) == ("storage_unavailable", True), took
                for call in CALLS:
                    assert (await outcome(call(fabric, near)))[0] == "ok"
            await _jobs_of_others_go_on(fabric, near, done)
            await _jobs_of_others_go_on(fabric, near, done)
            assert near_name in await _listed(parts) and far_name not in await _listed(parts)
            await _a_process_that_begins_now_serves_others(distributed, far, near)
            done.clear()
            distributed.last.restore()
            await until(lambda: Due(far_name, "consolidate") in done)
            for call in CALLS:
                assert (await outcome(call(fabric, far)))[0] == "ok"
            assert [one.candidate.text for one in await fabric.queue.list(far.reviewer)]
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            assert (await fabric.verify(far.auditor)).ok

    asyncio.run(asyncio.wait_for(story(), 120))
    assert distributed.execute(FAILURES) == [], "a node that is away counts as no failure of a job"


async def _a_process_that_begins_now_serves_others(distributed: ClusterDatabase, far: People, near: People) -> None:
    async with AsyncFabric.open(distributed.owner, master_keys=MASTER_KEYS) as fabric:
        for call in CALLS:
            assert (await outcome(call(fabric, far)))[0] == "storage_unavailable"
            assert (await outcome(call(fabric, near)))[0] == "ok"


async def _listed(parts: Opened) -> set[str]:
    from muniment.worker.due import DueJobs

    assert parts.context.storage.nodes.away
    rows = await DueJobs(parts)._known(None)
    assert "consolidate" in {row["job"] for row in rows}, "with the runs of jobs"
    return {row["tenant_id"] for row in rows}


@pytest.mark.rule("SCL-3")
def test_a_tenant_s_node_is_found_under_its_new_address_when_another_server_takes_its_place(
    distributed: ClusterDatabase,
) -> None:
    (far_name,), _ = distributed.tenants(1)
    far = People(far_name)

    async def story() -> None:
        async with AsyncFabric.open(distributed.owner, master_keys=MASTER_KEYS) as fabric:
            assert (await outcome(capture(fabric, far)))[0] == "ok"
            distributed.last.cut()
            await until_code(fabric, far, "storage_unavailable")
            began = datetime.now(UTC)
            place = distributed.workers[-1]
            ((port,),) = distributed.execute("SHOW port", place=place)
            change = "SELECT citus_update_node(nodeid, '127.0.0.1', {}) FROM pg_dist_node WHERE nodeport = {}"
            distributed.execute(change.format(port, distributed.last.port))
            await until_code(fabric, far, "ok")
            assert (datetime.now(UTC) - began).total_seconds() < 10
            distributed.last.restore()
            distributed.execute(change.format(distributed.last.port, port))
            await until_code(fabric, far, "ok")

    async def until_code(fabric: AsyncFabric, people: People, wanted: str) -> None:
        give_up_at = time.monotonic() + 20
        while (await outcome(recall(fabric, people)))[0] != wanted:
            assert time.monotonic() < give_up_at
            await asyncio.sleep(0.05)

    asyncio.run(asyncio.wait_for(story(), 120))


@pytest.mark.rule("SCL-3", "SCL-2")
def test_a_check_takes_no_longer_for_many_silent_nodes_than_for_one(distributed: ClusterDatabase) -> None:
    """The check has half a minute, or nobody is served: six nodes, one after the other, would take longer."""
    waits = 3.0
    place = make_conninfo(distributed.coordinator, options=f"-c citus.node_connection_timeout={waits}s")

    async def checked() -> float:
        async with await psycopg.AsyncConnection.connect(place, autocommit=True) as connection:
            began = time.monotonic()
            assert await checks.problems(connection, serving=place) == []
            return time.monotonic() - began

    with contextlib.ExitStack() as silent:
        for n in range(6):
            line = silent.enter_context(proxy(("127.0.0.1", distributed.last.port)))
            line.silence()
            distributed.execute(
                "INSERT INTO pg_dist_node (nodeid, groupid, nodename, nodeport, isactive, hasmetadata)"
                f" VALUES ({9000 + n}, {9000 + n}, '127.0.0.1', {line.port}, true, false)"
            )
        try:
            assert waits <= asyncio.run(checked()) < 5 * waits
        finally:
            distributed.execute("DELETE FROM pg_dist_node WHERE nodeid >= 9000")


@pytest.mark.rule("SCL-1", "SCL-3")
def test_a_tenant_whose_node_is_away_gets_no_shard_of_its_own_and_the_node_is_named(
    distributed: ClusterDatabase,
) -> None:
    (far,), _ = distributed.tenants(1)
    known = f"INSERT INTO muniment.tenants (tenant_id, created_at) VALUES ('{far}', now()) ON CONFLICT DO NOTHING"
    distributed.execute(known)
    distributed.last.cut()
    try:
        with pytest.raises(
            StorageUnavailable, match=rf"node \w+@127\.0\.0\.1:{distributed.last.port} failed"
        ) as caught:
            asyncio.run(moving.isolate(superuser(distributed), far))
    finally:
        distributed.last.restore()
    assert "see muniment db status" in caught.value.message and "\n" not in caught.value.message
