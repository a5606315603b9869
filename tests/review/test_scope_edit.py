"""A reviewer widens or narrows the scope of a proposal as an edit, which passes the gates again (REV-14)."""

from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import InvalidInput
from muniment.model.proposal import Proposal
from muniment.testing import People
from tests.stories import CONSENT, KEY, proposed, texts


def edited(fabric: Fabric, people: People, item: Proposal, **changes: Any) -> Proposal:
    found = fabric.queue.edit(people.reviewer, item.proposal_id, **changes)
    assert isinstance(found, Proposal)
    return found


@pytest.mark.rule("REV-14")
def test_a_fact_of_one_user_is_widened_to_all_and_others_then_see_it(fabric: Fabric, people: People) -> None:
    item = proposed(fabric, people.run(), **KEY, value="email")
    assert item.candidate.scope.user_id == "cust_1"
    wide = edited(fabric, people, item, user_id=None)
    assert wide.candidate.scope.user_id is None
    assert wide.candidate.gates, "it passed the gates again"
    assert fabric.queue.get(people.reviewer, item.proposal_id).status == "edited"
    fabric.queue.approve(people.second_reviewer, wide.proposal_id)
    assert texts(fabric, people.run("cust_2")) == [wide.candidate.text]


@pytest.mark.rule("REV-14", "REC-1")
def test_what_a_user_said_of_themselves_is_given_to_no_other_user(fabric: Fabric, people: People) -> None:
    said: dict[str, Any] = {"write_class": "statement", "kind": "message", "text": "I only drink green tea"}
    item = proposed(fabric, people.run("joanna"), **said)
    for scope in (None, "joanna"):
        with pytest.raises(InvalidInput) as refused:
            fabric.queue.edit(people.reviewer, item.proposal_id, user_id="mallory")
        assert refused.value.field == "user_id"
        item = edited(fabric, people, item, user_id=scope)
        assert item.candidate.scope.user_id == scope


@pytest.mark.rule("REV-14", "REC-1")
@pytest.mark.parametrize("other", ["mallory", None])
def test_what_names_nobody_but_its_user_stays_that_users(fabric: Fabric, people: People, other: str | None) -> None:
    said: dict[str, Any] = {"write_class": "statement", "kind": "message", "text": "I only drink green tea"}
    # No subject can have this id, so the user is the only person that the fact names.
    item = proposed(fabric, people.run("auth0|1"), **said)
    assert (item.candidate.subject, item.candidate.scope.user_id) == (None, "auth0|1")
    with pytest.raises(InvalidInput) as refused:
        fabric.queue.edit(people.reviewer, item.proposal_id, user_id=other)
    assert refused.value.field == "user_id"


@pytest.mark.rule("REV-14")
def test_a_fact_of_all_is_narrowed_to_a_user_an_intent_and_qualifiers(fabric: Fabric, people: People) -> None:
    item = proposed(fabric, people.run(None), **KEY, value="email")
    changes: dict[str, Any] = {"user_id": "cust_1", "intent_id": "support.refund", "qualifiers": {"region": "de"}}
    narrow = edited(fabric, people, item, **changes)
    scope = narrow.candidate.scope
    assert (scope.user_id, scope.intent_id, scope.qualifiers) == ("cust_1", "support.refund", {"region": "de"})
    fabric.queue.approve(people.second_reviewer, narrow.proposal_id)
    assert texts(fabric, people.run("cust_2")) == []
    assert texts(fabric, people.run("cust_1", intent_id="support.refund", qualifiers={"region": "at"})) == []
    assert texts(fabric, people.run("cust_1", intent_id="support.refund", qualifiers={"region": "de"})) == [
        narrow.candidate.text
    ]


@pytest.mark.rule("REV-14")
def test_a_fact_of_one_workflow_is_given_to_another(fabric: Fabric, people: People) -> None:
    first, second = (people.run(None, workflow_id=one, intent_id="support.refund") for one in ("wf_1", "wf_2"))
    item = proposed(fabric, first, write_class="statement", text="The parcel waits at the depot in Ulm.")
    assert (item.tier_target, item.candidate.scope.workflow_id) == ("episodic", "wf_1")
    moved = edited(fabric, people, item, workflow_id="wf_2")
    fabric.queue.approve(people.second_reviewer, moved.proposal_id)
    assert (texts(fabric, first), texts(fabric, second)) == ([], [moved.candidate.text])


@pytest.mark.rule("REV-14")
def test_a_fact_of_one_intent_is_given_to_all(fabric: Fabric, people: People) -> None:
    item = proposed(fabric, people.run(intent_id="sales.quote"), **KEY, value="email")
    assert item.candidate.scope.intent_id == "sales.quote"
    wide = edited(fabric, people, item, intent_id=None)
    fabric.queue.approve(people.second_reviewer, wide.proposal_id)
    assert texts(fabric, people.run(intent_id="support.refund")) == [wide.candidate.text]


@pytest.mark.rule("REV-14")
def test_a_check_shows_the_new_scope_and_changes_nothing(fabric: Fabric, people: People) -> None:
    item = proposed(fabric, people.run(), **KEY, value="email")
    found = fabric.queue.check(people.reviewer, item.proposal_id, user_id=None)
    assert found.candidate is not None and found.candidate.scope.user_id is None
    assert fabric.queue.get(people.reviewer, item.proposal_id).candidate.scope.user_id == "cust_1"


@pytest.mark.rule("REV-14", "REV-4")
def test_who_changed_the_scope_cannot_approve_what_is_sensitive(fabric: Fabric, people: People) -> None:
    fabric.consent.grant(people.officer, subject="customer:cust_1", **CONSENT)
    item = proposed(fabric, people.run(), **KEY, value="x", classification="PII", subject="customer:cust_1")
    wide = edited(fabric, people, item, user_id=None)
    assert fabric.queue.evidence(people.reviewer, wide.proposal_id).barred is not None
    assert fabric.queue.evidence(people.second_reviewer, wide.proposal_id).barred is None


def test_personal_data_is_no_qualifier(fabric: Fabric, people: People) -> None:
    item = proposed(fabric, people.run(), **KEY, value="email")
    with pytest.raises(InvalidInput) as refused:
        fabric.queue.edit(people.reviewer, item.proposal_id, qualifiers={"mail": "ann@example.com"})
    assert refused.value.field == "qualifiers"
