"""Expiry, collection, alerts and budgets: what the jobs do by themselves, each once."""

from typing import Any

import pytest

from muniment import Fabric
from muniment.database.cluster.errors import NodeAway
from muniment.errors import HistoryCollected
from muniment.job import Job, JobResult
from muniment.opening import Opened
from muniment.pack import load_pack
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from muniment.worker.registry import JOBS
from tests.conftest import Connect
from tests.stories import event_data, proposed, remembered, run_job, run_worker, values

PACK = """
pack_meta: {id: acme.jobs, version: "1.0.0", ontology_version: "1.0.0"}
memory_layer:
  alerts: {contradictions: 1, expiring_within: {episodic: 3d}}
  budgets:
    - {tier: semantic, write_class: preference, records: 2}
    - {tier: episodic, bytes: 900}
"""


def fact(n: int, **fields: Any) -> dict[str, Any]:
    return {"entity": f"customer:c_{n}", "predicate": "prefers_channel", **fields}


@pytest.fixture
def tight(server: TestServer, database: str, clock: FakeClock) -> Any:
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, pack=load_pack(PACK)) as opened:
        yield opened


@pytest.mark.rule("JOB-2", "TIR-2", "PRO-4")
def test_an_expired_memory_is_reported_once_and_its_content_is_removed_after_the_horizon(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    memory_id = remembered(fabric, people, tier="episodic")
    gone = remembered(fabric, people, "phone", **fact(2))
    fabric.retract(people.reviewer, gone, reason="wrong")
    stays = remembered(fabric, people, "letter", **fact(3), tier="durable")
    assert run_job(fabric, "expire", people.tenant_id).nonzero == {}
    clock.advance(days=31)
    assert run_job(fabric, "expire", people.tenant_id).nonzero == {"expired": 1}
    assert run_job(fabric, "expire", people.tenant_id).nonzero == {}
    assert event_data(fabric, people, "expired") == [{"tier": "episodic", "write_class": "preference", "memories": 1}]
    assert fabric.get(people.auditor, memory_id).value == "email", "inside the horizon the past can be asked about"
    seen_at = clock.now
    clock.advance(days=59, hours=1)
    assert run_job(fabric, "expire", people.tenant_id).nonzero == {"collected": 1}
    clock.advance(days=31)
    assert run_job(fabric, "expire", people.tenant_id).nonzero == {"collected": 1}
    for one in (memory_id, gone):
        left = fabric.get(people.auditor, one)
        assert (left.value, left.tombstoned_at is not None) == (None, True)
    assert fabric.get(people.auditor, stays).value == "letter"
    with pytest.raises(HistoryCollected):
        fabric.recall(people.run(), as_of=seen_at - (clock.now - seen_at))


@pytest.mark.rule("JOB-2")
def test_a_clock_set_back_tells_of_no_end_twice(fabric: Fabric, people: People, clock: FakeClock) -> None:
    remembered(fabric, people, tier="episodic")
    clock.advance(days=31)
    assert run_job(fabric, "expire", people.tenant_id).nonzero == {"expired": 1}
    clock.advance(days=-40)
    assert run_job(fabric, "expire", people.tenant_id).nonzero == {}
    clock.advance(days=41)
    assert run_job(fabric, "expire", people.tenant_id).nonzero == {}


@pytest.mark.rule("JOB-7")
def test_each_alert_comes_once_while_it_lasts(tight: Fabric, people: People, clock: FakeClock) -> None:
    waiting = proposed(tight, people.run(None), **fact(9), value="fax")
    remembered(tight, people, "email", **fact(1))
    other = proposed(tight, people.run(None), **fact(1), value="phone", user_id="cust_1")
    remembered(tight, people, "x", **fact(4), tier="episodic")
    assert run_job(tight, "alert", people.tenant_id).nonzero == {"backlog": 1}
    clock.advance(hours=73)
    found = run_job(tight, "alert", people.tenant_id).nonzero
    assert found == {"sla": 2}
    assert {one["proposal_id"] for one in event_data(tight, people, "sla_breached")} == {
        waiting.proposal_id,
        other.proposal_id,
    }
    assert run_job(tight, "alert", people.tenant_id).nonzero == {}
    clock.advance(days=25)
    assert run_job(tight, "alert", people.tenant_id).nonzero == {"expiring": 1}
    assert event_data(tight, people, "expiring")[0]["tier"] == "episodic"
    tight.queue.reject(people.reviewer, other.proposal_id, reason="no")
    assert run_job(tight, "alert", people.tenant_id).nonzero == {}, "the backlog is worked off, and said to be"
    proposed(tight, people.run(None), **fact(1), value="letter", user_id="cust_1")
    assert run_job(tight, "alert", people.tenant_id).nonzero == {"backlog": 1}, "and comes again"


@pytest.mark.rule("JOB-7")
def test_what_was_told_of_a_memory_about_to_end_is_forgotten_when_it_has_ended(
    tight: Fabric, people: People, clock: FakeClock, rows: Any
) -> None:
    ends, withdrawn = (remembered(tight, people, "x", **fact(n), tier="episodic") for n in (4, 5))
    clock.advance(days=29)
    assert run_job(tight, "alert", people.tenant_id).counts["expiring"] == 2

    def kept() -> set[str]:
        assert run_job(tight, "alert", people.tenant_id).counts["expiring"] == 0
        return {one["key"] for one in rows("alerts") if one["key"].startswith("expiring ")}

    assert kept() == {f"expiring {ends}", f"expiring {withdrawn}"}
    tight.retract(people.reviewer, withdrawn, reason="deprecated")
    assert kept() == {f"expiring {ends}"}
    clock.advance(days=1, seconds=1)
    assert kept() == set()


@pytest.mark.rule("JOB-10", "REV-10")
def test_at_its_budget_a_promotion_waits_and_comes_back_when_there_is_room(tight: Fabric, people: People) -> None:
    first, _ = (remembered(tight, people, "email", **fact(n)) for n in (1, 2))
    third = proposed(tight, people.run(), **fact(3), value="email")
    held = tight.queue.approve(people.reviewer, third.proposal_id)
    assert (held.status, held.verdicts[-1].reason) == ("held", "budget")
    assert event_data(tight, people, "budget_exceeded")[0]["budget"] == "semantic/preference"
    assert run_job(tight, "budget", people.tenant_id).nonzero == {}, "no room yet"
    assert run_job(tight, "alert", people.tenant_id).nonzero == {"budgets": 2}
    tight.retract(people.reviewer, first, reason="deprecated")
    assert run_job(tight, "budget", people.tenant_id).nonzero == {"released": 1}
    assert tight.queue.approve(people.reviewer, third.proposal_id).status == "promoted"
    assert len(values(tight, people)) == 2


@pytest.mark.rule("JOB-10")
def test_many_at_once_take_no_more_than_the_budget(tight: Fabric, people: People) -> None:
    items = [proposed(tight, people.run(None), **fact(n), value="email") for n in range(5)]
    done = tight.queue.approve_many(people.reviewer, [one.proposal_id for one in items])
    assert [one.status for one in done] == ["promoted"] * 2 + ["held"] * 3


@pytest.mark.rule("JOB-10")
def test_a_budget_of_bytes_counts_what_is_stored(tight: Fabric, people: People) -> None:
    remembered(tight, people, "x" * 300, **fact(1), tier="episodic")
    item = proposed(tight, people.run(None), **fact(2), value="y" * 300)
    tight.queue.override(people.reviewer, item.proposal_id, tier="episodic")
    assert tight.queue.approve(people.reviewer, item.proposal_id).status == "held"


@pytest.mark.rule("JOB-1", "JOB-3", "JOB-9")
def test_the_worker_does_what_is_due_until_nothing_is(fabric: Fabric, people: People, clock: FakeClock) -> None:
    fabric.capture(people.run(), kind="statement", text="the office moved", classification="INTERNAL")
    assert fabric.work.backlog(people.admin).behind == 1
    assert run_worker(fabric, people.tenant_id) > 5
    assert fabric.work.backlog(people.admin).behind == 0
    assert len(fabric.queue.list(people.reviewer)) == 1
    assert run_worker(fabric, people.tenant_id) == 0
    clock.advance(hours=1)
    assert run_worker(fabric, people.tenant_id) > 0
    runs = {run.job: run for run in fabric.work.jobs(people.admin)}
    assert (runs["expire"].ran_at, runs["expire"].failures) == (clock.now, 0)
    assert fabric.verify(people.auditor).unsealed == 0


@pytest.mark.rule("JOB-1", "ERR-2")
def test_a_job_that_fails_is_recorded_stops_no_other_and_is_tried_again(
    fabric: Fabric, people: People, clock: FakeClock, as_role: Connect, server: TestServer, database: str
) -> None:
    fabric.capture(people.run(), kind="statement", text="the office moved", classification="INTERNAL")
    with server.connect(database) as hand:
        hand.execute("ALTER TABLE muniment.alerts RENAME TO alerts_away")
        try:
            run_worker(fabric, people.tenant_id)
        finally:
            hand.execute("ALTER TABLE muniment.alerts_away RENAME TO alerts")
    runs = {run.job: run for run in fabric.work.jobs(people.admin)}
    assert (runs["alert"].failures, runs["alert"].error) == (1, "schema_missing")
    assert runs["expire"].failures == 0
    clock.advance(minutes=11)
    run_worker(fabric, people.tenant_id)
    assert next(run for run in fabric.work.jobs(people.admin) if run.job == "alert").failures == 0


@pytest.mark.rule("JOB-1")
def test_a_job_that_fails_on_a_node_that_answers_is_recorded_and_rests(
    fabric: Fabric, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []

    async def fail(_opened: Opened, tenant_id: str) -> JobResult:
        ran.append(tenant_id)
        raise NodeAway

    monkeypatch.setitem(JOBS, "alert", Job("alert", "JOB-7", fail))
    fabric.capture(people.run(), kind="statement", text="the office moved", classification="INTERNAL")
    run_worker(fabric, people.tenant_id)
    run_worker(fabric, people.tenant_id)
    assert ran == [people.tenant_id], "it is not tried again at once"
    runs = {run.job: run for run in fabric.work.jobs(people.admin)}
    assert (runs["alert"].failures, runs["alert"].error) == (1, "storage_unavailable")


@pytest.mark.rule("JOB-10", "PRO-5")
def test_what_takes_the_place_of_something_needs_no_room(tight: Fabric, people: People) -> None:
    old, _ = (remembered(tight, people, "email", **fact(n)) for n in (1, 2))
    newer = proposed(tight, people.run(), **fact(1), value="phone")
    assert tight.queue.approve(people.reviewer, newer.proposal_id, supersedes=old).status == "promoted"


@pytest.mark.rule("JOB-10")
def test_what_does_not_fit_by_its_size_is_not_released_to_be_held_again(tight: Fabric, people: People) -> None:
    remembered(tight, people, "x" * 300, **fact(1), tier="episodic")
    item = proposed(tight, people.run(None), **fact(2), value="y" * 300)
    tight.queue.override(people.reviewer, item.proposal_id, tier="episodic")
    tight.queue.approve(people.reviewer, item.proposal_id)
    assert run_job(tight, "budget", people.tenant_id).nonzero == {}
    assert tight.queue.get(people.reviewer, item.proposal_id).status == "held"
