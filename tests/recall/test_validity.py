"""When a fact holds in the world (REC-14): recall leaves out what does not hold at the asked time, and explain says so."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest

from muniment import Fabric, RunContext
from muniment.errors import InvalidInput, NotFound
from muniment.model.compiled import Format
from muniment.testing import FakeClock, People, TestServer
from tests.stories import KEY, promoted, proposed, remembered

DAY = timedelta(days=1)
MICROSECOND = timedelta(microseconds=1)
QUERY = "which channel does customer:cust_1 prefer"


@pytest.fixture(params=["from the index", "by the statements"])
def answering(request: pytest.FixtureRequest, fabric: Fabric) -> Iterator[Fabric]:
    """A fabric that answers in one of the two ways."""
    scopes = fabric._fabric._context.scopes
    before = scopes.limit
    scopes.limit = before if request.param == "from the index" else 0
    yield fabric
    scopes.limit = before


def sees(fabric: Fabric, run: RunContext, memory_id: str, **times: Any) -> bool:
    """Whether the run recalls it: by a query, twice, and without one it must be the same."""
    listed = memory_id in {record.id for record in fabric.recall(run, **times).all_records}
    for _ in range(2):
        assert listed == (memory_id in {record.id for record in fabric.recall(run, QUERY, **times).all_records})
    return listed


@pytest.mark.rule("REC-14")
def test_what_holds_from_one_time_until_another_is_recalled_only_in_between(
    answering: Fabric, people: People, clock: FakeClock
) -> None:
    begin, end = clock.now + DAY, clock.now + 3 * DAY
    memory = remembered(answering, people, valid_from=begin, valid_until=end)
    run = people.run()
    assert not sees(answering, run, memory)
    for moment, expected in ((begin - MICROSECOND, False), (begin, True), (end - MICROSECOND, True), (end, False)):
        assert sees(answering, run, memory, valid_at=moment) == expected
    clock.now = begin
    assert sees(answering, run, memory), "the default is now"
    clock.now = end - MICROSECOND
    assert sees(answering, run, memory)
    clock.now = end
    assert not sees(answering, run, memory)


@pytest.mark.rule("REC-14")
@pytest.mark.parametrize("times", [{"valid_from": -1}, {"valid_until": 1}, {}])
def test_an_open_end_is_open(answering: Fabric, people: People, clock: FakeClock, times: dict[str, int]) -> None:
    memory = remembered(answering, people, **{name: clock.now + days * DAY for name, days in times.items()})
    run, far = people.run(), timedelta(days=36500)
    assert sees(answering, run, memory)
    assert sees(answering, run, memory, valid_at=clock.now - far) == ("valid_from" not in times)
    assert sees(answering, run, memory, valid_at=clock.now + far) == ("valid_until" not in times)


@pytest.mark.rule("REC-14", "REC-7")
def test_valid_at_asks_about_the_world_and_as_of_about_what_was_known(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    early = clock.now
    clock.advance(days=1)
    memory = remembered(fabric, people, valid_until=clock.now + DAY)
    known, run = clock.now, people.run()
    clock.advance(days=5)
    assert not sees(fabric, run, memory), "it holds no more"
    assert sees(fabric, run, memory, valid_at=known), "known today, of then"
    assert sees(fabric, run, memory, as_of=known), "what the run would have been given then"
    assert not sees(fabric, run, memory, as_of=known, valid_at=clock.now), "known then, of today"
    assert not sees(fabric, run, memory, as_of=early, valid_at=known), "not known then"


@pytest.mark.rule("REC-14", "REC-10")
def test_explain_says_that_it_does_not_hold_with_both_times(fabric: Fabric, people: People, clock: FakeClock) -> None:
    end = clock.now + DAY
    memory = remembered(fabric, people, valid_until=end)
    answer = fabric.recall(people.run(), QUERY, valid_at=end)
    for asker in (people.run(), people.auditor):
        found = fabric.explain(asker, memory_id=memory, recall_id=answer.recall_id)
        assert (found.visibility, found.hidden_by, found.returned) == ("not_valid", ("validity",), False)
        assert found.valid_at == end
        (verdict,) = [one for one in found.filters if one.name == "validity"]
        assert verdict.memory == {"valid_from": None, "valid_until": end}
        assert verdict.asked == {"valid_at": end}
    assert fabric.explain(people.run(), memory_id=memory).visible
    assert fabric.explain(people.run(), memory_id=memory, valid_at=end).visibility == "not_valid"
    assert fabric.explain(people.auditor, memory_id=memory, valid_at=end).hidden_by == ("validity",), "without a run"
    assert fabric.explain(people.auditor, memory_id=memory, run=people.run(), valid_at=end).visibility == "not_valid"
    with pytest.raises(InvalidInput):
        fabric.explain(people.run(), memory_id=memory, recall_id=answer.recall_id, valid_at=end)


@pytest.mark.rule("REC-14")
def test_a_memory_that_holds_no_more_cannot_be_read_by_its_id_either(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    memory = remembered(fabric, people, valid_until=clock.now + DAY)
    assert fabric.get(people.run(), memory).memory_id == memory
    clock.advance(days=1)
    with pytest.raises(NotFound):
        fabric.get(people.run(), memory)
    assert fabric.get(people.auditor, memory).valid_until == clock.now, "a person can"


@pytest.mark.rule("REC-14", "REC-9")
def test_a_replay_asks_about_the_same_time_again(
    fabric: Fabric, people: People, clock: FakeClock, server: TestServer, database: str
) -> None:
    end = clock.now + DAY
    memory = remembered(fabric, people, valid_until=end)
    times = (None, end)
    recalls = [fabric.recall(people.run(), query, valid_at=at) for query in (None, QUERY) for at in times]
    assert [len(one.records) for one in recalls] == [1, 0, 1, 0]
    clock.advance(days=5)
    assert all(fabric.replay(people.auditor, one.recall_id).same for one in recalls)
    # One that was recorded before there were such times left nothing out.
    with server.connect(database) as owner:
        owner.execute(
            b"UPDATE muniment.recalls SET request = request - 'valid_at' WHERE recall_id = %s", [recalls[0].recall_id]
        )
    assert fabric.replay(people.auditor, recalls[0].recall_id).same
    explained = fabric.explain(people.auditor, memory_id=memory, recall_id=recalls[0].recall_id)
    assert (explained.visible, explained.valid_at) == (True, None)


# --- read from the sentence


@pytest.mark.rule("REC-14")
def test_a_fact_takes_its_times_from_its_sentence_relative_to_when_it_was_observed(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    observed = datetime(2025, 3, 10, 12, tzinfo=UTC)
    fabric.capture(
        people.run(), kind="statement", classification="INTERNAL", observed_at=observed, text="Parcels go to Hamburg from May to July."
    )  # fmt: skip
    (proposal,) = fabric.consolidate(people.tenant_id).proposals
    fabric.queue.approve(people.reviewer, proposal)
    candidate = fabric.queue.get(people.reviewer, proposal).candidate
    begin, end = datetime(2025, 5, 1, tzinfo=UTC), datetime(2025, 8, 1, tzinfo=UTC) - MICROSECOND
    assert (candidate.valid_from, candidate.valid_until) == (begin, end)
    (record,) = fabric.recall(people.run(), valid_at=begin).records
    assert (record.valid_from, record.valid_until) == (begin, end)
    assert fabric.recall(people.run(), valid_at=observed).records == ()


@pytest.mark.rule("REC-14")
def test_what_the_caller_says_counts_more_than_the_sentence(fabric: Fabric, people: People, clock: FakeClock) -> None:
    end = clock.now + 400 * DAY
    proposal = proposed(fabric, people.run(), **_statement("The shop is closed until June."), valid_until=end)
    assert (proposal.candidate.valid_from, proposal.candidate.valid_until) == (None, end)


@pytest.mark.rule("REC-14")
def test_words_that_the_fabric_made_of_a_value_are_no_sentence(fabric: Fabric, people: People) -> None:
    proposal = proposed(fabric, people.run(), entity="customer:cust_1", predicate="away", value="until June")
    assert proposal.candidate.valid_until is None


# --- contradictions


@pytest.mark.rule("REC-14", "CTR-1")
def test_two_values_of_one_key_at_different_times_do_not_contradict_each_other(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    turn = clock.now + DAY
    before = promoted(fabric, people, "email", valid_until=turn)
    after = promoted(fabric, people, "phone", valid_from=turn)
    assert fabric.contradictions.list(people.reviewer) == []
    for moment, memory in ((clock.now, before), (turn, after)):
        answer = fabric.recall(people.run(), valid_at=moment)
        assert ([record.id for record in answer.records], answer.conflicts) == ([memory], ())
    promoted(fabric, people, "letter", valid_until=turn + MICROSECOND)
    assert len(fabric.contradictions.list(people.reviewer)) == 2, "this one overlaps with both"


@pytest.mark.rule("REC-14", "CTR-2")
def test_texts_about_different_times_do_not_contradict_each_other(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    def open_after(second: dict[str, Any]) -> int:
        other = People(f"{people.tenant_id}_{len(second)}")
        first = {"valid_until": clock.now + DAY}
        for word, times in (("open", first), ("not open", second)):
            proposal = proposed(fabric, other.run(), **_statement(f"The office is {word} on Sunday."), **times)
            fabric.queue.approve(other.reviewer, proposal.proposal_id)
        return len(fabric.contradictions.list(other.reviewer))

    assert open_after({}) == 1
    assert open_after({"valid_from": clock.now + DAY}) == 0


@pytest.mark.rule("REC-14", "REV-7")
def test_the_same_fact_at_another_time_is_no_duplicate(fabric: Fabric, people: People, clock: FakeClock) -> None:
    end = clock.now + DAY
    remembered(fabric, people, "email", valid_until=end)

    def status(**times: Any) -> str:
        proposal = proposed(fabric, people.run(), **KEY, value="email", **times)
        return proposal.status

    assert status(valid_until=end) == "duplicate"
    assert status(valid_from=end) == "pending", "holds only when the other is over"
    assert status() == "pending", "the memory ends, this does not"


# --- shown


@pytest.mark.rule("REC-14", "REC-11")
def test_a_compiled_prompt_says_until_when_a_fact_holds(fabric: Fabric, people: People, clock: FakeClock) -> None:
    clock.now = datetime(2026, 5, 4, 9, tzinfo=UTC)
    proposal = proposed(fabric, people.run(), **_statement("Parcels go to Hamburg until June."))
    fabric.queue.approve(people.reviewer, proposal.proposal_id)
    for form in get_args(Format):
        assert "until June 2026" in fabric.compile(people.run(), "parcels", format=form).text
    assert fabric.compile(people.run(), "parcels", valid_at=datetime(2026, 6, 1, tzinfo=UTC)).text == ""


def _statement(text: str) -> dict[str, Any]:
    return {"write_class": "statement", "text": text}
