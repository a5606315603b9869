"""A shard that is weakened while the program runs: nothing is served and no receipt issued until it is repaired (SCL-2)."""

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from muniment import AsyncFabric
from muniment.database.cluster import guard
from muniment.erasure import job as purge
from muniment.errors import PurgeIncomplete
from muniment.testing import People
from muniment.testing.database import MASTER_KEYS
from muniment.worker.worker import Worker
from tests.cluster.databases import ClusterDatabase
from tests.outcomes import outcome

CHECK_SECONDS = 0.5


def shard(cluster: ClusterDatabase, table: str) -> str:
    """The name of a shard of that table on the first worker."""
    ((port,),) = cluster.execute("SHOW port", place=cluster.workers[0])
    ((number,),) = cluster.execute(
        f"SELECT min(shardid) FROM citus_shards WHERE table_name = 'muniment.{table}'::regclass AND nodeport = {port}"
    )
    return f"muniment.{table}_{number}"


def change(cluster: ClusterDatabase, statement: str) -> None:
    """Run a statement on the first worker alone."""
    cluster.execute(f"SET citus.enable_manual_changes_to_shards = on; {statement}", place=cluster.workers[0])


async def until(holds: Callable[[], Awaitable[bool]]) -> float:
    began = time.monotonic()
    while not await holds():
        assert time.monotonic() < began + 60
        await asyncio.sleep(0.02)
    return time.monotonic() - began


@pytest.mark.rule("SCL-2", "ERA-3")
def test_an_open_process_refuses_at_the_next_check_and_serves_again_once_a_worker_has_repaired_it(
    distributed: ClusterDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "CHECK_EVERY", CHECK_SECONDS)
    everybody = [People(tenant) for tenants in distributed.tenants(1) for tenant in tenants]

    async def story() -> None:
        async with AsyncFabric.open(distributed.owner, master_keys=MASTER_KEYS) as fabric:

            async def codes() -> set[str]:
                return {(await outcome(fabric.recall(people.run(), "depot")))[0] for people in everybody}

            async def is_refused() -> bool:
                return await codes() == {"storage_unavailable"}

            async def is_served() -> bool:
                return await codes() == {"ok"}

            assert await is_served()
            lost = shard(distributed, "captures_3")
            change(distributed, f"ALTER TABLE {lost} ALTER COLUMN content SET STATISTICS 100")
            # A look may take seconds itself where many tests share the machine.
            assert await until(is_refused) < 2 * CHECK_SECONDS + 20
            working = asyncio.create_task(Worker(fabric.opened).forever())
            await until(is_served)
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
            sampled = (
                f"SELECT attstattarget FROM pg_attribute WHERE attrelid = '{lost}'::regclass AND attname = 'content'"
            )
            assert distributed.execute(sampled, place=distributed.workers[0]) == [(0,)]

    asyncio.run(asyncio.wait_for(story(), 200))


@pytest.mark.rule("SCL-2", "SCL-6", "ERA-3")
def test_a_purge_with_a_weakened_shard_issues_no_receipt(distributed: ClusterDatabase) -> None:
    _, (near,) = distributed.tenants(1)
    people = People(near)

    async def story() -> None:
        async with AsyncFabric.open(distributed.owner, master_keys=MASTER_KEYS) as fabric:
            said = {"kind": "statement", "text": "The depot is closed.", "classification": "INTERNAL"}
            await fabric.capture(people.run(None), **said, subject="customer:cus_77")
            await fabric.consolidate(people.tenant_id)
            await fabric.erase(people.officer, subject="customer:cus_77")
            weakened = shard(distributed, "memories")
            change(distributed, f"CREATE POLICY narrow ON {weakened} AS RESTRICTIVE FOR SELECT USING (true)")
            last = ""

            async def ends_with(wanted: str) -> bool:
                nonlocal last
                try:
                    await purge.run(fabric.opened, people.tenant_id)
                    last = "purged"
                except PurgeIncomplete as error:
                    last = error.message
                assert wanted != "the cluster is not safe to use" or last != "purged"
                return last.startswith(wanted)

            # Another test may have a transaction open on this server, which a purge waits for.
            await until(lambda: ends_with("the cluster is not safe to use"))
            assert "restrictive policies" in last
            (waits,) = await fabric.erasures(people.auditor)
            assert waits.purged_at is None
            change(distributed, f"DROP POLICY narrow ON {weakened}")
            await until(lambda: ends_with("purged"))
            (done,) = await fabric.erasures(people.auditor)
            assert done.purged_at is not None

    asyncio.run(asyncio.wait_for(story(), 200))
