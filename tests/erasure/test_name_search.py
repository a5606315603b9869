"""Searching opened texts for a name: what others say of a person in passing, which no erasure finds by ids."""

from typing import Any

import pytest

from muniment import Fabric
from muniment.erasure import name_search
from muniment.errors import Conflict, InvalidInput, NotFound, RoleMissing
from muniment.testing import FakeClock, People
from tests.stories import CONSENT, event_data, proposed, remembered

ANNA = "customer:anna_17"
STATEMENT: dict[str, Any] = {"write_class": "statement", "entity": None, "predicate": None, "value": None}


def told_in_passing(fabric: Fabric, people: People) -> str:
    """The name of one person in texts of another: in every place there is; gives the memory."""
    about: dict[str, Any] = {"subject": "customer:bert_4", "user_id": "bert"}
    run = people.run("bert")
    memory_id = remembered(fabric, people, **STATEMENT | about | {"text": "Bert shares a garden with Anna  Lindqvist."})
    fabric.capture(run, kind="tool_result", payload={"crm": {"neighbour": "ÄNNA-LINDQVIST"}}, classification="INTERNAL")
    item = proposed(fabric, run, **STATEMENT | about | {"text": "Bert plays chess on Sundays in the club"})
    fabric.queue.reject(people.reviewer, item.proposal_id, reason="hearsay", note="heard from anna lindqvist")
    fabric.recall(run, "who is Anna Lindqvist?")
    fabric.consent.grant(people.officer, subject="customer:bert_4", **CONSENT, evidence_refs=["told by Anna Lindqvist"])
    remembered(fabric, people, **STATEMENT | about | {"text": "Joanna Lindqvister lives elsewhere in the north"})
    return memory_id


@pytest.mark.rule("ERA-5", "CAP-11")
def test_a_name_is_found_in_every_place_that_holds_text_however_it_is_written(fabric: Fabric, people: People) -> None:
    memory_id = told_in_passing(fabric, people)
    found = fabric.search_texts(people.officer, "anna lindqvist")
    assert found.finished
    assert found.after is None
    assert (found.searched, found.unreadable) == (found.total, 0)
    places = [(hit.place, hit.field) for hit in found.hits]
    assert sorted(places) == [
        ("candidate", "text"),
        ("capture", "fact"),
        ("capture", "payload"),
        ("consent", "evidence_refs"),
        ("memory", "text"),
        ("note", "note"),
        ("recall", "query"),
    ]
    for one in found.hits:
        # What can be erased as a fact says as which; the rest goes with the person whom it belongs to.
        has_fact = one.place in ("candidate", "note") or (one.place, one.field) == ("capture", "fact")
        assert (one.proposal_id is not None) == has_fact, one
        if one.proposal_id is not None:
            assert fabric.preview_erasure(people.officer, one.proposal_id).facts
    shown = [one.id for one in found.hits if one.place == "capture"]
    assert [one["capture_id"] for one in event_data(fabric, people, "capture_read")] == shown
    hit = found.hits[0]
    assert (hit.id, hit.memory_id, hit.excerpt) == (memory_id, memory_id, "Bert shares a garden with Anna  Lindqvist.")
    assert not any("Joanna" in one.excerpt for one in found.hits), "a name within another is not it"


@pytest.mark.rule("ERA-5", "AUD-1", "EVT-2")
def test_each_page_is_recorded_and_the_name_is_stored_nowhere(
    fabric: Fabric, people: People, rows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_in_passing(fabric, people)
    receipt = fabric.erase(people.officer, subject=ANNA)
    assert receipt.name_search is None
    monkeypatch.setattr(name_search, "MOST_SEARCHED", 4)
    page = fabric.search_texts(people.officer, "Anna Lindqvist", erasure_id=receipt.erasure_id)
    pages, hits = [page], list(page.hits)
    while page.after is not None:
        assert fabric.erasures(people.auditor)[0].name_search is None, "it is not done while texts are left"
        page = fabric.search_texts(people.officer, "Anna Lindqvist", after=page.after)
        pages.append(page)
        hits += page.hits
    assert [one.page for one in pages] == [*range(1, len(pages) + 1)]
    assert len(pages) > 2
    assert len(hits) == 7
    assert page.searched == page.total
    (done,) = fabric.erasures(people.officer)
    assert done.name_search is not None
    events = [one.data for one in fabric.events(people.auditor, limit=500) if one.data.get("about") == "name_search"]
    assert len(events) == len(pages)
    assert len({one["mark"] for one in events}) == 1
    recorded = rows("name_searches")
    assert [row["by"] for row in recorded] == [people.officer.id] * len(pages)
    assert "lindqvist" not in (str(recorded) + str(events)).lower()


@pytest.mark.rule("ERA-5")
def test_a_search_cannot_be_said_to_be_done_without_having_gone_through_all_texts(
    fabric: Fabric, people: People, others: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    told_in_passing(fabric, people)
    receipt = fabric.erase(people.officer, subject=ANNA)
    monkeypatch.setattr(name_search, "MOST_SEARCHED", 2)
    first = fabric.search_texts(people.officer, "Anna", erasure_id=receipt.erasure_id)
    assert first.after is not None
    for wrong in ({"name": "Bert"}, {"name": "Anna", "erasure_id": "era_other"}):
        with pytest.raises((InvalidInput, NotFound)):
            fabric.search_texts(people.officer, **{"after": first.after, **wrong})
    with pytest.raises(NotFound):
        fabric.search_texts(people.officer, "Anna", after="nsr_made_up")
    with pytest.raises(NotFound):
        fabric.search_texts(others.officer, "Anna", after=first.after)
    with pytest.raises(NotFound):
        fabric.search_texts(others.officer, "Anna", erasure_id=receipt.erasure_id)
    for name in ("", "a", " . ", "x" * 201, "a\x00b", 7):
        with pytest.raises(InvalidInput):
            fabric.search_texts(people.officer, name)  # type: ignore[arg-type]
    for asker in (people.reviewer, people.auditor, people.admin, people.author, people.run("bert")):
        with pytest.raises(RoleMissing):
            fabric.search_texts(asker, "Anna")


@pytest.mark.rule("ERA-5")
def test_an_officer_takes_a_memory_that_was_found_away_and_nobody_else_s_reason(
    fabric: Fabric, people: People, others: People, rows: Any
) -> None:
    memory_id = told_in_passing(fabric, people)
    with pytest.raises(RoleMissing):
        fabric.retract(people.officer, memory_id, reason="wrong")
    with pytest.raises(NotFound):
        fabric.retract(others.officer, memory_id, reason="erased")
    gone = fabric.retract(people.officer, memory_id, reason="erased")
    assert (gone.reason, gone.retracted_by) == ("erased", people.officer.id)
    assert fabric.get(people.auditor, memory_id).text == ""
    for table in ("memory_bodies", "memory_words", "memory_vectors"):
        assert memory_id not in {row["memory_id"] for row in rows(table)}
    assert "memory" not in {hit.place for hit in fabric.search_texts(people.officer, "Anna Lindqvist").hits}
    with pytest.raises(Conflict):
        fabric.retract(people.officer, memory_id, reason="erased")
    assert fabric.verify(people.auditor).ok


@pytest.mark.rule("ERA-5")
def test_the_text_of_a_memory_that_was_retracted_before_can_be_taken_away(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    memory_id = told_in_passing(fabric, people)
    fabric.retract(people.reviewer, memory_id, reason="wrong")
    clock.advance(days=1)
    assert fabric.retract(people.officer, memory_id, reason="erased").reason == "wrong"
    assert fabric.get(people.auditor, memory_id).tombstoned_at is not None


@pytest.mark.rule("ERA-5")
def test_a_display_name_is_found_first_and_leads_to_the_person(fabric: Fabric, people: People) -> None:
    told_in_passing(fabric, people)
    fabric.subjects.name(people.reviewer, ANNA, "Änna Lindqvist")
    fabric.subjects.name(people.reviewer, "customer:joanna_1", "Joanna Lindqvister")
    found = fabric.search_texts(people.officer, "anna lindqvist", limit=1)
    (hit,) = found.hits
    assert (hit.place, hit.field, hit.subject, hit.excerpt) == ("name", "display_name", ANNA, "Änna Lindqvist")
    assert fabric.people.get(people.officer, subject=ANNA).display_name == "Änna Lindqvist"
    whole = fabric.export(people.officer, subject=ANNA).subject
    assert whole is not None and whole.display_name == "Änna Lindqvist"
    rest = fabric.search_texts(people.officer, "anna lindqvist", after=found.after)
    assert rest.finished and rest.searched == rest.total and len(rest.hits) == 7
    fabric.erase(people.officer, subject=ANNA)
    again = fabric.search_texts(people.officer, "anna lindqvist")
    assert again.finished and all(one.place != "name" for one in again.hits)
    assert fabric.people.get(people.officer, subject=ANNA).display_name is None
