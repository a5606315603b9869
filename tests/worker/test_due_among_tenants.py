"""Due jobs among many tenants: which are put into the queue, in what order, and what is read for it."""

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest

from muniment import Fabric
from muniment.database.cluster.node_liveness import NodeLiveness
from muniment.database.storage import Transaction
from muniment.pack import builtin_pack
from muniment.testing import FakeClock, TestServer
from muniment.worker import due, worker
from muniment.worker.due import Due, DueJobs
from muniment.worker.registry import JOBS
from muniment.worker.worker import Worker
from tests.worker.tenants import BUSY, QUIET, jobs_of, next_due, run_all, say

FOLLOWING = {name for name, job in JOBS.items() if job.follows_log}


@pytest.mark.rule("JOB-1", "ISO-3")
def test_work_that_follows_the_log_comes_first_and_housekeeping_only_as_far_as_there_is_room(works: Fabric) -> None:
    jobs = jobs_of(works)
    found = next_due(works, jobs, 3)
    assert {(one.tenant_id, one.job) for one in found[:-3]} == {
        (people.tenant_id, name) for people in (QUIET, BUSY) for name in FOLLOWING
    }
    assert {one.job for one in found[:2]} == {"consolidate"}, "in both tenants, before anything else"
    assert all(one.job not in FOLLOWING for one in found[-3:])
    later = next_due(works, jobs, 1000)
    others = [one for one in (*found, *later) if one.job not in FOLLOWING]
    assert len(others) == len(set(others)) == 2 * (len(JOBS) - len(FOLLOWING)), "each once, until it has run"


def _note_tenants_read(monkeypatch: pytest.MonkeyPatch, read: list[list[str] | None]) -> None:
    """Note of which tenants the runs are read, None for all."""
    real = Transaction.commit_with

    async def commit_with(self: Transaction, *statements: tuple[str, dict[str, list[str] | None]]) -> object:
        read.extend(given["tenants"] for name, given in statements if name == "jobs.known")
        return await real(self, *statements)

    monkeypatch.setattr(Transaction, "commit_with", commit_with)


@pytest.mark.rule("JOB-1", "ISO-3")
def test_between_two_checks_of_all_tenants_only_those_with_work_are_read(
    works: Fabric, monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    jobs, read = jobs_of(works), list[list[str] | None]()
    for _ in range(4):
        run_all(works, next_due(works, jobs, 1000))
        jobs._check_all_at = 0.0
        clock.advance(minutes=2)
    next_due(works, jobs, 1000)
    _note_tenants_read(monkeypatch, read)
    clock.advance(seconds=3)
    assert [one for one in next_due(works, jobs, 0) if one.job in FOLLOWING] == []
    say(works, BUSY)
    found = next_due(works, jobs, 0)
    assert Due("busy", "consolidate") in found
    assert {one.tenant_id for one in found} == {"busy"}
    assert read == [[], ["busy"]], "the other tenant's runs are not read"
    run_all(works, found)
    assert next_due(works, jobs, 0) == []
    jobs._check_all_at = 0.0
    next_due(works, jobs, 0)
    assert read[-1] is None, "now and then all are"


@pytest.mark.rule("JOB-1")
def test_a_job_that_ran_is_handed_out_again_when_it_is_due_and_one_that_did_not_run_after_a_while(
    works: Fabric, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, sweep = jobs_of(works), Due("quiet", "sweep")
    assert sweep in next_due(works, jobs, 1000)
    jobs._check_all_at = 0.0
    assert sweep not in next_due(works, jobs, 1000), "it waits in the queue"
    monkeypatch.setattr(due, "RETURNED_AGAIN", 0.0)
    jobs._check_all_at = 0.0
    assert sweep in next_due(works, jobs, 1000)
    monkeypatch.setattr(due, "RETURNED_AGAIN", 3600.0)
    run_all(works, [sweep])
    clock.advance(minutes=2)
    jobs._check_all_at = 0.0
    assert sweep in next_due(works, jobs, 1000)


@pytest.mark.rule("JOB-1")
def test_tenants_with_equal_packs_share_one_and_the_schedule_is_read_again_only_where_the_log_moved(
    works: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    context, portal = works._fabric._context, works._portal
    packs = [portal.call(context.current_pack, people.tenant_id) for people in (QUIET, BUSY)]
    assert packs[0] is packs[1]
    jobs = jobs_of(works)
    next_due(works, jobs, 0)
    before = dict(jobs._cached)
    assert before["quiet"].schedule is before["busy"].schedule
    slower = builtin_pack().document() | {"pack_meta": {"id": "acme.slow", "version": "2.0.0"}}
    slower["memory_layer"] = slower["memory_layer"] | {"jobs": {"sweep": "3h"}}
    pack = type(packs[0]).model_validate(slower)
    works.packs.register(BUSY.admin, pack)
    works.packs.activate(BUSY.person("zoe", "admin"), pack.ref, reason="slower")
    monkeypatch.setattr(due, "PACK_KEPT", -1.0)
    next_due(works, jobs, 0)
    assert jobs._cached["quiet"] is before["quiet"], "its log stood still"
    assert jobs._cached["busy"].schedule.sweep == timedelta(hours=3)
    assert portal.call(context.current_pack, "busy").ref == "acme.slow@2.0.0"
    assert portal.call(context.current_pack, "quiet") is packs[0]


@pytest.mark.rule("ISO-3")
def test_the_queue_is_kept_short_but_housekeeping_is_never_held_up_altogether(works: Fabric) -> None:
    async def rooms() -> list[int]:
        working, found = Worker(works._fabric.opened), list[int]()
        async with working._open():
            found.append(await working._room())
            for waiting in (30, 500):
                names = [Due(f"tenant_{waiting}_{number}", "seal") for number in range(waiting)]
                assert await working._enqueue(names, lambda _: False) == waiting
                found.append(await working._room())
        return found

    assert works._portal.call(rooms) == [worker.MOST_WAITING, worker.MOST_WAITING - 30, worker.LEAST_OTHERS]


def test_at_the_start_the_jobs_of_some_tenants_are_found_before_the_schedules_of_all_are_read(
    works: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due, "MOST_READ", 1)
    jobs = jobs_of(works)
    first = next_due(works, jobs, 1000)
    assert {one.tenant_id for one in first} == {"busy"}
    assert jobs.rest == 0.0
    read = list[list[str] | None]()
    _note_tenants_read(monkeypatch, read)
    second = next_due(works, jobs, 1000)
    assert read[0] == ["busy", "quiet"], "those that were left out and those with work, not all once more"
    assert read[1:] == [["quiet"]], "whether another worker ran what is handed out meanwhile"
    assert {one.tenant_id for one in second if one.job not in FOLLOWING} == {"quiet"}
    assert Due("quiet", "consolidate") in second
    assert jobs.rest > 0.0


@pytest.mark.rule("ISO-3")
def test_at_the_start_the_schedules_of_tenants_that_were_written_to_are_read_first(
    works: Fabric, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    while found := [one for one in next_due(works, jobs_of(works), 0) if one.job in FOLLOWING]:
        run_all(works, found)
        clock.advance(minutes=2)
    say(works, QUIET)
    # No time for a second one.
    monkeypatch.setattr(due, "READ_SECONDS", -1.0)
    assert {one.tenant_id for one in next_due(works, jobs_of(works), 0)} == {"quiet"}, (
        "though busy comes first by its name"
    )


@pytest.mark.rule("ISO-3")
def test_after_a_long_check_of_all_tenants_those_that_were_written_to_are_checked_as_soon_as_ever(
    works: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = DueJobs._find

    async def find_slowly(self: DueJobs, *tenants: Any, **limits: Any) -> Any:
        await asyncio.sleep(0.3)
        return await real(self, *tenants, **limits)

    monkeypatch.setattr(DueJobs, "_find", find_slowly)
    monkeypatch.setattr(due, "CHECK_ALL_EVERY", 0.0)
    jobs, began = jobs_of(works), time.monotonic()
    next_due(works, jobs, 0)
    assert jobs.rest == due.CHECK_EVERY
    assert jobs._check_all_at >= began + 5 * 0.3, "the next check of all comes the later"


@pytest.mark.rule("ISO-3", "SCL-3")
def test_while_a_node_is_away_the_rest_grows_with_what_each_check_of_all_tenants_takes(
    works: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = DueJobs._find

    async def find_slowly(self: DueJobs, *_: Any, **limits: Any) -> Any:
        await asyncio.sleep(0.3)
        with monkeypatch.context() as back:
            back.setattr(NodeLiveness, "away", [])
            return await real(self, None, **limits)

    monkeypatch.setattr(DueJobs, "_find", find_slowly)
    monkeypatch.setattr(NodeLiveness, "away", [1])
    jobs = jobs_of(works)
    for _ in range(2):
        next_due(works, jobs, 0)
        assert jobs.rest >= 4 * 0.3


@pytest.mark.rule("JOB-1", "ISO-3")
def test_housekeeping_that_another_worker_ran_meanwhile_is_not_run_a_second_time(
    works: Fabric, clock: FakeClock
) -> None:
    one, another = jobs_of(works), jobs_of(works)
    sweeps = {Due("quiet", "sweep"), Due("busy", "sweep")}
    assert sweeps <= set(next_due(works, one, 1000))
    next_due(works, another, 0)
    # The one worker ran it in a tenant; the other found both due before.
    clock.advance(seconds=1)
    run_all(works, [Due("quiet", "sweep")])
    found = next_due(works, another, 1000)
    assert sweeps & set(found) == {Due("busy", "sweep")}
    # It comes back when it is due again.
    clock.advance(minutes=2)
    another._check_all_at = 0.0
    assert Due("quiet", "sweep") in next_due(works, another, 1000)


# What the statement for a cluster asks of Citus, with views in the place of shards, one tenant in each.
_CLUSTER = """
SET allow_system_table_mods = on;
CREATE TABLE pg_catalog.pg_dist_shard (logicalrelid regclass, shardid bigint, shardminvalue text);
CREATE TABLE pg_catalog.pg_dist_placement (shardid bigint, groupid int);
CREATE TABLE pg_catalog.pg_dist_node (groupid int, nodename text, nodeport int, noderole text);
GRANT SELECT ON pg_catalog.pg_dist_shard, pg_catalog.pg_dist_placement, pg_catalog.pg_dist_node TO PUBLIC;
CREATE FUNCTION pg_catalog.master_run_on_worker(names text[], ports int[], commands text[], parallel boolean,
  OUT node_name text, OUT node_port int, OUT success boolean, OUT result text)
RETURNS SETOF record LANGUAGE plpgsql SECURITY DEFINER SET row_security = off SET search_path = pg_catalog AS $$
BEGIN
  FOR n IN 1 .. cardinality(commands) LOOP
    EXECUTE commands[n] INTO result;
    node_name := names[n]; node_port := ports[n]; success := true;
    RETURN NEXT;
  END LOOP;
END $$;
INSERT INTO pg_catalog.pg_dist_node VALUES (1, 'one', 5432, 'primary'), (2, 'two', 5432, 'primary');
"""
_SHARD = """
CREATE VIEW muniment.{table}_{shard} AS SELECT * FROM muniment.{table} WHERE tenant_id = '{tenant}';
INSERT INTO pg_catalog.pg_dist_shard VALUES ('muniment.{table}', {shard}, '{group}');
INSERT INTO pg_catalog.pg_dist_placement VALUES ({shard}, {group});
"""


@pytest.mark.rule("SCL-3", "JOB-1")
def test_from_the_nodes_that_are_not_away_come_the_same_rows_with_the_runs_of_jobs(
    works: Fabric, server: TestServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_all(works, [Due("quiet", "sweep"), Due("quiet", "seal"), Due("busy", "sweep")])
    jobs = jobs_of(works)
    everything = works._portal.call(jobs._known, None)
    assert {(row["tenant_id"], row["job"]) for row in everything} == {
        *(("quiet", "sweep"), ("quiet", "seal"), ("busy", "sweep"))
    }
    with server.connect(fresh_database) as owner:
        owner.execute(_CLUSTER.encode())
        for table, first in (("tenant_clock", 101), ("job_runs", 201)):
            for group, tenant in enumerate(("quiet", "busy"), 1):
                statement = _SHARD.format(table=table, shard=first + group, group=group, tenant=tenant)
                owner.execute(statement.encode())
    for away in ([3], [2]):
        monkeypatch.setattr(NodeLiveness, "away", away)
        found = works._portal.call(jobs._known, None)
        there = [row for row in everything if away == [3] or row["tenant_id"] == "quiet"]
        assert sorted(found, key=_place) == sorted(there, key=_place)


def _place(row: dict[str, Any]) -> tuple[str, str]:
    return row["tenant_id"], row["job"]


@pytest.mark.rule("ISO-3")
def test_where_too_many_schedules_are_outdated_tenants_follow_the_ones_they_have_and_none_is_left_out(
    works: Fabric, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = jobs_of(works)
    next_due(works, jobs, 1000)
    monkeypatch.setattr(due, "PACK_KEPT", -1.0)
    monkeypatch.setattr(due, "MOST_READ", 1)
    monkeypatch.setattr(due, "RETURNED_AGAIN", 0.0)
    for read in ("busy", "quiet"):
        for people in (QUIET, BUSY):
            say(works, people)
        before = dict(jobs._cached)
        jobs._check_all_at = 0.0
        found = next_due(works, jobs, 1000)
        assert {one.tenant_id for one in found if one.job == "consolidate"} == {"quiet", "busy"}
        assert {one.tenant_id for one in found if one.job == "sweep"} == {"quiet", "busy"}
        assert jobs.rest > 0.0
        now_read = [name for name in before if jobs._cached[name] is not before[name]]
        assert now_read == [read], "the one that was read the longest ago"


@pytest.mark.rule("ISO-3")
def test_packs_that_cannot_be_read_leave_no_tenant_without_jobs(
    works: Fabric, server: TestServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with server.connect(fresh_database) as owner:
        owner.execute("UPDATE muniment.packs SET document = '[]'")
    monkeypatch.setattr(due, "MOST_READ", 1)
    jobs = jobs_of(works)
    assert {one.tenant_id for one in next_due(works, jobs, 1000)} == {"busy"}
    assert jobs.rest == 0.0
    assert Due("quiet", "consolidate") in next_due(works, jobs, 1000)
    assert jobs.rest > 0.0
    default = works._fabric._context.packs.default.memory_layer.jobs
    assert [(kept.schedule, kept.seq) for kept in jobs._cached.values()] == [(default, None)] * 2
    # Each is read again, though the log stood still: in turn, and the other tenant has its jobs meanwhile.
    monkeypatch.setattr(due, "PACK_KEPT", -1.0)
    for read in ("busy", "quiet"):
        before = dict(jobs._cached)
        jobs._check_all_at = 0.0
        found = next_due(works, jobs, 1000)
        assert {one.tenant_id for one in found if one.job == "consolidate"} == {"quiet", "busy"}
        assert [name for name in before if jobs._cached[name] is not before[name]] == [read]
    assert jobs.rest > 0.0
