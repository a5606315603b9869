"""A PostgreSQL that is stopped, killed, paused, slow or full: what calls raise, how soon, and how they recover."""

import asyncio
import gc
import os
import signal
import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress

import pytest

from muniment import AsyncFabric
from muniment.database import embedded, server_liveness
from muniment.opening import Opened
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from muniment.worker import worker
from muniment.worker.due import Due
from muniment.worker.worker import Worker
from tests.faults.concurrency import hold_clock
from tests.faults.servers import eventually, family, postmaster
from tests.outcomes import outcome

# It takes some tens of milliseconds; three seconds was what a wait for the pool took.
AT_ONCE = 2.0
SILENT = server_liveness.PATIENCE_SECONDS + server_liveness.ANSWER_SECONDS


def stop(server: TestServer) -> None:
    embedded.stop(server.home)


def kill(server: TestServer) -> None:
    processes = family(postmaster(server.home))
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    # A zombie of ours is waited for when the next server starts.
    eventually(lambda: not embedded.is_running(server.home))


def start(server: TestServer) -> None:
    embedded.keep_running(server.home)


@contextmanager
def paused(server: TestServer) -> Generator[None]:
    processes = family(postmaster(server.home))
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in processes:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def opened(server: TestServer, database: str) -> AsyncFabric:
    return AsyncFabric.open(server.url(database), master_keys=MASTER_KEYS)


def recalls(fabric: AsyncFabric, number: int) -> list[Awaitable[tuple[str, float]]]:
    """Of eight tenants, each more than it has turns, and together more than there are connections."""
    return [outcome(fabric.recall(People(f"tenant_{n % 8}").run())) for n in range(number)]


async def captured(fabric: AsyncFabric, people: People, text: str) -> None:
    await fabric.capture(people.run(), kind="statement", text=text, classification="PUBLIC")


def statuses(outcomes: list[tuple[str, float]]) -> set[str]:
    return {code for code, _ in outcomes}


def slowest(outcomes: list[tuple[str, float]]) -> float:
    return max(seconds for _, seconds in outcomes)


@pytest.mark.rule("ERR-3")
@pytest.mark.parametrize("end", [stop, kill])
def test_calls_fail_at_once_while_the_server_is_away_and_succeed_as_soon_as_it_is_back(
    away: TestServer, own: str, end: Callable[[TestServer], None]
) -> None:
    async def story() -> None:
        async with opened(away, own) as fabric:
            assert statuses(await asyncio.gather(*recalls(fabric, 40))) == {"ok"}
            end(away)
            # the first finds connections that died; those after it find none
            for _ in range(3):
                code, seconds = await outcome(fabric.recall(People("tenant_0").run()))
                assert code == "storage_unavailable"
                assert seconds < AT_ONCE
            many = await asyncio.gather(*recalls(fabric, 100))
            assert statuses(many) == {"storage_unavailable"}
            assert slowest(many) < AT_ONCE
            await asyncio.to_thread(start, away)
            back = time.monotonic()
            while (await outcome(fabric.recall(People("tenant_0").run())))[0] != "ok":
                assert time.monotonic() < back + AT_ONCE
            assert statuses(await asyncio.gather(*recalls(fabric, 100))) == {"ok"}

    asyncio.run(story())


@pytest.mark.rule("ERR-3", "ERR-2", "CAP-10")
def test_a_server_killed_and_started_under_load_costs_no_acknowledged_capture(away: TestServer, own: str) -> None:
    people = People("tenant_load")
    acknowledged: set[str] = set()
    failures: set[str] = set()
    longest = 0.0

    async def load(fabric: AsyncFabric, name: str, ended: asyncio.Event) -> None:
        nonlocal longest
        number = 0
        while not ended.is_set():
            text = f"{name} wrote line {number}"
            code, seconds = await outcome(captured(fabric, people, text))
            longest = max(longest, seconds)
            if code == "ok":
                acknowledged.add(text)
            else:
                failures.add(code)
            number += 1

    async def story() -> None:
        ended = asyncio.Event()
        async with opened(away, own) as fabric:
            await captured(fabric, people, "the first")
            writers = [asyncio.create_task(load(fabric, f"writer_{n}", ended)) for n in range(8)]
            for before in (0, 40):
                await asyncio.to_thread(eventually, lambda: len(acknowledged) > before + 20)  # noqa: B023  called at once
                failures.clear()
                await asyncio.to_thread(kill, away)
                await asyncio.to_thread(eventually, lambda: failures)
                await asyncio.to_thread(start, away)
            before = len(acknowledged)
            await asyncio.to_thread(eventually, lambda: len(acknowledged) > before + 20)
            ended.set()
            await asyncio.gather(*writers)
            await fabric.consolidate(people.tenant_id)
            waiting = await fabric.queue.list(people.reviewer, limit=1000)
            assert {one.candidate.text for one in waiting} >= acknowledged

    asyncio.run(story())
    assert failures == {"storage_unavailable"}
    assert longest < SILENT


@pytest.mark.rule("ERR-3")
def test_a_server_that_hangs_costs_a_call_three_seconds_wherever_the_call_is(away: TestServer, own: str) -> None:
    people = People("tenant_held")

    async def story() -> None:
        async with opened(away, own) as fabric:
            await captured(fabric, people, "the first")
            assert statuses(await asyncio.gather(*recalls(fabric, 40))) == {"ok"}
            with hold_clock(away, own, people.tenant_id) as gate:
                # two are in the middle of a statement, the others wait for their turn
                begun = [asyncio.create_task(outcome(captured(fabric, people, f"line {n}"))) for n in range(5)]
                await asyncio.to_thread(gate.until_waiting, 2)
                with paused(away):
                    hanging = time.monotonic()
                    found = await asyncio.gather(*recalls(fabric, 60), *begun)
                    assert time.monotonic() - hanging < SILENT + AT_ONCE
                    assert statuses(found) == {"storage_unavailable"}
            back = time.monotonic()
            while (await outcome(captured(fabric, people, "the last")))[0] != "ok":
                assert time.monotonic() < back + AT_ONCE
            assert statuses(await asyncio.gather(*recalls(fabric, 60))) == {"ok"}

    asyncio.run(story())


@pytest.mark.rule("ERR-3")
def test_a_statement_that_takes_long_on_a_server_that_answers_is_waited_for(
    away: TestServer, own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_liveness, "PATIENCE_SECONDS", 0.01)
    people = People("tenant_slow")

    def logins() -> int:
        with away.connect("postgres") as connection:
            row = connection.execute("SELECT sessions FROM pg_stat_database WHERE datname = %s", [own]).fetchone()
            return int(str(row[0])) if row else 0

    async def story() -> None:
        async with opened(away, own) as fabric:
            await captured(fabric, people, "the first")
            with hold_clock(away, own, people.tenant_id) as gate:
                waiting = [asyncio.create_task(outcome(captured(fabric, people, f"line {n}"))) for n in range(5)]
                await asyncio.to_thread(gate.until_waiting, 2)
                before = logins()
                # the server was asked more than once while they waited, in the middle of a statement and for a turn
                await asyncio.to_thread(eventually, lambda: logins() >= before + 5)
            assert statuses(await asyncio.gather(*waiting)) == {"ok"}

    asyncio.run(story())


@pytest.mark.rule("ERR-3")
def test_a_server_that_takes_no_more_connections_has_calls_wait_for_those_it_gave(away: TestServer, own: str) -> None:
    with away.connect(own) as owner:
        owner.execute("ALTER ROLE muniment_recall CONNECTION LIMIT 2")
    try:

        async def story() -> None:
            async with opened(away, own) as fabric:
                assert statuses(await asyncio.gather(*recalls(fabric, 60))) == {"ok"}

        asyncio.run(story())
    finally:
        with away.connect(own) as owner:
            owner.execute("ALTER ROLE muniment_recall CONNECTION LIMIT -1")


@pytest.mark.rule("ERR-3", "JOB-1")
def test_a_worker_goes_on_by_itself_when_the_server_is_back(
    away: TestServer, own: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "BUSY_SECONDS", 0.5)
    people = People("tenant_work")

    async def story() -> None:
        async with opened(away, own) as fabric:
            parts: Opened = fabric._opened  # type: ignore[assignment]  # it is open
            await captured(fabric, people, "the first")
            done: list[Due] = []
            working = asyncio.create_task(Worker(parts, on_done=lambda what, _: done.append(what)).forever())
            consolidated = Due(people.tenant_id, "consolidate")
            await asyncio.to_thread(eventually, lambda: consolidated in done)
            stop(away)
            await asyncio.to_thread(eventually, lambda: "the worker lost the database" in caplog.text)
            await asyncio.to_thread(start, away)
            await captured(fabric, people, "the second")
            done.clear()
            await asyncio.to_thread(eventually, lambda: consolidated in done)
            assert len(await fabric.queue.list(people.reviewer)) == 2
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)

    asyncio.run(story())
    # What the queue's package leaves of a job it could not mark as done is told here, not in the middle of another test.
    gc.collect()
