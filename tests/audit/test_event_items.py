"""Batches in the log: one event for each type, which is found, verified and delivered like many."""

from typing import Any

import pytest

from muniment import Fabric
from muniment.audit import chain
from muniment.model.events import Event
from muniment.testing import People
from muniment.webhooks.messages import cloud_event
from tests.recall.batches import TEXTS, promoted_together
from tests.stories import promoted, proposed, remembered


def of_type(fabric: Fabric, people: People, name: str) -> list[Event]:
    return fabric.events(people.auditor, types=[f"memory.{name}"])  # type: ignore[list-item]


@pytest.mark.rule("AUD-1", "AUD-2", "AUD-4")
def test_a_batch_is_one_event_for_each_type_and_all_of_it_is_verified(
    fabric: Fabric, people: People, rows: Any
) -> None:
    memory_ids = promoted_together(fabric, people)
    assert len(memory_ids) == len(TEXTS)
    log = [event.type.removeprefix("memory.") for event in fabric.events(people.auditor)]
    assert log[-4:] == ["captured", "proposed", "reviewed", "promoted"]
    (event,) = of_type(fabric, people, "promoted")
    assert [one["memory_id"] for one in event.items] == memory_ids
    assert all(one.keys() == {"memory_id", "proposal_id", "write_class", "tier"} for one in event.items)
    found = fabric.verify(people.auditor)
    assert found.ok
    fabric.seal(people.tenant_id)
    assert fabric.verify(people.auditor).ok


@pytest.mark.rule("AUD-1")
def test_the_trail_of_a_memory_of_a_batch_has_what_happened_to_it_alone(fabric: Fabric, people: People) -> None:
    memory_id = promoted_together(fabric, people)[3]
    trail = fabric.trail(people.auditor, memory_id)
    assert [event.type.removeprefix("memory.") for event in trail.events] == [
        *["captured", "proposed", "reviewed", "promoted"]
    ]
    proposed, reviewed, last = trail.events[1:]
    assert last.data["memory_id"] == memory_id
    assert {event.data["proposal_id"] for event in (proposed, reviewed, last)} == {trail.proposals[0].proposal_id}


@pytest.mark.rule("AUD-1")
def test_events_about_an_id_show_what_names_it_and_not_the_rest_of_the_batch(fabric: Fabric, people: People) -> None:
    memory_ids = promoted_together(fabric, people)
    fabric.retract(people.reviewer, memory_ids[5], reason="wrong")
    found = fabric.events(people.auditor, about=memory_ids[5])
    assert [event.type for event in found] == ["memory.promoted", "memory.retracted"]
    assert [event.data["memory_id"] for event in found] == [memory_ids[5]] * 2
    assert fabric.events(people.auditor, about=memory_ids[5], latest=True) == found[::-1]
    (whole,) = of_type(fabric, people, "promoted")
    assert (found[0].event_id, found[0].seq, found[0].n) == (whole.event_id, whole.seq, whole.n)


@pytest.mark.rule("AUD-1")
def test_of_what_ended_together_a_trail_has_the_memory_and_its_own_contradictions(
    fabric: Fabric, people: People
) -> None:
    fact: dict[str, Any] = {"entity": "customer:cust_1", "predicate": "likes"}
    tea, rum = (remembered(fabric, people, value, **fact) for value in ("tea", "rum"))
    correction = proposed(
        fabric, people.author, **fact, value="milk", write_class="correction", user_id="cust_1"
    ).proposal_id
    new = fabric.queue.approve(people.reviewer, correction).memory_id or ""
    retracted, resolved = (of_type(fabric, people, name)[-1] for name in ("retracted", "contradiction_resolved"))
    assert {one["memory_id"] for one in retracted.items} == {tea, rum}
    assert len(resolved.items) == 3
    for memory_id, others in ((tea, {rum, new}), (rum, {tea, new})):
        trail = fabric.trail(people.auditor, memory_id)
        items = [one for event in trail.events for one in event.items]
        named = {one.contradiction_id for one in trail.contradictions}
        assert len(named) == 2
        assert {one["contradiction_id"] for one in items if "contradiction_id" in one} == named
        assert not {one["memory_id"] for one in items if "memory_id" in one} & others


@pytest.mark.rule("EVT-1")
def test_a_cloud_event_with_several_items_has_no_subject(fabric: Fabric, people: People) -> None:
    promoted_together(fabric, people, 2)
    (event,) = of_type(fabric, people, "promoted")
    posted = cloud_event(event)
    assert "subject" not in posted
    assert posted["data"] == {"items": list(event.items)}
    promoted(fabric, people)
    assert cloud_event(of_type(fabric, people, "promoted")[-1])["subject"].startswith("pm_")


@pytest.mark.rule("AUD-2")
def test_a_sealed_batch_ends_when_it_is_long(fabric: Fabric, people: People, monkeypatch: pytest.MonkeyPatch) -> None:
    promoted_together(fabric, people)
    monkeypatch.setattr(chain, "BYTES", 2000)
    fabric.seal(people.tenant_id)
    found = fabric.verify(people.auditor)
    assert found.ok and found.unsealed == 0
    assert 1 < found.batches < found.events
