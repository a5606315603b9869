"""A call that is cancelled anywhere leaves no connection behind that the next, of another tenant, could stumble over."""

import asyncio

import pytest

from muniment import AsyncFabric
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS


@pytest.mark.rule("ISO-1", "ISO-3", "ERR-2")
def test_cancelled_calls_leave_clean_connections(
    server: TestServer, database: str, clock: FakeClock, people: People, others: People
) -> None:
    async def story() -> int:
        async with AsyncFabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) as fabric:
            for there in (people, others):
                await fabric.capture(there.run(), kind="message", text="first", classification="INTERNAL")
            items = [
                {"kind": "statement", "text": f"text {n}", "classification": "INTERNAL", "subject": f"customer:c{n}"}
                for n in range(300)
            ]
            cancelled = 0
            for delay in range(0, 60, 2):
                for call in (
                    fabric.capture_many(people.run(), items),
                    fabric.recall(people.run()),
                    fabric.queue.list(people.reviewer),
                ):
                    task = asyncio.create_task(call)
                    await asyncio.sleep(delay / 2000)
                    task.cancel()
                    (outcome,) = await asyncio.gather(task, return_exceptions=True)
                    cancelled += isinstance(outcome, asyncio.CancelledError)
                    assert not isinstance(outcome, Exception), outcome
                await fabric.capture(others.run(), kind="message", text="next", classification="INTERNAL")
                assert (await fabric.recall(others.run())).records == ()
            seen = {event.tenant_id for event in await fabric.events(others.auditor, limit=1000)}
            assert seen == {others.tenant_id}
            return cancelled

    assert asyncio.run(story()) > 20
    with server.connect(database) as owner:
        rows = owner.execute(
            "SELECT count(*), count(*) %% 300 FROM captures WHERE tenant_id = %s", [people.tenant_id]
        ).fetchone()
        stuck = owner.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND state LIKE 'idle in transaction%%'",
            [database],
        ).fetchone()
    assert rows is not None and rows[1] == 1, "batches whole or not at all, beside the one before them"
    assert stuck == (0,)
