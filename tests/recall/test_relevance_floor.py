"""The relevance floor (REC-13): with a query, what has next to nothing to do with it is left out, counted and explained."""

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment import Fabric, RunContext
from muniment.model.recall import Recall
from muniment.pack import Pack, builtin_pack, load_pack
from muniment.pack.combined import narrow_recall_policy
from muniment.recall.rules import PARTS, Seen, relevance
from muniment.testing import FakeClock, People, TestServer
from tests.pack_activation import acme, put_in_force
from tests.recall.test_query_recall import stated
from tests.stories import promoted, proposed, remembered

CHANNEL, DOG = "The customer prefers to be contacted by email.", "Her dog is called Biscuit."
QUERY = "by which channel should the customer be contacted?"
ELSEWHERE = "nuclear reactor maintenance"


@pytest.fixture(params=["from the index", "by the statements"])
def answering(request: pytest.FixtureRequest, fabric: Fabric) -> Iterator[Fabric]:
    """A fabric that answers in one of the two ways."""
    scopes = fabric._fabric._context.scopes
    before = scopes.limit
    scopes.limit = before if request.param == "from the index" else 0
    yield fabric
    scopes.limit = before


def ask(fabric: Fabric, run: RunContext, query: str | None = QUERY, limit: int | None = None) -> Recall:
    """Ask twice: the second time the index is there."""
    fabric.recall(run, query, limit=limit)
    return fabric.recall(run, query, limit=limit)


@pytest.mark.rule("REC-13")
def test_what_has_next_to_nothing_to_do_with_the_query_is_left_out_and_counted(
    answering: Fabric, people: People
) -> None:
    stated(answering, people, [CHANNEL, DOG])
    answer = ask(answering, people.run())
    assert [record.text for record in answer.records] == [CHANNEL]
    assert answer.omitted == 1
    assert {record.text for record in ask(answering, people.run(), None).records} == {DOG, CHANNEL}


@pytest.mark.rule("REC-13")
def test_it_is_left_out_before_the_limit_and_not_after_it(answering: Fabric, people: People) -> None:
    stated(answering, people, [CHANNEL, "Contact the customer by phone in the evening."])
    for predicate in ("a", "b", "c"):
        # Of such a priority that it ranks before what is relevant, if nothing is left out.
        remembered(answering, people, "x", predicate=predicate, text=DOG, priority=1.0, user_id="cust_1")
    weights = "{vector: 0.1, words: 0.1, priority: 5.0, recency: 0.0, confidence: 0.0, intent: 0.0, entity: 0.0}"
    policy = f"memory_layer: {{recall_policy: {{relevance_floor: 0.02, weights: {weights}}}}}"
    put_in_force(answering, people.tenant_id, acme("1.0.0", policy))
    answer = ask(answering, people.run(), limit=2)
    assert {record.text for record in answer.records} == {CHANNEL, "Contact the customer by phone in the evening."}
    assert answer.omitted == 3


@pytest.mark.rule("REC-13")
def test_a_pack_without_a_floor_leaves_nothing_out(answering: Fabric, people: People) -> None:
    put_in_force(answering, people.tenant_id, acme("1.0.0", "memory_layer: {recall_policy: {relevance_floor: 0.0}}"))
    stated(answering, people, [CHANNEL, DOG])
    answer = ask(answering, people.run())
    assert ([record.text for record in answer.records], answer.omitted) == ([CHANNEL, DOG], 0)


@pytest.mark.rule("REC-13", "REC-2")
def test_a_correction_comes_with_what_is_relevant_on_its_key(answering: Fabric, people: People) -> None:
    key = {"entity": "customer:cust_1", "predicate": "prefers_channel"}
    pack = "ontology: {predicates: {prefers_channel: {cardinality: many}}}"
    put_in_force(answering, people.tenant_id, acme("1.0.0", pack))
    said = remembered(answering, people, "email", **key, text=CHANNEL)
    given = {**key, "value": "none", "write_class": "correction", "text": "Biscuit, the dog.", "evidence_refs": ["t:1"]}
    proposal = proposed(answering, people.author, user_id="cust_1", **given)
    correction = answering.queue.approve(people.reviewer, proposal.proposal_id).memory_id
    assert [record.id for record in ask(answering, people.run()).records] == [correction, said]
    assert ask(answering, people.run(), ELSEWHERE).records == ()


@pytest.mark.rule("REC-13", "REC-4")
def test_a_conflict_stays_whole_if_one_side_is_relevant_and_goes_whole_if_none_is(
    answering: Fabric, people: People
) -> None:
    one = promoted(answering, people, "a", predicate="p", text=CHANNEL)
    other = promoted(answering, people, "b", predicate="p", text=DOG)
    (conflict,) = ask(answering, people.run()).conflicts
    assert {record.id for record in conflict.records} == {one, other}
    nothing = ask(answering, people.run(), ELSEWHERE)
    assert (nothing.conflicts, nothing.omitted) == ((), 2)


@pytest.mark.rule("REC-13")
@pytest.mark.parametrize("query", ["the of and", "?!", "\U0001f600"])
def test_a_query_that_says_nothing_leaves_nothing_out(answering: Fabric, people: People, query: str) -> None:
    stated(answering, people, [CHANNEL, DOG])
    assert len(ask(answering, people.run(), query).records) == 2


@pytest.mark.rule("REC-13")
def test_what_was_not_embedded_yet_is_not_left_out(
    answering: Fabric, people: People, server: TestServer, database: str
) -> None:
    stated(answering, people, [CHANNEL, DOG])
    with server.connect(database) as owner:
        owner.execute(b"DELETE FROM muniment.memory_vectors WHERE tenant_id = %s", [people.tenant_id])
    assert len(ask(answering, people.run()).records) == 2


@pytest.mark.rule("REC-13", "REC-10")
def test_explain_says_that_it_was_not_relevant_enough_and_how_much_was_missing(fabric: Fabric, people: People) -> None:
    stated(fabric, people, [CHANNEL, "Call the customer by phone.", DOG])
    listed = {one.text: one.memory_id for one in fabric.memories.list(people.reviewer)}
    answer = fabric.recall(people.run(), QUERY, limit=1)

    def explained(text: str) -> tuple[str, bool | None, str | None]:
        found = fabric.explain(people.auditor, memory_id=listed[text], recall_id=answer.recall_id)
        return found.visibility, found.returned, found.missed

    assert explained(CHANNEL) == ("visible", True, None)
    assert explained("Call the customer by phone.") == ("visible", False, "cut")
    assert explained(DOG) == ("visible", False, "irrelevant")
    found = fabric.explain(people.run(), memory_id=listed[DOG], recall_id=answer.recall_id)
    floor = builtin_pack().memory_layer.recall_policy.relevance_floor
    assert found.relevance_floor == floor
    assert found.relevance is not None
    assert 0.0 <= found.relevance < floor


@pytest.mark.rule("REC-13", "REC-9")
def test_a_replay_has_the_floor_of_then_and_one_recorded_before_there_was_a_floor_has_none(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    stated(fabric, people, [CHANNEL, DOG])
    answer = fabric.recall(people.run(), QUERY)
    put_in_force(fabric, people.tenant_id, acme("1.0.0", "memory_layer: {recall_policy: {relevance_floor: 0.0}}"))
    assert fabric.replay(people.auditor, answer.recall_id).same
    whole = fabric.recall(people.run(), QUERY)
    assert len(whole.records) == 2
    with server.connect(database) as owner:
        owner.execute(
            b"UPDATE muniment.recalls SET request = request - 'relevance_floor' - 'valid_at' WHERE recall_id = %s",
            [whole.recall_id],
        )
    assert fabric.replay(people.auditor, whole.recall_id).same


@pytest.mark.rule("REC-13", "PAC-4")
def test_a_pinned_pack_can_raise_the_floor_and_not_lower_it() -> None:
    def pack(floor: float) -> Pack:
        text = f"memory_layer: {{recall_policy: {{relevance_floor: {floor}}}}}"
        return load_pack(f'pack_meta: {{id: acme, version: "1.0.{int(floor * 100)}"}}\n{text}')

    for pinned, in_force in ((0.0, 0.2), (0.2, 0.0)):
        narrowed = narrow_recall_policy(pack(pinned), [pack(in_force)])
        assert narrowed.memory_layer.recall_policy.relevance_floor == 0.2


@given(st.lists(st.floats(0, 1), min_size=7, max_size=7))
def test_relevance_is_what_meaning_words_and_entity_add_to_the_score(parts: list[float]) -> None:
    nothing = np.zeros(1)
    seen = Seen(
        ["m"], nothing, nothing, np.zeros(1, np.int64), nothing, np.zeros(1, np.int16), np.zeros(1, np.int16),
        np.ones(1, np.bool_), frozenset(), {},
    )  # fmt: skip
    (found,) = relevance(seen, np.array(parts).reshape(7, 1))
    expected = sum(parts[PARTS.index(name)] for name in ("vector", "words", "entity"))
    assert found == pytest.approx(expected, abs=1e-6)


def test_the_clock_decides_nothing_about_it(answering: Fabric, people: People, clock: FakeClock) -> None:
    stated(answering, people, [CHANNEL, DOG])
    clock.advance(days=200)
    assert [record.text for record in ask(answering, people.run()).records] == [CHANNEL]
