"""What goes before the jobs of other tenants, and how long a quiet tenant waits beside busy ones (ISO-3)."""

import asyncio
from typing import Any

import pytest

from muniment import Fabric
from muniment.candidates import verbs
from muniment.job import JobResult
from muniment.opening import Opened
from muniment.testing import FakeClock
from muniment.worker import due, worker
from muniment.worker.due import Due, DueJobs
from muniment.worker.registry import JOBS
from muniment.worker.worker import Worker
from tests.worker.tenants import BUSY, QUIET, jobs_of, next_due, run_all, say


@pytest.mark.rule("ISO-3")
def test_a_tenant_where_nothing_was_left_undone_goes_before_those_with_captures_waiting(
    works: Fabric, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verbs, "BATCH", 1)
    monkeypatch.setattr(verbs, "BATCHES", 1)
    jobs, ran = jobs_of(works), list[Due]()
    run_all(works, next_due(works, jobs, 0))
    clock.advance(minutes=2)
    for _ in range(3):
        say(works, BUSY)
    found = next_due(works, jobs, 0)
    assert jobs.goes_first(Due("busy", "consolidate")), "it has rested, and nobody knows how much waits"
    run_all(works, [one for one in found if one.tenant_id == "busy"])
    clock.advance(seconds=20)

    async def ran_in_order() -> None:
        working = Worker(works._fabric.opened, on_done=lambda due, _: ran.append(due))
        said = {"kind": "statement", "text": "The gate is red.", "classification": "INTERNAL"}
        async with working._open():
            busy = await jobs.next(0)
            waiting = [Due(f"tenant_{number}", "consolidate") for number in range(5)]
            assert await working._enqueue([*busy, *waiting], jobs.goes_first) == len(busy) + 5
            await works._fabric.capture(QUIET.run(None), **said)
            await working._enqueue(await jobs.next(0), jobs.goes_first)
            await working._run_queued_jobs({(worker.FIRST, worker.QUEUE): 1}, wait=False)
            clock.advance(seconds=3)
            # Again, though it ran a moment ago: a conversation goes on.
            await works._fabric.capture(QUIET.run(None), **said)
            found = await jobs.next(0)
            assert {one.tenant_id for one in found if one.job == "consolidate"} == {"busy", "quiet"}
            assert [one for one in found if jobs.goes_first(one)] == [Due("quiet", "consolidate")]

    works._portal.call(ran_in_order)
    assert ran[0] == Due("quiet", "consolidate"), "though it came last"
    assert [one.tenant_id for one in ran if one.job == "consolidate"][1] == "busy", "the rest in the order they came"


@pytest.mark.rule("ISO-3", "JOB-1")
def test_what_goes_first_is_done_in_part_where_much_waits_so_that_the_next_in_line_waits_little(
    works: Fabric, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verbs, "BRIEF_BATCH", 2)
    jobs, done = jobs_of(works), list[tuple[str, int, bool]]()
    run_all(works, next_due(works, jobs, 0))
    clock.advance(minutes=2)
    for _ in range(5):
        say(works, BUSY)
    say(works, QUIET)

    def note(due: Due, result: JobResult | None) -> None:
        if due.job == "consolidate" and result is not None:
            done.append((due.tenant_id, result.counts["captures"], result.more))

    async def work() -> None:
        working = Worker(works._fabric.opened, on_done=note)
        async with working._open():
            for _ in range(2):
                await working._enqueue(await jobs.next(0), jobs.goes_first)
                await working._run_queued_jobs({(worker.FIRST, worker.QUEUE): 1}, wait=False)
                clock.advance(seconds=1)

    works._portal.call(work)
    assert done[:2] == [("busy", 2, True), ("quiet", 1, False)]
    assert done[2:] == [("busy", 3, False)], "the rest in its turn"


@pytest.mark.rule("ISO-3")
def test_what_goes_first_runs_while_long_jobs_of_others_hold_every_other_slot(
    works: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = list[Due]()

    async def work() -> None:
        held, all_held, release = set[str](), asyncio.Event(), asyncio.Event()

        async def hold(_: Opened, tenant_id: str) -> JobResult:
            held.add(tenant_id)
            if len(held) == 2:
                all_held.set()
            await release.wait()
            return JobResult()

        def note(due: Due, _: JobResult | None) -> None:
            ran.append(due)
            release.set()

        monkeypatch.setitem(JOBS, "sweep", JOBS["sweep"]._replace(run=hold))
        working = Worker(works._fabric.opened, concurrency=3, on_done=note)
        async with working._open():
            await working._enqueue([Due(f"tenant_{number}", "sweep") for number in range(4)], lambda _: False)
            running = asyncio.create_task(working._run_queued_jobs(working._slots(), wait=True))
            await asyncio.wait_for(all_held.wait(), 30)
            await working._enqueue([Due("quiet", "consolidate")], lambda _: True)
            await asyncio.wait_for(release.wait(), 30)
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    works._portal.call(work)
    assert ran[0] == Due("quiet", "consolidate")


@pytest.mark.rule("ISO-3", "JOB-1")
def test_a_long_run_of_one_tenant_ends_after_the_batch_in_which_its_time_is_up(
    works: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verbs, "BATCH", 1)
    for _ in range(2):
        say(works, BUSY)

    def run() -> tuple[int, bool]:
        result = works._portal.call(verbs.run_job, works._fabric.opened, "busy")
        return result.counts["captures"], result.more

    monkeypatch.setattr(verbs, "RUN_SECONDS", 0.0)
    assert run() == (1, True)
    monkeypatch.setattr(verbs, "RUN_SECONDS", 60.0)
    assert run() == (2, False)


@pytest.mark.rule("ISO-3")
def test_a_check_that_took_long_beside_jobs_is_not_followed_by_a_long_rest(
    works: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, real = jobs_of(works), DueJobs._find
    run_all(works, next_due(works, jobs, 0))

    async def find_slowly(self: DueJobs, *tenants: Any, **limits: Any) -> Any:
        await asyncio.sleep(0.2)
        return await real(self, *tenants, **limits)

    monkeypatch.setattr(DueJobs, "_find", find_slowly)
    monkeypatch.setattr(due, "CHECK_EVERY", 0.0)
    monkeypatch.setattr(due, "_REST_AT_MOST", 0.3)
    next_due(works, jobs, 0)
    assert jobs.rest == 0.3
    # More tenants are more work: the rest grows with them.
    monkeypatch.setattr(due, "_REST_EACH", 1.0)
    next_due(works, jobs, 0)
    assert jobs.rest >= 4 * 0.2


@pytest.mark.rule("ISO-3")
def test_what_goes_first_does_not_hold_up_the_rest_altogether(works: Fabric, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = list[str]()

    async def ran_in_order(concurrency: int) -> list[str]:
        swept = asyncio.Event()

        async def hold(_: Opened, _tenant_id: str) -> JobResult:
            # Of two slots one is for the rest: the sweep runs though the other is held.
            if concurrency == 2:
                await asyncio.wait_for(swept.wait(), 30)
            return JobResult()

        def note(due: Due, _: JobResult | None) -> None:
            ran.append(due.job)
            if due.job == "sweep":
                swept.set()

        ran.clear()
        monkeypatch.setitem(JOBS, "consolidate", JOBS["consolidate"]._replace(run=hold, run_briefly=hold))
        working = Worker(works._fabric.opened, concurrency=concurrency, on_done=note)
        first = [Due(f"rested_{number}", "consolidate") for number in range(20)]
        async with working._open():
            await working._enqueue([Due("quiet", "sweep"), *first], lambda due: due in first)
            await working._run_queued_jobs(working._slots(), wait=False)
        assert len(ran) == 21
        return ran

    assert "sweep" in works._portal.call(ran_in_order, 1)[:4]
    assert works._portal.call(ran_in_order, 2)[0] == "sweep"
