"""A worker that is told to stop, and a fabric that was closed: nothing runs on alone, and the process can end."""

import asyncio
from contextlib import suppress
from typing import Literal, get_args

import anyio
import pytest

from muniment import AsyncFabric, Fabric
from muniment.errors import StorageUnavailable
from muniment.job import Job, JobResult
from muniment.opening import Opened
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from muniment.worker import worker
from muniment.worker.registry import JOBS
from muniment.worker.worker import Worker


class _Slow:
    """A job that ends when it is let."""

    def __init__(self) -> None:
        self.begun, self.may_end, self.has_ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def run(self, opened: Opened, tenant_id: str) -> JobResult:
        self.begun.set()
        await self.may_end.wait()
        async with opened.context.transaction(tenant_id, "jobs") as tx:
            await tx.commit_with(("tenant.clock", {}))
        self.has_ended.set()
        return JobResult({}, False, None)


How = Literal["by a scope", "twice", "until idle"]


async def _stopped(fabric: AsyncFabric, slow: _Slow, how: How, *, lets_end: bool) -> bool:
    """Stop a worker while it runs that job; returns whether it had stopped before the job could end."""
    stopping, worker = anyio.CancelScope(), Worker(fabric.opened)

    async def work() -> None:
        with stopping, suppress(asyncio.CancelledError):
            await (worker.until_idle() if how == "until idle" else worker.forever())

    working = asyncio.create_task(work())
    await slow.begun.wait()
    if how == "twice":
        for _ in range(2):
            working.cancel()
            await asyncio.wait([working], timeout=0.2)
    else:
        # Cancels again at each turn of the event loop.
        stopping.cancel()
    early, _ = await asyncio.wait([working], timeout=1.0 if lets_end else 30.0)
    if lets_end:
        slow.may_end.set()
    await asyncio.wait_for(working, 30)
    return bool(early)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> _Slow:
    """In place of `consolidate`."""
    made = _Slow()
    monkeypatch.setitem(JOBS, "consolidate", Job("consolidate", "JOB-1", made.run, follows_log=True))
    return made


def _stop(fabric: Fabric, people: People, slow: _Slow, how: How = "by a scope", *, lets_end: bool = True) -> bool:
    fabric.capture(people.run(), kind="statement", text="The gate is blue.", classification="INTERNAL")

    async def run() -> bool:
        return await _stopped(fabric._fabric, slow, how, lets_end=lets_end)

    return fabric._portal.call(run)


@pytest.mark.rule("ERR-2")
@pytest.mark.parametrize("how", get_args(How))
def test_a_worker_that_is_stopped_finishes_the_job_in_progress_first(
    server: TestServer, fresh_database: str, people: People, slow: _Slow, how: How
) -> None:
    with Fabric.open(server.url(fresh_database), master_keys=MASTER_KEYS) as fabric:
        assert not _stop(fabric, people, slow, how)
        assert slow.has_ended.is_set()
        with server.connect(fresh_database) as owner:
            ran = owner.execute("SELECT failures FROM muniment.job_runs WHERE job = 'consolidate'").fetchall()
    assert ran == [(0,)], "it is recorded before the worker has stopped"


@pytest.mark.rule("ERR-2")
def test_a_job_that_does_not_end_is_cut_off_after_a_while(
    server: TestServer, fresh_database: str, people: People, slow: _Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "GRACE", 0.1)
    with Fabric.open(server.url(fresh_database), master_keys=MASTER_KEYS) as fabric:
        assert _stop(fabric, people, slow, lets_end=False)
        assert not slow.has_ended.is_set()


@pytest.mark.rule("ERR-2", "ERR-3")
def test_a_worker_that_loses_its_queue_lets_the_job_in_progress_finish(
    server: TestServer, fresh_database: str, people: People, slow: _Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "GRACE", 0.1)

    async def run(fabric: AsyncFabric) -> None:
        working = asyncio.create_task(Worker(fabric.opened).forever())
        await slow.begun.wait()
        with server.connect(fresh_database) as owner:
            owner.execute("ALTER FUNCTION procrastinate.procrastinate_fetch_job_v2 RENAME TO away")
        # Each of the worker's loops has asked the queue again, and failed.
        await asyncio.wait([working], timeout=2.5)
        slow.may_end.set()
        with anyio.fail_after(30):
            await slow.has_ended.wait()
        working.cancel()
        await asyncio.wait([working])

    with Fabric.open(server.url(fresh_database), master_keys=MASTER_KEYS) as fabric:
        fabric.capture(people.run(), kind="statement", text="The gate is blue.", classification="INTERNAL")
        fabric._portal.call(run, fabric._fabric)
    assert slow.has_ended.is_set()


def test_a_fabric_that_was_closed_opens_no_connection_again(server: TestServer, database: str) -> None:
    async def run() -> None:
        fabric = await AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS)
        opened, before = fabric.opened, asyncio.all_tasks()
        context = opened.context
        await fabric.close()
        with pytest.raises(StorageUnavailable, match="closed"):
            async with context.transaction("acme", "jobs"):
                pass
        with pytest.raises(StorageUnavailable, match="closed"):
            await context.storage.listen("any", lambda: None, lambda _: None)
        with pytest.raises(StorageUnavailable, match="closed"):
            await Worker(opened).forever()
        assert asyncio.all_tasks() <= before, "nothing that would keep the event loop from ending"

    asyncio.run(run())
