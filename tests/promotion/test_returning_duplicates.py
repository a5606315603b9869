"""Duplicates return to the queue when the memory they repeated is retracted as wrong or deprecated."""

from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import SelfApproval
from muniment.model.proposal import Proposal
from muniment.testing import People
from tests.stories import CONSENT, KEY, promoted, proposed, submitted, values


def returned(fabric: Fabric, people: People) -> list[Proposal]:
    return [item for item in fabric.queue.list(people.reviewer) if item.reopens is not None]


@pytest.mark.rule("REV-8")
@pytest.mark.parametrize("reason", ["wrong", "deprecated"])
def test_a_duplicate_of_a_withdrawn_memory_is_a_new_proposal_for_a_person(
    fabric: Fabric, people: People, reason: Any
) -> None:
    first = promoted(fabric, people, "email")
    again = proposed(fabric, people.run(), **KEY, value="email", evidence_refs=["tool:crm:2"])
    assert again.status == "duplicate"
    fabric.retract(people.reviewer, first, reason=reason)
    (item,) = returned(fabric, people)
    assert (item.reopens, item.status) == (again.proposal_id, "pending")
    assert "returned" in item.human_reasons
    assert not item.auto_promote_eligible
    assert item.candidate.evidence_refs == ("tool:crm:2",)
    assert [gate.gate for gate in item.candidate.gates][-1] == "rejection", "the gates ran again"
    assert fabric.queue.get(people.reviewer, again.proposal_id).status == "duplicate", "the first stays as it was"
    fabric.queue.approve(people.reviewer, item.proposal_id)
    assert values(fabric, people) == ["email"]


@pytest.mark.rule("REV-8")
def test_after_any_other_end_they_do_not_come_back(fabric: Fabric, people: People) -> None:
    promoted(fabric, people, "email")
    proposed(fabric, people.run(), **KEY, value="email")
    item = proposed(fabric, people.run(), **KEY, value="phone")
    (found,) = fabric.contradictions.list(people.reviewer)
    fabric.contradictions.resolve(people.reviewer, found.contradiction_id, "supersede")
    assert fabric.queue.get(people.reviewer, item.proposal_id).status == "promoted"
    second = proposed(fabric, people.run(), **KEY, value="phone")
    assert second.status == "duplicate"
    fix = fabric.correct(people.author, **KEY, value="fax", user_id="cust_1", classification="INTERNAL")
    fabric.queue.approve(people.reviewer, submitted(fix))
    assert returned(fabric, people) == []


@pytest.mark.rule("REV-8")
@pytest.mark.parametrize("reason", ["superseded", "consent_revoked", "erased", "corrected"])
def test_a_retraction_for_another_reason_brings_nothing_back(fabric: Fabric, people: People, reason: Any) -> None:
    first = promoted(fabric, people, "email")
    proposed(fabric, people.run(), **KEY, value="email")
    fabric.retract(people.reviewer, first, reason=reason)
    assert returned(fabric, people) == []


@pytest.mark.rule("REV-8")
def test_it_comes_back_once_and_goes_with_the_next_original(fabric: Fabric, people: People) -> None:
    first = promoted(fabric, people, "email")
    for _ in range(3):
        proposed(fabric, people.run(), **KEY, value="email")
    fabric.retract(people.reviewer, first, reason="wrong")
    (item,) = returned(fabric, people)
    assert item.count == 3, "one item of the queue"
    second = fabric.queue.approve(people.reviewer, item.proposal_id).memory_id
    assert second is not None
    fabric.retract(people.reviewer, second, reason="wrong")
    (again,) = returned(fabric, people)
    assert again.count == 2
    assert {fabric.queue.get(people.reviewer, one).reopens for one in (again.proposal_id, *again.same)} == {*item.same}


@pytest.mark.rule("REV-8", "CAN-4")
def test_the_gates_run_again_and_may_refuse(fabric: Fabric, people: People) -> None:
    consent = fabric.consent.grant(people.officer, subject="customer:cust_1", **CONSENT)
    given: dict[str, Any] = {**KEY, "value": "email", "subject": "customer:cust_1", "classification": "PII"}
    item = proposed(fabric, people.run(), **given)
    first = fabric.queue.approve(people.reviewer, item.proposal_id).memory_id
    assert proposed(fabric, people.run(), **given).status == "duplicate"
    fabric.consent.revoke(people.officer, consent.consent_id)
    fabric.retract(people.reviewer, str(first), reason="wrong")
    assert returned(fabric, people) == []
    refusals = [e.data for e in fabric.events(people.auditor, limit=1000) if e.type == "memory.refused"]
    assert [(said["gate"], said["reason"]) for said in refusals] == [("consent", "consent_missing")]


@pytest.mark.rule("REV-8", "REV-4")
def test_who_edited_the_duplicate_still_cannot_approve_it(fabric: Fabric, people: People) -> None:
    fact: dict[str, Any] = {**KEY, "user_id": "cust_1", "write_class": "correction"}
    item = proposed(fabric, people.author, **fact, value="email")
    first = fabric.queue.approve(people.reviewer, item.proposal_id).memory_id
    other = proposed(fabric, people.author, **fact, value="mail")
    edited = fabric.queue.edit(people.second_reviewer, other.proposal_id, value="email")
    assert isinstance(edited, Proposal)
    assert edited.status == "duplicate"
    fabric.retract(people.reviewer, str(first), reason="wrong")
    (item,) = returned(fabric, people)
    with pytest.raises(SelfApproval):
        fabric.queue.approve(people.second_reviewer, item.proposal_id)
    assert fabric.queue.approve(people.reviewer, item.proposal_id).status == "promoted"
