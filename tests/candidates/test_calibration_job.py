"""Confidence is what people made of a source's word; policy promotes on it, and people look at samples of that."""

from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import Conflict
from muniment.pack import Pack, load_pack
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.stories import event_data, proposed, refused, run_job

PACK = """
pack_meta: {id: acme.auto, version: "1.0.0", ontology_version: "1.0.0"}
memory_layer:
  promotion_thresholds: {calibrate_from: 12}
  classes: {preference: {approval: auto, auto_promotion: {threshold: 0.90}}}
  audit: {sample_share: 1.0, floor: 0.90, min_samples: 5}
"""


@pytest.fixture
def auto(server: TestServer, database: str, clock: FakeClock) -> Any:
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, pack=loaded()) as opened:
        yield opened


def loaded() -> Pack:
    return load_pack(PACK)


def fact(n: int, **fields: Any) -> dict[str, Any]:
    return {"entity": f"customer:c_{n}", "predicate": "prefers_channel", "value": "email", "confidence": 0.9, **fields}


def judged(fabric: Fabric, people: People, count: int, *, wrong: int = 0, first: int = 0, **fields: Any) -> None:
    """As many proposals of the agent's, approved but for some."""
    for n in range(first, first + count):
        item = proposed(fabric, people.run(None), **fact(n, **fields))
        if n - first < wrong:
            fabric.queue.reject(people.reviewer, item.proposal_id, reason="wrong")
        else:
            fabric.queue.approve(people.reviewer, item.proposal_id)


@pytest.mark.rule("CAN-6", "JOB-5")
def test_a_source_is_worth_what_people_made_of_it(auto: Fabric, people: People) -> None:
    judged(auto, people, 11)
    assert run_job(auto, "calibrate", people.tenant_id).nonzero == {}, "too few verdicts say nothing"
    judged(auto, people, 5, wrong=4, first=11)
    assert run_job(auto, "calibrate", people.tenant_id).nonzero == {"sources": 1}
    candidate = proposed(auto, people.run(None), **fact(100)).candidate
    assert candidate.raw_confidence == 0.9
    assert candidate.confidence == pytest.approx((12 + 1) / (16 + 2))
    assert candidate.calibration is not None
    assert run_job(auto, "calibrate", people.tenant_id).nonzero == {}, "nothing new, no new curve"
    (note,) = [one for one in event_data(auto, people, "note") if one["about"] == "calibrated"]
    assert (note["source"], note["verdicts"], note["approved"]) == ("bot agent direct@1", 16, 12)


@pytest.mark.rule("CAN-6", "REV-3", "JOB-1")
def test_policy_promotes_alone_what_a_proven_source_says_and_nothing_else(auto: Fabric, people: People) -> None:
    judged(auto, people, 12)
    run_job(auto, "calibrate", people.tenant_id)
    sure = proposed(auto, people.run(None), **fact(50))
    unproven = proposed(auto, people.service, **fact(51))
    of_another_class = proposed(auto, people.run(None), **fact(52), write_class="decision_outcome")
    assert (sure.auto_promote_eligible, unproven.auto_promote_eligible) == (True, False)
    done = run_job(auto, "consolidate", people.tenant_id)
    assert done.counts["promoted"] == 1
    after = auto.queue.get(people.reviewer, sure.proposal_id)
    assert (after.status, after.verdicts[-1].by) == ("promoted", "auto")
    assert auto.queue.get(people.reviewer, unproven.proposal_id).status == "pending"
    assert auto.queue.get(people.reviewer, of_another_class.proposal_id).status == "pending"
    assert run_job(auto, "consolidate", people.tenant_id).counts["promoted"] == 0


def promoted_alone(auto: Fabric, people: People, count: int) -> None:
    judged(auto, people, 12)
    run_job(auto, "calibrate", people.tenant_id)
    for n in range(50, 50 + count):
        proposed(auto, people.run(None), **fact(n))
    assert run_job(auto, "consolidate", people.tenant_id).counts["promoted"] == count


@pytest.mark.rule("JOB-6", "REV-10", "REV-7")
def test_samples_go_to_reviewers_who_confirm_or_refute_them(auto: Fabric, people: People) -> None:
    promoted_alone(auto, people, 3)
    assert run_job(auto, "sample", people.tenant_id).nonzero == {"samples": 3}
    assert run_job(auto, "sample", people.tenant_id).nonzero == {}, "each once"
    first, second, _ = auto.queue.list(people.reviewer)
    assert first.audits is not None
    assert first.human_reasons[-1] == "audit_sample"
    confirmed = auto.queue.approve(people.reviewer, first.proposal_id)
    assert (confirmed.status, confirmed.duplicate_check) == ("duplicate", first.audits)
    with pytest.raises(Conflict):
        auto.queue.edit(people.reviewer, second.proposal_id, value="phone")
    with pytest.raises(Conflict):
        auto.queue.check(people.reviewer, second.proposal_id, value="phone")
    assert auto.queue.preview(people.reviewer, second.proposal_id).status == "duplicate"
    auto.queue.reject(people.reviewer, second.proposal_id, reason="wrong")
    assert second.audits is not None
    memory = auto.get(people.auditor, second.audits)
    assert (memory.retraction_reason, memory.retracted_by) == ("wrong", people.reviewer.id)
    assert auto.get(people.auditor, first.audits).retracted_at is None


@pytest.mark.rule("JOB-6", "REV-3")
def test_too_many_wrong_samples_stop_the_class_until_a_person_lets_it_go_on(auto: Fabric, people: People) -> None:
    promoted_alone(auto, people, 5)
    run_job(auto, "sample", people.tenant_id)
    for place, item in enumerate(auto.queue.list(people.reviewer)):
        if place < 3:
            auto.queue.approve(people.reviewer, item.proposal_id)
        else:
            auto.queue.reject(people.reviewer, item.proposal_id, reason="wrong")
    assert run_job(auto, "sample", people.tenant_id).nonzero == {"suspended": 1}
    (told_of,) = event_data(auto, people, "auto_promotion_suspended")
    assert (told_of["write_class"], told_of["samples"], told_of["correct"]) == ("preference", 5, 3)
    waiting = proposed(auto, people.run(None), **fact(80))
    assert "suspended" in waiting.human_reasons
    assert run_job(auto, "consolidate", people.tenant_id).counts["promoted"] == 0
    assert run_job(auto, "sample", people.tenant_id).nonzero == {}
    assert auto.work.breakers(people.auditor)[0].open
    assert not auto.work.resume(people.admin, "preference").open
    proposed(auto, people.run(None), **fact(81))
    assert run_job(auto, "consolidate", people.tenant_id).counts["promoted"] == 1
    with pytest.raises(Conflict):
        auto.work.resume(people.admin, "preference")


@pytest.mark.rule("JOB-6", "REV-3")
def test_what_was_eligible_before_its_class_was_stopped_waits(auto: Fabric, people: People, as_role: Any) -> None:
    promoted_alone(auto, people, 5)
    run_job(auto, "sample", people.tenant_id)
    eligible = proposed(auto, people.run(None), **fact(90))
    assert eligible.auto_promote_eligible
    for item in auto.queue.list(people.reviewer):
        if item.audits is not None:
            auto.queue.reject(people.reviewer, item.proposal_id, reason="wrong")
    run_job(auto, "sample", people.tenant_id)
    later = proposed(auto, people.run(None), **fact(91))
    auto.queue.approve(people.reviewer, later.proposal_id)
    assert [run_job(auto, "consolidate", people.tenant_id).counts["promoted"] for _ in range(2)] == [0, 0]
    auto.work.resume(people.admin, "preference")
    assert run_job(auto, "consolidate", people.tenant_id).counts["promoted"] == 1, "it was not passed over"


@pytest.mark.rule("JOB-6", "MET-8")
def test_a_sample_counts_as_wrong_once_its_memory_was_withdrawn_as_wrong(auto: Fabric, people: People) -> None:
    promoted_alone(auto, people, 5)
    run_job(auto, "sample", people.tenant_id)
    first, second, third, *rest = auto.queue.list(people.reviewer)
    for item in (first, second, *rest):
        auto.queue.approve(people.reviewer, item.proposal_id)
    # One was confirmed before, nobody had looked at another, and of a third something else was said.
    for item, reason in ((first, "wrong"), (third, "wrong"), (second, "deprecated")):
        assert item.audits is not None
        auto.retract(people.reviewer, item.audits, reason=reason)
    (figures,) = auto.metrics(people.auditor).auto
    assert (figures.confirmed, figures.refuted, figures.waiting) == (3, 2, 0)
    assert run_job(auto, "sample", people.tenant_id).nonzero == {"suspended": 1}
    (told_of,) = event_data(auto, people, "auto_promotion_suspended")
    assert (told_of["samples"], told_of["correct"]) == (5, 3)


@pytest.mark.rule("JOB-6", "MET-8")
def test_a_sample_rejected_after_its_memory_was_withdrawn_is_not_counted_twice(auto: Fabric, people: People) -> None:
    promoted_alone(auto, people, 5)
    run_job(auto, "sample", people.tenant_id)
    samples = auto.queue.list(people.reviewer)
    for item in samples:
        assert item.audits is not None
        auto.retract(people.reviewer, item.audits, reason="wrong")
    assert run_job(auto, "sample", people.tenant_id).nonzero == {"suspended": 1}
    auto.work.resume(people.admin, "preference")
    for item in samples:
        auto.queue.reject(people.reviewer, item.proposal_id, reason="wrong")
    assert run_job(auto, "sample", people.tenant_id).nonzero == {}, "that was before it was let go on"
    assert auto.metrics(people.auditor).auto[0].refuted == 5


@pytest.mark.rule("JOB-1", "JOB-6", "JOB-10")
def test_policy_looks_no_more_at_what_is_decided_and_comes_back_to_what_is_not(
    server: TestServer, database: str, clock: FakeClock, people: People, rows: Any
) -> None:
    tight = load_pack(PACK + "  budgets: [{tier: semantic, write_class: preference, records: 14}]\n")
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, pack=tight) as auto:
        promoted_alone(auto, people, 2)
        (first, second) = (one["proposal_id"] for one in rows("proposals") if one["auto_eligible"])

        def settled() -> str:
            run_job(auto, "consolidate", people.tenant_id)
            return next(one["capture_id"] for one in rows("cursors") if one["name"] == "promote")

        assert settled() == second
        held = proposed(auto, people.run(None), **fact(80))
        touched = proposed(auto, people.run(None), **fact(81))
        auto.queue.reject(people.reviewer, touched.proposal_id, reason="no")
        assert settled() == second, "what waits for room is not passed"
        assert auto.queue.get(people.reviewer, held.proposal_id).status == "held"
        memory_id = auto.queue.get(people.reviewer, first).memory_id
        assert memory_id is not None
        auto.retract(people.reviewer, memory_id, reason="deprecated")
        run_job(auto, "budget", people.tenant_id)
        assert run_job(auto, "consolidate", people.tenant_id).counts["promoted"] == 1
        assert settled() == touched.proposal_id


@pytest.mark.rule("REV-3", "REV-4", "CAN-9")
def test_policy_promotes_nothing_that_a_person_has_touched(auto: Fabric, people: People) -> None:
    judged(auto, people, 12)
    run_job(auto, "calibrate", people.tenant_id)
    overridden, edited = (proposed(auto, people.run(None), **fact(n)) for n in (60, 61))
    auto.queue.override(people.reviewer, overridden.proposal_id, tier="durable")
    again = auto.queue.edit(people.reviewer, edited.proposal_id, value="phone")
    assert "operator_source" in again.human_reasons  # type: ignore[union-attr]  # a proposal
    plain = proposed(auto, people.run(None), **fact(62))
    assert run_job(auto, "consolidate", people.tenant_id).counts["promoted"] == 1
    assert auto.queue.get(people.reviewer, plain.proposal_id).status == "promoted"
    assert auto.queue.get(people.reviewer, overridden.proposal_id).status == "pending"


@pytest.mark.rule("CAN-6")
def test_a_source_cannot_borrow_what_another_earned(auto: Fabric, people: People) -> None:
    judged(auto, people, 12, origin="tool:crm.lookup")
    run_job(auto, "calibrate", people.tenant_id)
    proven = people.run(None)
    newcomer = proven.model_copy(update={"agent_id": "another_bot"})
    assert proposed(auto, proven, **fact(70), origin="tool:crm.lookup").candidate.calibration is not None
    assert proposed(auto, newcomer, **fact(71), origin="tool:crm.lookup").candidate.calibration is None


@pytest.mark.rule("CAN-6", "JOB-5")
def test_a_source_that_did_badly_can_earn_its_way_back(auto: Fabric, people: People, clock: FakeClock) -> None:
    judged(auto, people, 14, wrong=14)
    run_job(auto, "calibrate", people.tenant_id)
    assert refused(auto, people.run(None), **fact(80)).gate == "confidence"
    clock.advance(days=181)
    assert run_job(auto, "calibrate", people.tenant_id).nonzero == {"sources": 1}
    candidate = proposed(auto, people.run(None), **fact(80)).candidate
    assert (candidate.confidence, candidate.calibration) == (0.8, None)
