"""Corrections: on a memory or a key, approved by a second person, then before everything else; and whether they help."""

from datetime import timedelta
from typing import Any

import pytest

from muniment import Fabric, Refusal, Submission
from muniment.errors import Conflict, InvalidInput, NotFound, RoleMissing, SelfApproval
from muniment.model.proposal import Proposal
from muniment.testing import FakeClock, People
from tests.stories import CONSENT, KEY, promoted, proposed, values


def corrected(fabric: Fabric, people: People, **fields: Any) -> Proposal:
    """A correction in the queue."""
    outcome = fabric.correct(people.author, **fields)
    assert isinstance(outcome, Submission), outcome
    return fabric.queue.get(people.reviewer, outcome.proposal_id)


def events(fabric: Fabric, people: People, kind: str) -> list[dict[str, Any]]:
    return [event.data for event in fabric.events(people.auditor, limit=1000) if event.type == kind]


@pytest.mark.rule("COR-1")
def test_a_correction_on_a_memory_takes_its_key_subject_scope_and_label(fabric: Fabric, people: People) -> None:
    fabric.consent.grant(people.officer, subject="customer:cust_1", **CONSENT)
    run = people.run(intent_id="sales.offer", qualifiers={"region": "de"}, session_id="s")
    item = proposed(fabric, run, **KEY, value="email", subject="customer:cust_1", classification="PII")
    target = fabric.queue.approve(people.reviewer, item.proposal_id).memory_id
    fix = corrected(fabric, people, memory_id=target, value="phone")
    candidate = fix.candidate
    assert (candidate.write_class, candidate.entity, candidate.predicate) == ("correction", *KEY.values())
    assert (candidate.subject, candidate.classification) == ("customer:cust_1", "PII")
    assert (candidate.scope.user_id, candidate.scope.intent_id) == ("cust_1", "sales.offer")
    assert candidate.scope.qualifiers == {"region": "de"}
    assert (candidate.corrects, fix.tier_target) == (target, "durable")
    assert fix.contradiction_check.existing == target


@pytest.mark.rule("COR-1")
def test_a_correction_holds_when_its_target_does_unless_it_says_otherwise(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    since, until = clock.now - timedelta(days=900), clock.now + timedelta(days=900)
    target = promoted(fabric, people, "email", valid_from=since, valid_until=until)
    kept = corrected(fabric, people, memory_id=target, value="phone").candidate
    assert (kept.valid_from, kept.valid_until) == (since, until)
    other = corrected(fabric, people, memory_id=target, value="fax", valid_from=None, valid_until=clock.now).candidate
    assert (other.valid_from, other.valid_until) == (None, clock.now)


@pytest.mark.rule("COR-1", "COR-2", "CTR-4")
def test_a_promoted_correction_replaces_its_target_whatever_the_confidence(fabric: Fabric, people: People) -> None:
    target = promoted(fabric, people, "email", confidence=0.8)
    fix = corrected(fabric, people, memory_id=target, value="phone", confidence=0.55)
    assert values(fabric, people) == ["email"], "nothing changes before it is approved"
    memory_id = fabric.queue.approve(people.reviewer, fix.proposal_id).memory_id
    assert values(fabric, people) == ["phone"]
    old = fabric.get(people.auditor, target)
    assert (old.retraction_reason, old.superseded_by) == ("corrected", memory_id)
    assert events(fabric, people, "memory.correction") == [{"memory_id": memory_id, "replaced": [target]}]
    assert fabric.contradictions.list(people.reviewer, closed=True)[0].outcome == "corrected"


@pytest.mark.rule("COR-1")
def test_a_plain_text_is_corrected_by_text(fabric: Fabric, people: People) -> None:
    item = proposed(fabric, people.run(), write_class="statement", text="Returns are accepted within 30 days.")
    target = fabric.queue.approve(people.reviewer, item.proposal_id).memory_id
    fix = corrected(fabric, people, memory_id=target, text="Goods cannot be sent back at all, since May.")
    fabric.queue.approve(people.reviewer, fix.proposal_id)
    assert [record.text for record in fabric.recall(people.run()).records] == [
        "Goods cannot be sent back at all, since May."
    ]
    assert fabric.get(people.auditor, str(target)).retraction_reason == "corrected"


@pytest.mark.rule("COR-1")
def test_a_correction_on_a_key_needs_no_memory(fabric: Fabric, people: People) -> None:
    fix = corrected(fabric, people, **KEY, value="phone", user_id="cust_1", classification="INTERNAL")
    fabric.queue.approve(people.reviewer, fix.proposal_id)
    assert values(fabric, people) == ["phone"]


@pytest.mark.rule("COR-1", "REV-4")
def test_only_a_correction_writer_writes_one_and_somebody_else_approves_it(fabric: Fabric, people: People) -> None:
    target = promoted(fabric, people, "email")
    for asker in (people.reviewer, people.run(), people.service):
        with pytest.raises(RoleMissing):
            fabric.correct(asker, memory_id=target, value="phone")
    both = people.person("olga", "correction_writer", "reviewer")
    fix = corrected(fabric, people, memory_id=target, value="phone")
    with pytest.raises(SelfApproval):
        fabric.queue.approve(both, fix.proposal_id)


@pytest.mark.rule("COR-1", "ERR-1")
@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, "memory_id"),
        ({"memory_id": "TARGET", "entity": "customer:cust_1", "predicate": "p"}, "memory_id"),
        ({"entity": "customer:cust_1", "value": 1}, "memory_id"),
        ({"memory_id": "TARGET"}, "value"),
        ({"memory_id": "TARGET", "value": "phone", "corrects": "pm_1"}, "corrects"),
        ({"memory_id": "TARGET", "value": "phone", "write_class": "preference"}, "write_class"),
    ],
)
def test_a_correction_that_does_not_say_what_of_what_is_refused(
    fabric: Fabric, people: People, given: dict[str, Any], field: str
) -> None:
    target = promoted(fabric, people, "email")
    given = {name: target if value == "TARGET" else value for name, value in given.items()}
    with pytest.raises(InvalidInput) as error:
        fabric.correct(people.author, **given)
    assert error.value.field == field


@pytest.mark.rule("COR-1", "ISO-4")
def test_another_tenants_memory_is_not_found_and_a_retracted_one_is_a_conflict(
    fabric: Fabric, people: People, others: People
) -> None:
    target = promoted(fabric, people, "email")
    with pytest.raises(NotFound):
        fabric.correct(others.author, memory_id=target, value="phone")
    fabric.retract(people.reviewer, target, reason="wrong")
    with pytest.raises(Conflict):
        fabric.correct(people.author, memory_id=target, value="phone")


@pytest.mark.rule("COR-1", "PRO-1")
def test_a_target_withdrawn_while_the_correction_waited_does_not_hold_it_up(fabric: Fabric, people: People) -> None:
    target = promoted(fabric, people, "email")
    fix = corrected(fabric, people, memory_id=target, value="phone")
    fabric.retract(people.reviewer, target, reason="deprecated")
    fabric.queue.approve(people.reviewer, fix.proposal_id)
    assert values(fabric, people) == ["phone"]


@pytest.mark.rule("COR-1", "CAN-9")
def test_a_correction_passes_the_same_gates(fabric: Fabric, people: People) -> None:
    target = promoted(fabric, people, "email")
    outcome = fabric.correct(people.author, memory_id=target, value="ann.lee@example.com")
    assert isinstance(outcome, Refusal)
    assert outcome.gate == "consent", "a mail address is personal data, and nobody consented"


@pytest.mark.rule("COR-3")
def test_adoption_is_the_share_of_corrections_after_which_a_decision_differs(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    def decide(what: str, intent: str, user: str) -> None:
        run = people.run(user, intent_id=intent)
        recall_id = fabric.recall(run).recall_id
        fabric.capture(run, kind="decision", payload={"do": what}, classification="INTERNAL", recall_id=recall_id)
        clock.advance(minutes=1)

    def case(user: str, before: str | None, after: str | None) -> None:
        target = promoted(fabric, people, "email", user_id=user)
        if before:
            decide(before, "sales.offer", user)
        decide("something else", "sales.other", user)
        fix = corrected(fabric, people, memory_id=target, value="phone")
        fabric.queue.approve(people.reviewer, fix.proposal_id)
        if after:
            decide(after, "sales.offer", user)

    assert fabric.adoption(people.auditor).share is None
    case("cust_1", "write", "call")
    case("cust_2", "write", "write")
    case("cust_3", None, "call")
    case("cust_4", "write", None)
    found = fabric.adoption(people.auditor)
    assert (found.corrections, found.measured, found.adopted, found.share) == (4, 2, 1, 0.5)
    with pytest.raises(RoleMissing):
        fabric.adoption(people.reviewer)


@pytest.mark.rule("COR-1", "CAP-4")
def test_said_again_after_it_took_its_targets_place_it_is_answered_as_the_first_time(
    fabric: Fabric, people: People
) -> None:
    target = promoted(fabric, people, "email")
    once = fabric.correct(people.author, memory_id=target, value="phone", idempotency_key="k")
    assert isinstance(once, Submission)
    fabric.queue.approve(people.reviewer, once.proposal_id)
    again = fabric.correct(people.author, memory_id=target, value="phone", idempotency_key="k")
    assert isinstance(again, Submission)
    assert (again.proposal_id, again.status) == (once.proposal_id, "promoted")
    with pytest.raises(Conflict):
        fabric.correct(people.author, memory_id=target, value="phone", idempotency_key="other")
    with pytest.raises(Conflict):
        fabric.correct(people.person("eve", "correction_writer"), memory_id=target, value="phone", idempotency_key="k")
