"""Erasing one fact for good (ERA-8): its memory, candidates and proposals, and the captures on which nothing else rests."""

from typing import Any

import psycopg
import pytest

from muniment import Fabric
from muniment.erasure.rules import FactPlan, resting_on
from muniment.erasure.store import erase_facts
from muniment.errors import Conflict, NotFound, RoleMissing
from muniment.model.proposal import Proposal
from muniment.testing import People
from tests.stories import event_data, proposed, remembered

SECRET = "the violet giraffe sings at noon"
OTHER = "Invoices go to the office in Hamburg."
STATEMENT: dict[str, Any] = {"write_class": "statement", "entity": None, "predicate": None, "value": None}


def said(fabric: Fabric, people: People, text: str = SECRET, **fields: Any) -> str:
    """A promoted statement in a capture of its own."""
    return remembered(fabric, people, **STATEMENT | {"text": text} | fields)


def told(fabric: Fabric, people: People, *texts: str) -> tuple[str, list[str]]:
    """A message with several preferences, promoted: its capture and the memories, in their order."""
    item = {"kind": "message", "classification": "INTERNAL", "text": " ".join(texts), "origin": "channel:chat"}
    capture_id = fabric.capture(people.run(), **item).capture_id  # type: ignore[arg-type]
    found = fabric.consolidate(people.tenant_id)
    assert len(found.proposals) == len(texts), found
    outcomes = fabric.queue.approve_many(people.reviewer, found.proposals)
    memories = [one.memory_id for one in outcomes if one.memory_id is not None]
    assert len(memories) == len(texts)
    return capture_id, memories


def content(rows: Any, table: str, column: str = "content") -> list[bytes]:
    return [row[column] for row in rows(table, column)]


@pytest.mark.rule("ERA-8")
def test_its_memory_its_candidate_and_its_capture_lose_all_their_content(
    fabric: Fabric, people: People, rows: Any
) -> None:
    memory = said(fabric, people)
    kept = said(fabric, people, OTHER)
    recalled = fabric.recall(people.run(), "giraffe")
    assert recalled.records
    receipt = fabric.erase_fact(people.officer, fact_id=memory)

    assert (receipt.fact_id, receipt.memories, receipt.by, receipt.purged_at) == (memory, 1, people.officer.id, None)
    assert (receipt.rows["candidates"], receipt.rows["captures"], receipt.rows["keys"]) == (1, 1, 0)
    assert fabric.recall(people.run(), "violet giraffe").records == ()
    assert [record.id for record in fabric.recall(people.run(), "invoices").records] == [kept], "nothing else went"
    shown = fabric.get(people.auditor, memory)
    assert (shown.text, shown.retraction_reason) == ("", "erased")
    assert "giraffe" not in fabric.trail(people.auditor, memory).model_dump_json()
    assert min(map(len, content(rows, "candidates"))) == 0
    assert sum(not one for one in content(rows, "captures")) == 1
    assert len(content(rows, "memory_bodies")) == len(rows("memory_vectors")) == len(rows("memory_words")) == 1
    assert fabric.erasures(people.auditor) == [receipt]
    assert event_data(fabric, people, "erased")[0]["memories"] == 1
    assert fabric.verify(people.auditor).ok


@pytest.mark.rule("ERA-8")
def test_a_proposal_that_nobody_decided_is_erased_and_withdrawn(fabric: Fabric, people: People, rows: Any) -> None:
    proposal = proposed(fabric, people.run(), **STATEMENT | {"text": SECRET})
    fabric.queue.override(people.reviewer, proposal.proposal_id, tier="episodic", note="a violet giraffe?")
    receipt = fabric.erase_fact(people.officer, fact_id=proposal.proposal_id, requested_by="cust_1")
    assert (receipt.memories, receipt.requested_by, receipt.rows["notes"]) == (0, "cust_1", 1)
    found = fabric.queue.get(people.reviewer, proposal.proposal_id)
    assert (found.status, found.candidate.text) == ("withdrawn", "")
    assert fabric.queue.list(people.reviewer) == []


@pytest.mark.rule("ERA-8")
def test_a_fact_goes_under_all_its_proposals(fabric: Fabric, people: People, rows: Any) -> None:
    first = proposed(fabric, people.run(), **STATEMENT | {"text": f"{SECRET}, or so"})
    edited = fabric.queue.edit(people.reviewer, first.proposal_id, text=SECRET)
    assert isinstance(edited, Proposal)
    memory = fabric.queue.approve(people.second_reviewer, edited.proposal_id).memory_id
    assert memory is not None
    again = proposed(fabric, people.run(), **STATEMENT | {"text": SECRET})
    assert again.status == "duplicate"
    plan = fabric.preview_erasure(people.officer, memory)
    assert {one.proposal_id for one in plan.facts} == {first.proposal_id, edited.proposal_id, again.proposal_id}
    assert (len(plan.captures), plan.shared) == (2, ())
    receipt = fabric.erase_fact(people.officer, fact_id=memory)
    assert (receipt.rows["candidates"], receipt.rows["captures"]) == (3, 2)
    assert [one for table in ("candidates", "captures") for one in content(rows, table) if one] == []
    for fact_id in (memory, again.proposal_id, first.proposal_id):
        with pytest.raises(Conflict):
            fabric.erase_fact(people.officer, fact_id=fact_id)


VEGAN, TEA = "I'm vegan.", "I prefer green tea."


@pytest.mark.rule("ERA-8")
def test_whoever_erases_sees_what_else_rests_on_the_capture_and_decides_to_keep_it(
    fabric: Fabric, people: People, rows: Any
) -> None:
    capture_id, (memory, other) = told(fabric, people, VEGAN, TEA)
    plan = fabric.preview_erasure(people.officer, memory)
    (shared,) = plan.shared
    assert (plan.captures, shared.capture_id, shared.unread) == ((), capture_id, False)
    assert [(one.memory_id, "tea" in one.text) for one in shared.facts] == [(other, True)]
    with pytest.raises(Conflict) as caught:
        fabric.erase_fact(people.officer, fact_id=memory)
    assert caught.value.field == "capture"
    assert fabric.get(people.auditor, memory).text, "nothing was erased"

    receipt = fabric.erase_fact(people.officer, fact_id=memory, capture="keep")
    assert (receipt.memories, receipt.captures, receipt.rows["captures"]) == (1, (), 0)
    assert fabric.get(people.auditor, memory).text == ""
    assert [record.id for record in fabric.recall(people.run(), "green tea").records] == [other]
    assert all(content(rows, "captures"))
    # Read again, the capture that stays does not bring the fact back.
    fabric.captures.rerun(people.reviewer, capture_id, "requested")
    assert fabric.consolidate(people.tenant_id).proposals == ()


@pytest.mark.rule("ERA-8")
def test_or_to_erase_it_with_all_that_rests_on_it(fabric: Fabric, people: People, rows: Any) -> None:
    capture_id, memories = told(fabric, people, VEGAN, TEA)
    receipt = fabric.erase_fact(people.officer, fact_id=memories[0], capture="erase")
    assert (receipt.memories, receipt.captures, receipt.rows["captures"]) == (2, (capture_id,), 1)
    assert [fabric.get(people.auditor, one).text for one in memories] == ["", ""]
    assert [one for table in ("candidates", "captures") for one in content(rows, table) if one] == []


@pytest.mark.rule("ERA-8")
def test_once_the_other_fact_is_gone_too_the_capture_goes_with_the_last(fabric: Fabric, people: People) -> None:
    capture_id, (one, other) = told(fabric, people, VEGAN, TEA)
    assert fabric.erase_fact(people.officer, fact_id=one, capture="keep").captures == ()
    assert fabric.erase_fact(people.officer, fact_id=other).captures == (capture_id,)


@pytest.mark.rule("ERA-8")
def test_the_database_lets_no_capture_go_on_which_something_rests_that_stays(
    fabric: Fabric, people: People, rows: Any
) -> None:
    capture_id, (memory, _) = told(fabric, people, VEGAN, TEA)
    candidate = next(row["candidate_id"] for row in rows("memories") if row["memory_id"] == memory)
    known = frozenset(row["candidate_id"] for row in rows("candidates"))
    careless = FactPlan(memory, [candidate], [capture_id], [capture_id], known)

    async def erase() -> None:
        async with fabric._fabric._context.write_once(people.tenant_id, "privacy") as tx:
            await erase_facts(tx, people.officer, careless, None)

    with pytest.raises(psycopg.errors.RestrictViolation):
        fabric._wait(erase)
    assert all(content(rows, "captures"))
    assert fabric.erasures(people.officer) == []


@pytest.mark.rule("ERA-8")
def test_what_came_into_its_capture_since_it_was_looked_at_stops_the_erasure(
    fabric: Fabric, people: People, rows: Any
) -> None:
    memory = said(fabric, people)
    (candidate,) = rows("candidates", "candidate_id, capture_id, seq")
    capture_id = candidate["capture_id"]
    stale = FactPlan(memory, [candidate["candidate_id"]], [capture_id], [capture_id], frozenset())

    async def erase() -> None:
        async with fabric._fabric._context.write_once(people.tenant_id, "privacy") as tx:
            await erase_facts(tx, people.officer, stale, None)

    with pytest.raises(Conflict):
        fabric._wait(erase)


@pytest.mark.rule("ERA-8", "ISO-4")
def test_only_a_privacy_officer_erases_and_only_in_their_tenant(fabric: Fabric, people: People, others: People) -> None:
    memory = said(fabric, people)
    for person in (people.reviewer, people.auditor, people.admin, people.author):
        with pytest.raises(RoleMissing):
            fabric.erase_fact(person, fact_id=memory)
        with pytest.raises(RoleMissing):
            fabric.preview_erasure(person, memory)
    with pytest.raises(NotFound):
        fabric.erase_fact(others.officer, fact_id=memory)
    with pytest.raises(NotFound):
        fabric.preview_erasure(others.officer, memory)


@pytest.mark.rule("ERA-8")
def test_it_is_erased_once(fabric: Fabric, people: People) -> None:
    memory = said(fabric, people)
    receipt = fabric.erase_fact(people.officer, fact_id=memory)
    with pytest.raises(Conflict):
        fabric.erase_fact(people.officer, fact_id=memory)
    with pytest.raises(Conflict):
        fabric.preview_erasure(people.officer, memory)
    assert fabric.erasures(people.officer) == [receipt]


@pytest.mark.rule("ERA-8")
def test_other_facts_of_a_capture_rest_on_it_and_one_that_is_not_read_may_hold_others() -> None:
    by_capture = {"a": ["1"], "b": ["1", "2"], "c": ["1"]}
    assert resting_on(by_capture, ["1"], ["c"]) == {"b": ["2"], "c": []}
    assert resting_on(by_capture, ["1", "2"], []) == {}
