"""When a job is due: by its pause, by the log, after failures, and whatever the clock does."""

from datetime import UTC, datetime, timedelta

import pytest

from muniment.job import Job
from muniment.pack import builtin_pack
from muniment.pack.jobs import Schedule
from muniment.worker.due import LastRun, is_due, rest_seconds
from muniment.worker.registry import JOBS

NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


def ran(ago: timedelta, *, seq: int = 7, next_at: datetime | None = None, failures: int = 0) -> LastRun:
    return LastRun(NOW - ago, seq, next_at, failures)


def job(follows_log: bool = False) -> Job:
    return Job("x", "JOB-0", JOBS["seal"].run, follows_log)


@pytest.mark.rule("JOB-1")
@pytest.mark.parametrize(
    ("follows_log", "before", "seq", "due"),
    [
        (False, None, 7, True),
        (False, ran(MINUTE), 7, True),
        (False, ran(MINUTE * 0.9), 8, False),
        (True, None, 7, True),
        (True, ran(MINUTE * 10), 7, False),
        (True, ran(MINUTE * 10), 8, True),
        (True, ran(MINUTE * 0.9), 8, False),
        (True, ran(MINUTE * 0.9, next_at=NOW), 7, True),
        (True, ran(MINUTE * 10, next_at=NOW + MINUTE), 7, False),
    ],
)
def test_by_its_pause_and_for_those_that_follow_the_log_only_where_it_moved(
    follows_log: bool, before: LastRun | None, seq: int, due: bool
) -> None:
    assert is_due(job(follows_log), MINUTE, seq, before, NOW) is due
    assert not is_due(job(follows_log), None, seq, before, NOW), "turned off"


def test_eager_it_does_not_rest_where_the_log_moved() -> None:
    assert is_due(job(), MINUTE, 8, ran(MINUTE * 0), NOW, eager=True)
    assert not is_due(job(), MINUTE, 7, ran(MINUTE * 0), NOW, eager=True)
    assert not is_due(job(), MINUTE, 8, ran(MINUTE * 0, failures=1), NOW, eager=True)


@pytest.mark.rule("ERR-2")
def test_after_failures_it_rests_longer_up_to_an_hour() -> None:
    assert not is_due(job(), MINUTE, 8, ran(MINUTE * 1.9, failures=1), NOW)
    assert is_due(job(), MINUTE, 8, ran(MINUTE * 2, failures=1), NOW)
    assert is_due(job(), MINUTE, 8, ran(timedelta(hours=1), failures=1000), NOW)
    assert is_due(job(follows_log=True), MINUTE, 7, ran(MINUTE * 2, failures=1), NOW), "though the log stood still"


def test_a_clock_set_back_makes_it_run_at_once_and_one_set_ahead_only_once() -> None:
    assert is_due(job(), MINUTE, 7, ran(-timedelta(days=300)), NOW)
    assert not is_due(job(), MINUTE, 7, ran(timedelta(0)), NOW)


@pytest.mark.rule("JOB-1")
@pytest.mark.parametrize(
    ("waited", "quiet", "due"),
    [
        (MINUTE, MINUTE * 16, True),
        (MINUTE, MINUTE * 17, False),
        (MINUTE * 2, MINUTE * 32, True),
        (MINUTE * 59, timedelta(days=300), False),
        (MINUTE * 60, timedelta(days=300), True),
        (MINUTE, -MINUTE, True),
    ],
)
def test_in_a_tenant_that_nobody_writes_to_it_rests_longer_up_to_an_hour(
    waited: timedelta, quiet: timedelta, due: bool
) -> None:
    assert is_due(job(), MINUTE, 7, ran(waited), NOW, quiet=quiet) is due
    assert is_due(job(), MINUTE, 7, ran(waited, next_at=NOW), NOW, quiet=quiet), "unless it said when it is due"
    assert is_due(job(follows_log=True), MINUTE, 8, ran(waited), NOW, quiet=quiet), "one that follows the log does not"


@pytest.mark.rule("JOB-1", "ERA-3")
def test_a_job_whose_work_begins_with_an_event_rests_up_to_a_day_there_unless_its_last_run_failed() -> None:
    quiet = timedelta(days=300)
    for name in ("sample", "backfill", "purge", "scan"):
        assert not is_due(JOBS[name], MINUTE, 7, ran(timedelta(hours=23)), NOW, quiet=quiet)
        assert is_due(JOBS[name], MINUTE, 7, ran(timedelta(hours=24)), NOW, quiet=quiet)
        assert is_due(JOBS[name], MINUTE, 7, ran(timedelta(hours=1), failures=9), NOW, quiet=quiet)
        assert is_due(JOBS[name], MINUTE, 8, ran(MINUTE), NOW, quiet=MINUTE), "after a write it does not"
    assert not is_due(JOBS["expire"], MINUTE, 7, ran(MINUTE * 59), NOW, quiet=quiet)
    assert is_due(JOBS["expire"], MINUTE, 7, ran(MINUTE * 60), NOW, quiet=quiet), "time alone gives it work"


def test_every_job_has_its_pause_in_the_pack() -> None:
    assert set(JOBS) == set(Schedule.model_fields)
    assert all(getattr(builtin_pack().memory_layer.jobs, name) is not None for name in JOBS)


@pytest.mark.rule("JOB-1")
@pytest.mark.parametrize(("took", "rests"), [(0.0, 1.0), (0.2, 1.0), (0.5, 2.0), (30.0, 120.0)])
def test_who_looks_out_rests_the_longer_the_longer_a_look_takes(took: float, rests: float) -> None:
    assert rest_seconds(took) == rests
