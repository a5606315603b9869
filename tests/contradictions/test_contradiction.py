"""Contradiction by key: when it is found, what is opened, and what a pack or a correction makes of it."""

from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import NotPromotable
from muniment.testing import FakeClock, People
from tests.conftest import Opener
from tests.stories import promoted, proposed, values

SUBJECT = "customer:cust_1"
KEY: dict[str, Any] = {"entity": SUBJECT, "predicate": "prefers_channel"}


def corrected(fabric: Fabric, people: People, value: Any, **fields: Any) -> str:
    """The id of a promoted correction on the key."""
    item = proposed(fabric, people.author, **KEY, value=value, write_class="correction", user_id="cust_1", **fields)
    done = fabric.queue.approve(people.reviewer, item.proposal_id)
    assert done.memory_id is not None, done.status
    return done.memory_id


def last_events(fabric: Fabric, people: People) -> list[tuple[str, dict[str, Any]]]:
    """The events of the last transaction."""
    log = fabric.events(people.auditor, limit=1000)
    return [(event.type, event.data) for event in log if event.seq == log[-1].seq]


@pytest.mark.rule("PRO-1", "CTR-1", "CTR-3")
def test_a_contradiction_that_arose_while_it_waited_is_found_at_the_approval(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    one, other = (proposed(fabric, people.run(), **KEY, value=value) for value in ("email", "phone"))
    assert other.contradiction_check.verdict == "no_conflict"
    first = fabric.queue.approve(people.reviewer, one.proposal_id).memory_id
    clock.advance(hours=1)
    second = fabric.queue.approve(people.reviewer, other.proposal_id).memory_id
    (found,) = fabric.contradictions.list(people.reviewer)
    assert (found.existing, found.incoming, found.reason, found.opened_at) == (
        first,
        second,
        "other_value",
        clock.now,
    )
    assert (found.entity, found.predicate, found.open) == (*KEY.values(), True)
    assert [kind for kind, _ in last_events(fabric, people)] == [
        "memory.reviewed",
        "memory.promoted",
        "memory.contradiction",
    ]


@pytest.mark.rule("CTR-1")
@pytest.mark.parametrize(
    ("first", "second", "contradicts"),
    [
        ({}, {}, True),
        ({"user_id": None}, {}, True),
        ({"user_id": "cust_2"}, {}, False),
        ({"intent_id": "support.*"}, {"intent_id": "support.refund"}, True),
        ({"intent_id": "support.return"}, {"intent_id": "support.refund"}, False),
        ({"entity": "customer:cust_2"}, {}, False),
        ({"predicate": "dislikes_channel"}, {}, False),
        ({"write_class": "decision_outcome"}, {}, True),
    ],
)
def test_another_value_on_the_key_contradicts_only_where_one_run_could_see_both(
    fabric: Fabric, people: People, first: dict[str, Any], second: dict[str, Any], contradicts: bool
) -> None:
    memory = promoted(fabric, people, "email", **first)
    item = proposed(fabric, people.run(), **{**KEY, "value": "phone", **second})
    check = item.contradiction_check
    assert (check.verdict, check.existing) == (("contradicts", memory) if contradicts else ("no_conflict", None))
    assert ("contradiction" in item.human_reasons) is contradicts


@pytest.mark.rule("CTR-1")
def test_what_was_retracted_or_has_expired_contradicts_nothing(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    fabric.retract(people.reviewer, promoted(fabric, people, "email"), reason="wrong")
    promoted(fabric, people, "phone", write_class="decision_outcome")
    clock.advance(days=30)
    promoted(fabric, people, "fax")
    assert values(fabric, people) == ["fax"]
    assert fabric.contradictions.list(people.reviewer, closed=True) == []


@pytest.mark.rule("CTR-1")
def test_a_predicate_the_ontology_gives_many_values_never_contradicts(under: Opener, people: People) -> None:
    with under("ontology: {predicates: {prefers_channel: {cardinality: many}}}") as fabric:
        for value in ("email", "phone", "fax"):
            promoted(fabric, people, value)
        assert set(values(fabric, people)) == {"email", "phone", "fax"}
        assert fabric.contradictions.list(people.reviewer) == []


@pytest.mark.rule("CTR-4", "CTR-3")
def test_by_default_both_sides_stay_live_and_marked(fabric: Fabric, people: People) -> None:
    sides = {promoted(fabric, people, value) for value in ("email", "phone")}
    answer = fabric.recall(people.run())
    assert answer.records == ()
    assert [{record.id for record in one.records} for one in answer.conflicts] == [sides]


@pytest.mark.rule("CTR-4")
@pytest.mark.parametrize(("unresolved", "status"), [("hold", "held"), ("block", "blocked")])
def test_a_pack_can_hold_or_block_what_contradicts(under: Opener, people: People, unresolved: str, status: str) -> None:
    with under(f"memory_layer: {{contradiction: {{unresolved: {unresolved}}}}}") as fabric:
        memory = promoted(fabric, people, "email")
        item = proposed(fabric, people.run(), **KEY, value="phone").proposal_id
        done = fabric.queue.approve(people.reviewer, item)
        assert (done.status, done.memory_id) == (status, None)
        assert [(v.action, v.by, v.reason) for v in done.verdicts] == [(unresolved, "boris", "contradiction")]
        assert values(fabric, people) == ["email"]
        if unresolved == "hold":
            assert fabric.queue.release(people.reviewer, item).status == "pending"
            assert fabric.queue.approve(people.reviewer, item).status == "held"
            assert fabric.queue.approve(people.reviewer, item, supersedes=memory).status == "promoted"
            assert values(fabric, people) == ["phone"]


@pytest.mark.rule("CTR-4", "COR-2", "PRO-5")
def test_a_correction_supersedes_everything_on_its_key_whatever_the_confidence(fabric: Fabric, people: People) -> None:
    sides = [promoted(fabric, people, value, confidence=0.8) for value in ("email", "phone")]
    mine = corrected(fabric, people, "fax", confidence=0.31)
    assert [(type_, data.get("replaced")) for type_, data in last_events(fabric, people)][-1] == (
        "memory.correction",
        sorted(sides),
    )
    assert values(fabric, people) == [], "below the recall confidence it stands apart"
    assert [record.value for record in fabric.recall(people.run()).low_confidence] == ["fax"]
    for memory_id in sides:
        old = fabric.get(people.auditor, memory_id)
        assert (old.retraction_reason, old.superseded_by, old.retracted_by) == ("corrected", mine, "boris")
        assert old.dead_seq == fabric.get(people.auditor, mine).born_seq
    assert fabric.contradictions.list(people.reviewer) == []


@pytest.mark.rule("CTR-4")
def test_a_correction_is_superseded_only_by_a_later_correction(fabric: Fabric, people: People) -> None:
    first = corrected(fabric, people, "email")
    item = proposed(fabric, people.run(), **KEY, value="phone", confidence=1.0).proposal_id
    with pytest.raises(NotPromotable) as caught:
        fabric.queue.approve(people.reviewer, item, supersedes=first)
    assert caught.value.field == "supersedes"
    assert fabric.get(people.auditor, first).retracted_at is None
    second = corrected(fabric, people, "fax")
    assert fabric.get(people.auditor, first).superseded_by == second
    assert values(fabric, people) == ["fax"]
