"""Duplicates by key and value: marked with the memory they repeat, kept, never promoted."""

from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import AlreadyDecided
from muniment.testing import People
from tests.stories import CONSENT, promoted, proposed

SUBJECT = "customer:cust_1"
FACT: dict[str, Any] = {"entity": SUBJECT, "predicate": "likes", "value": "tea"}


@pytest.mark.rule("REV-7")
@pytest.mark.parametrize(
    ("known", "again", "same"),
    [
        ("Email", " eMAIL ", True),
        (30, 30.0, True),
        ({"a": 1, "b": [True]}, {"b": [True], "a": 1.0}, True),
        (30, 14, False),
        (1, True, False),
        ("30", 30, False),
        ([1, 2], [2, 1], False),
    ],
)
def test_the_same_value_on_the_same_key_is_a_duplicate_and_never_promoted(
    fabric: Fabric, people: People, known: Any, again: Any, same: bool
) -> None:
    memory = promoted(fabric, people, known)
    item = proposed(fabric, people.run(), entity=SUBJECT, predicate="prefers_channel", value=again)
    assert item.status == ("duplicate" if same else "pending")
    assert item.duplicate_check == (memory if same else None)
    assert item.contradiction_check.verdict == ("duplicate" if same else "contradicts")
    assert item.contradiction_check.existing == memory
    if same:
        with pytest.raises(AlreadyDecided):
            fabric.queue.approve(people.reviewer, item.proposal_id)
        assert [record.id for record in fabric.recall(people.run()).records] == [memory]
        assert fabric.queue.list(people.reviewer) == []


@pytest.mark.rule("REV-7", "PRO-1")
def test_what_became_a_duplicate_while_it_waited_is_found_at_the_approval(fabric: Fabric, people: People) -> None:
    one, other = (proposed(fabric, people.run(user), **FACT) for user in (None, "cust_1"))
    memory = fabric.queue.approve(people.reviewer, one.proposal_id).memory_id
    done = fabric.queue.approve(people.reviewer, other.proposal_id)
    assert (done.status, done.duplicate_check, done.memory_id) == ("duplicate", memory, None)
    assert [v.by for v in done.verdicts] == ["auto"]
    assert len(fabric.recall(people.run()).records) == 1


@pytest.mark.rule("REV-7")
def test_the_same_value_in_another_scope_is_no_duplicate(fabric: Fabric, people: People) -> None:
    promoted(fabric, people, user_id="cust_1")
    other = proposed(fabric, people.run("cust_2"), entity=SUBJECT, predicate="prefers_channel", value="email")
    assert (other.status, other.contradiction_check.verdict) == ("pending", "no_conflict")
    tenants = proposed(fabric, people.run(None), entity=SUBJECT, predicate="prefers_channel", value="email")
    assert tenants.status == "duplicate", "a run for cust_1 would see both"


@pytest.mark.rule("REV-7", "CON-3")
def test_a_fact_consented_to_anew_is_no_duplicate_of_one_whose_consent_ended(fabric: Fabric, people: People) -> None:
    first = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    promoted(fabric, people, subject=SUBJECT, classification="PII")
    fabric.consent.revoke(people.officer, first.consent_id)
    fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    assert fabric.recall(people.run()).records == ()
    promoted(fabric, people, subject=SUBJECT, classification="PII")
    assert [record.value for record in fabric.recall(people.run()).records] == ["email"]


@pytest.mark.rule("REV-7", "PRO-1")
def test_a_duplicate_is_not_promoted_for_being_said_to_supersede_another(fabric: Fabric, people: People) -> None:
    one, other = (proposed(fabric, people.run(user), **FACT).proposal_id for user in (None, "cust_1"))
    unrelated = promoted(fabric, people, "blue", predicate="favourite_colour")
    original = fabric.queue.approve(people.reviewer, one).memory_id
    done = fabric.queue.approve(people.reviewer, other, supersedes=unrelated)
    assert (done.status, done.duplicate_check) == ("duplicate", original)
