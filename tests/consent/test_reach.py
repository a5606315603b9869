"""The reach of a consent: the memories that its revocation would hide."""

from datetime import timedelta
from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import InvalidInput, NotFound, RoleMissing
from muniment.model.consent import ConsentReach
from muniment.testing import FakeClock, People
from tests.recall.explaining import PII, SUBJECT
from tests.stories import CONSENT, remembered


def seen(fabric: Fabric, people: People) -> set[str]:
    return {record.id for record in fabric.recall(people.run(session_id="s"), limit=8).all_records}


@pytest.mark.rule("CON-3", "CON-2")
def test_a_revocation_hides_exactly_what_the_reach_of_the_consent_names(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    first = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    other = fabric.consent.grant(people.officer, subject="customer:cust_9", **CONSENT)
    mine = {
        remembered(fabric, people, predicate="a", **PII),
        remembered(fabric, people, predicate="b", tier="working", session_id="s", **PII),
        remembered(
            fabric, people, None, write_class="statement", entity=None, predicate=None, text="She moved.", **PII
        ),
    }
    theirs = {"entity": "customer:cust_9", "subject": "customer:cust_9", "classification": "PII"}
    others = {remembered(fabric, people, "x", **theirs), remembered(fabric, people, predicate="open")}
    retracted = remembered(fabric, people, predicate="c", **PII)
    fabric.retract(people.reviewer, retracted, reason="wrong")
    before = seen(fabric, people)
    assert before == mine | others
    (reach,) = fabric.consent.reach(people.officer, consent_id=first.consent_id)
    assert set(reach.memory_ids) == mine
    assert (reach.memories, reach.hidden, reach.root_id) == (3, 0, first.root_id)
    assert reach.by_tier == {"semantic": 2, "working": 1}
    assert reach.by_class == {"preference": 2, "statement": 1}
    assert "moved" not in repr(reach)
    fabric.consent.revoke(people.officer, first.consent_id)
    assert before - seen(fabric, people) == mine
    (after,) = fabric.consent.reach(people.officer, consent_id=first.consent_id)
    assert (after.memories, after.memory_ids, after.hidden) == (0, (), 3)
    (of_others,) = fabric.consent.reach(people.officer, consent_id=other.consent_id)
    assert of_others.memories == 1
    fabric.consent.sweep(people.tenant_id)
    swept = fabric.consent.reach(people.officer, consent_id=first.consent_id)
    assert swept == [ConsentReach(root_id=first.root_id)]


@pytest.mark.rule("CON-2")
def test_every_record_of_an_unbroken_chain_reaches_the_same_and_what_it_does_not_cover_is_counted_apart(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    first = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    covered, left = (remembered(fabric, people, predicate=name, **PII) for name in ("a", "b"))
    clock.advance(days=1)
    narrow: dict[str, Any] = CONSENT | {"predicates_allowed": ["a"]}
    ends = clock.now + timedelta(days=1)
    renewed = fabric.consent.grant(
        people.officer, subject=SUBJECT, supersedes=first.consent_id, valid_until=ends, **narrow
    )
    assert seen(fabric, people) == {covered}
    for record in (first, renewed):
        (reach,) = fabric.consent.reach(people.auditor, consent_id=record.consent_id)
        assert reach.root_id == first.consent_id
        assert (reach.memory_ids, reach.memories, reach.hidden) == ((covered,), 1, 1)
    clock.advance(days=2)
    (ended,) = fabric.consent.reach(people.auditor, consent_id=renewed.consent_id)
    assert (ended.memories, ended.hidden) == (0, 2), "it ran out: nothing is left that a revocation would hide"
    assert left not in ended.memory_ids


def test_of_many_the_latest_are_named(
    fabric: Fabric, people: People, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    made: list[str] = []
    for name in ("a", "b", "c"):
        clock.advance(seconds=1)
        made.append(remembered(fabric, people, predicate=name, **PII))
    monkeypatch.setattr("muniment.consent.store.REACHED", 2)
    (reach,) = fabric.consent.reach(people.officer, consent_id=consent.consent_id)
    assert (reach.memories, reach.memory_ids) == (3, (made[2], made[1]))


@pytest.mark.rule("CON-2", "ISO-4")
def test_each_consent_of_a_subject_has_its_own_reach(
    fabric: Fabric, people: People, others: People, clock: FakeClock
) -> None:
    first = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    remembered(fabric, people, predicate="a", **PII)
    clock.advance(days=1)
    narrow: dict[str, Any] = CONSENT | {"predicates_allowed": ["b"]}
    second = fabric.consent.grant(people.officer, subject=SUBJECT, **narrow)
    fabric.consent.grant(people.officer, subject="customer:cust_9", **CONSENT)
    fabric.consent.grant(others.officer, subject=SUBJECT, **CONSENT)
    result = fabric.consent.reach(people.officer, subject=SUBJECT)
    assert [(one.root_id, one.memories) for one in result] == [(second.root_id, 0), (first.root_id, 1)]
    assert fabric.consent.reach(people.officer, subject="customer:nobody") == []
    for wrong in ({}, {"consent_id": first.consent_id, "subject": SUBJECT}):
        with pytest.raises(InvalidInput):
            fabric.consent.reach(people.officer, **wrong)


@pytest.mark.rule("ISO-4", "ISO-5")
def test_the_reach_of_a_consent_is_for_those_who_read_the_ledger(
    fabric: Fabric, people: People, others: People
) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    fabric.consent.grant(others.officer, subject=SUBJECT, **CONSENT)
    result: list[str] = []
    for consent_id in (consent.consent_id, "cns_0"):
        with pytest.raises(NotFound) as caught:
            fabric.consent.reach(others.officer, consent_id=consent_id)
        result.append(str(caught.value))
    assert result == ["consent_id: no such consent"] * 2
    for asker in (people.reviewer, people.admin, people.author, people.run()):
        with pytest.raises(RoleMissing):
            fabric.consent.reach(asker, consent_id=consent.consent_id)
