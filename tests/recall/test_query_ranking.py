"""Recall by a query: what counts besides the words, and what is returned separately."""

from contextlib import AbstractContextManager
from typing import Any

import pytest

from muniment import Fabric
from muniment.testing import FakeClock, People
from tests.pack_activation import WITHOUT_FLOOR, put_in_force
from tests.recall.scores import PARTS, texts, totals
from tests.stories import promoted, proposed, remembered

# --- what counts beside the words


@pytest.mark.rule("REC-2")
def test_priority_recency_and_confidence_decide_between_what_is_equally_relevant(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    def fact(predicate: str, **fields: Any) -> str:
        return remembered(fabric, people, "blue", predicate=predicate, text="Blue it is.", **fields)

    old = fact("a", priority=0.5)
    clock.advance(days=180)
    usual = fact("b", priority=0.5)
    urgent = fact("c", priority=0.9)
    unsure = fact("d", priority=0.5, confidence=0.55)
    answer = fabric.recall(people.run(), "blue")
    assert [record.id for record in answer.records] == [urgent, usual, unsure, old]
    scores = {record.id: record.score for record in answer.records}
    assert scores[urgent]["priority"] == 0.09
    assert scores[old]["recency"] == 0.0125
    assert scores[unsure]["confidence"] == 0.0275


@pytest.mark.rule("REC-2")
def test_the_nearer_its_intent_to_the_runs_the_more_a_memory_counts(fabric: Fabric, people: People) -> None:
    scoped = {
        intent: remembered(fabric, people, "blue", predicate=predicate, text="Blue it is.", intent_id=intent)
        for predicate, intent in (("a", None), ("b", "sales.*"), ("c", "sales.offer"))
    }
    answer = fabric.recall(people.run(intent_id="sales.offer"), "blue")
    assert [record.id for record in answer.records] == [scoped["sales.offer"], scoped["sales.*"], scoped[None]]
    assert [record.score["intent"] for record in answer.records] == [0.05, 0.025, 0.0]


@pytest.mark.rule("REC-2", "REC-6")
def test_a_memory_about_an_entity_that_the_query_names_counts_more(fabric: Fabric, people: People) -> None:
    put_in_force(fabric, people.tenant_id, WITHOUT_FLOOR)
    orders = {
        entity: remembered(fabric, people, "late", entity=entity, predicate="state", text="It is late.")
        for entity in ("order:o1", "order:o2", "order:o3")
    }
    for named in ("order:o1", "order:o2"):
        best, *rest = fabric.recall(people.run(), f"what about {named}?").records
        assert (best.id, best.score["entity"]) == (orders[named], 0.2)
        assert {record.score["entity"] for record in rest} == {0.0}


@pytest.mark.rule("REC-2")
def test_a_memory_of_the_runs_own_decision_counts_more(fabric: Fabric, people: People) -> None:
    def outcome(predicate: str, **run: Any) -> str:
        fact = {"entity": "order:o1", "predicate": predicate, "value": "granted", "text": "It was granted."}
        item = proposed(fabric, people.run(**run), write_class="decision_outcome", **fact)
        done = fabric.queue.approve(people.reviewer, item.proposal_id)
        assert done.memory_id is not None
        return done.memory_id

    first, second = outcome("a", decision_key="d1"), outcome("b", decision_key="d2")
    for key, best in (("d1", first), ("d2", second)):
        answer = fabric.recall(people.run(decision_key=key), "granted")
        assert answer.records[0].id == best
        assert [record.score["entity"] for record in answer.records] == [0.2, 0.0]
    assert {record.score["entity"] for record in fabric.recall(people.run(), "granted").records} == {0.0}


@pytest.mark.rule("REC-2", "COR-2")
def test_a_correction_comes_before_the_most_relevant_on_its_key(under: Any, people: People) -> None:
    opened: AbstractContextManager[Fabric] = under("ontology: {predicates: {likes: {cardinality: many}}}")
    with opened as fabric:
        other = remembered(fabric, people, "x", predicate="a", text="Parcels leave the depot.")
        best = remembered(fabric, people, "parcels", predicate="likes", text="She likes parcels.")
        correction = remembered(
            fabric, people, "tea", predicate="likes", text="Tea.", by=people.author, write_class="correction"
        )
        answer = [record.id for record in fabric.recall(people.run(), "she likes parcels").records]
        assert answer == [correction, best, other]
        answer = [record.id for record in fabric.recall(people.run(), "parcels of the depot").records]
        assert answer == [other, correction, best]


# --- what stands apart


@pytest.mark.rule("REC-3")
def test_of_low_confidence_it_stands_apart_and_is_ranked_there_too(fabric: Fabric, people: People) -> None:
    put_in_force(fabric, people.tenant_id, WITHOUT_FLOOR)
    remembered(fabric, people, "tea", predicate="a", text="Tea with milk.")
    low = [
        remembered(fabric, people, value, predicate=predicate, text=text, confidence=0.4)
        for predicate, value, text in (("b", "x", "A bicycle."), ("c", "y", "Green tea."), ("d", "z", "A train."))
    ]
    answer = fabric.recall(people.run(), "green tea")
    assert texts(answer) == ["Tea with milk."]
    assert answer.low_confidence[0].id == low[1]
    assert {record.id for record in answer.low_confidence} == set(low)
    assert totals(answer.low_confidence) == sorted(totals(answer.low_confidence), reverse=True)
    cut = fabric.recall(people.run(), "green tea", limit=1)
    assert (len(cut.records), len(cut.low_confidence), cut.omitted) == (1, 1, 2)


@pytest.mark.rule("REC-4", "CTR-6")
def test_open_conflicts_come_whole_and_apart_the_most_relevant_first(fabric: Fabric, people: People) -> None:
    put_in_force(fabric, people.tenant_id, WITHOUT_FLOOR)
    plain = remembered(fabric, people, "x", predicate="about", text="Parcels are what it is about.")
    sides = {
        predicate: {promoted(fabric, people, value, predicate=predicate) for value in values}
        for predicate, values in (("ships_parcels_by", ("rail", "road", "air")), ("drinks", ("tea", "milk")))
    }
    for query, first, last in (
        ("ships parcels by road", "ships_parcels_by", "drinks"),
        ("drinks milk", "drinks", "ships_parcels_by"),
    ):
        answer = fabric.recall(people.run(), query)
        assert [record.id for record in answer.records] == [plain]
        assert [{record.id for record in one.records} for one in answer.conflicts] == [sides[first], sides[last]]
        assert all(record.score.keys() == PARTS | {"total"} for one in answer.conflicts for record in one.records)
        cut = fabric.recall(people.run(), query, limit=1)
        assert [{record.id for record in one.records} for one in cut.conflicts] == [sides[first]]
        assert cut.omitted == len(sides[last])


@pytest.mark.rule("REC-6", "REC-4")
def test_narrowed_it_answers_with_those_alone_and_changes_no_score(fabric: Fabric, people: People) -> None:
    outcome = remembered(
        fabric, people, "paid", entity="order:o1", predicate="a", text="It was paid.", write_class="decision_outcome"
    )
    kept = remembered(fabric, people, "paid", predicate="b", text="Paid by card.", tier="durable")
    liked = remembered(fabric, people, "paid", predicate="c", text="Paying late.")
    sides = [promoted(fabric, people, "paid", predicate="d")]
    sides.append(promoted(fabric, people, "unpaid", predicate="d", write_class="decision_outcome"))
    run = people.run()
    whole = fabric.recall(run, "paid by card")
    assert {record.id for record in whole.records} == {outcome, kept, liked}
    scores = {record.id: record.score for record in whole.all_records}

    def narrowed(**to: Any) -> tuple[set[str], int]:
        answer = fabric.recall(run, "paid by card", **to)
        assert answer.omitted == 0
        for record in answer.all_records:
            assert record.score | {"entity": 0, "total": 0} == scores[record.id] | {"entity": 0, "total": 0}
        return {record.id for record in answer.records}, sum(len(one.records) for one in answer.conflicts)

    assert narrowed(entities=["order:o1"]) == ({outcome}, 0)
    assert narrowed(entities=["order:o2"]) == (set(), 0)
    assert narrowed(tiers=["durable"]) == ({kept}, 0)
    assert narrowed(classes=["decision_outcome"]) == ({outcome}, 2), "a conflict stays whole"
    assert narrowed(classes=["preference"], tiers=["semantic"]) == ({liked}, 2)
    assert narrowed(tiers=[]) == narrowed(classes=[]) == narrowed(entities=[]) == (set(), 0)
