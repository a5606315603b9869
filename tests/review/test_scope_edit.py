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
