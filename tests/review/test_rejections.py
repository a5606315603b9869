"""Rejections are remembered without what they said: the same fact is refused, also in other words."""

from datetime import timedelta
from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import Conflict, RoleMissing
from muniment.model.proposal import Proposal
from muniment.testing import FakeClock, People
from tests.conftest import Opener
from tests.stories import KEY, promoted, proposed, refused

TEXT = "The customer wants deliveries before noon on weekdays."


def rejected(fabric: Fabric, people: People, **fields: Any) -> Proposal:
    item = proposed(fabric, people.run(), **fields)
    return fabric.queue.reject(people.reviewer, item.proposal_id, reason="not so")


@pytest.mark.rule("REV-6", "CAN-4")
@pytest.mark.parametrize("again", ["email", "  EMAIL "])
def test_the_same_value_on_the_same_key_is_refused_with_a_link_to_the_rejection(
    fabric: Fabric, people: People, again: str
) -> None:
    first = rejected(fabric, people, **KEY, value="email")
    said = refused(fabric, people.run(), **KEY, value=again)
    assert (said.gate, said.reason, said.rejection) == ("rejection", "rejected_before", first.proposal_id)
    assert proposed(fabric, people.run(), **KEY, value="phone").status == "pending"
    assert proposed(fabric, people.run(), **KEY | {"predicate": "likes"}, value="email").status == "pending"


@pytest.mark.rule("REV-6")
@pytest.mark.parametrize(
    "again", [TEXT, TEXT.upper(), "On weekdays the customer wants deliveries before noon.", TEXT.rstrip(".") + "!"]
)
def test_the_same_assertion_in_other_words_is_refused(fabric: Fabric, people: People, again: str) -> None:
    first = rejected(fabric, people, write_class="statement", text=TEXT)
    said = refused(fabric, people.run(), write_class="statement", text=again)
    assert said.rejection == first.proposal_id


@pytest.mark.rule("REV-6")
def test_what_says_something_else_is_not_refused(fabric: Fabric, people: People) -> None:
    rejected(fabric, people, write_class="statement", text=TEXT)
    for text in (TEXT.replace("noon", "11 am"), TEXT.replace("wants", "does not want"), "The customer pays by card."):
        assert proposed(fabric, people.run(), write_class="statement", text=text).status == "pending"


@pytest.mark.rule("REV-6")
def test_a_rejection_for_one_user_tells_nobody_else_and_one_for_all_holds_for_each(
    fabric: Fabric, people: People
) -> None:
    rejected(fabric, people, write_class="statement", text=TEXT)
    for user in ("cust_2", None):
        assert proposed(fabric, people.run(user), write_class="statement", text=TEXT).status == "pending"
    other = "Deliveries to the side entrance are not possible."
    item = proposed(fabric, people.run(None), write_class="statement", text=other)
    fabric.queue.reject(people.reviewer, item.proposal_id, reason="not so")
    for user in ("cust_1", "cust_2", None):
        assert refused(fabric, people.run(user), write_class="statement", text=other).gate == "rejection"


@pytest.mark.rule("REV-6")
def test_it_is_forgotten_after_its_time(fabric: Fabric, people: People, clock: FakeClock) -> None:
    rejected(fabric, people, **KEY, value="email")
    clock.now += timedelta(days=180) - timedelta(seconds=1)
    refused(fabric, people.run(), **KEY, value="email")
    clock.advance(seconds=1)
    assert proposed(fabric, people.run(), **KEY, value="email").status == "pending"


@pytest.mark.rule("REV-6", "REV-1")
def test_an_operator_lifts_it_once_by_name(fabric: Fabric, people: People) -> None:
    first = rejected(fabric, people, **KEY, value="email")
    with pytest.raises(RoleMissing):
        fabric.queue.lift(people.author, first.proposal_id)
    lifted = fabric.queue.lift(people.second_reviewer, first.proposal_id, note="it was true after all")
    assert (lifted.status, lifted.verdicts[-1].action, lifted.verdicts[-1].by) == ("rejected", "lift", "clara")
    with pytest.raises(Conflict):
        fabric.queue.lift(people.reviewer, first.proposal_id)
    again = proposed(fabric, people.run(), **KEY, value="email")
    with pytest.raises(Conflict):
        fabric.queue.lift(people.reviewer, again.proposal_id)


@pytest.mark.rule("REV-6")
def test_a_held_proposal_is_no_rejection_until_it_is_rejected(under: Opener, people: People, rows: Any) -> None:
    with under("memory_layer: {contradiction: {unresolved: hold}}") as fabric:
        promoted(fabric, people, "email")
        held = proposed(fabric, people.run(), **KEY, value="phone").proposal_id
        assert fabric.queue.approve(people.reviewer, held).status == "held"
        assert rows("rejection_marks") == []
        with pytest.raises(Conflict):
            fabric.queue.lift(people.reviewer, held)
        assert proposed(fabric, people.run(), **KEY, value="phone").status == "pending"
        assert fabric.queue.get(people.reviewer, held).status == "held"
        fabric.queue.reject(people.reviewer, held, reason="not so")
        assert refused(fabric, people.run(), **KEY, value="phone").rejection == held


@pytest.mark.rule("REV-6")
def test_a_blocked_proposal_is_no_rejection(fabric: Fabric, people: People) -> None:
    item = proposed(fabric, people.run(), **KEY, value="email")
    fabric.queue.approve(people.reviewer, item.proposal_id)
    against = proposed(fabric, people.run(), **KEY, value="phone")
    (found,) = fabric.contradictions.list(people.reviewer)
    fabric.contradictions.resolve(people.reviewer, found.contradiction_id, "block")
    assert fabric.queue.get(people.reviewer, against.proposal_id).status == "blocked"
    assert proposed(fabric, people.run(), **KEY, value="phone").status == "pending"


@pytest.mark.rule("REV-6", "CAN-9")
def test_every_way_in_meets_it(fabric: Fabric, people: People) -> None:
    first = rejected(fabric, people, write_class="statement", text=TEXT)
    fabric.capture(people.run(), kind="statement", text=TEXT, classification="INTERNAL")
    (refusal,) = fabric.consolidate(people.tenant_id).refusals
    assert refusal.rejection == first.proposal_id
    item = proposed(fabric, people.run(), write_class="statement", text="The customer pays by card.")
    edited = fabric.queue.edit(people.reviewer, item.proposal_id, text=TEXT)
    assert getattr(edited, "rejection", None) == first.proposal_id
    assert fabric.queue.get(people.reviewer, item.proposal_id).status == "pending", "nothing was changed"


@pytest.mark.rule("REV-6", "ERA-1")
def test_nothing_of_what_was_rejected_is_kept_in_the_open(fabric: Fabric, people: People, rows: Any) -> None:
    rejected(fabric, people, write_class="statement", text=TEXT)
    marks = rows("rejection_marks")
    assert len(marks) > 40
    assert set(marks[0]) == {"tenant_id", "mark", "proposal_id"}
    assert rows("memory_vectors") == [], "a vector is kept for what was promoted alone"


@pytest.mark.rule("REV-6")
def test_the_rejections_of_others_do_not_push_ones_own_out(fabric: Fabric, people: People) -> None:
    for number in range(25):
        item = proposed(fabric, people.run(f"cust_{number}"), write_class="statement", text=TEXT)
        fabric.queue.reject(people.reviewer, item.proposal_id, reason="not so")
    assert refused(fabric, people.run("cust_0"), write_class="statement", text=TEXT).gate == "rejection"
