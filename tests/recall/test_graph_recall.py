"""Recall along the entity graph: one or two steps, in both directions, over what the run sees and nothing else."""

from collections.abc import Sequence
from typing import Any

import pytest

from muniment import Fabric, RunContext
from muniment.recall import entities as rules
from muniment.testing import FakeClock, People, TestServer
from tests.conftest import Opener
from tests.stories import CONSENT, remembered, submitted

START = "customer:cust_1"
# So many facts in the same words are not to be compared with each other.
FAR_APART = (
    "memory_layer: {recall_policy: {max_recalls: 500},"
    " contradiction: {embedders: {wordllama-256@1: {similarity: 0.99, duplicate_similarity: 0.99}}}}"
)


def tied(fabric: Fabric, people: People, one: str, other: str, **fields: Any) -> str:
    """A fact that ties two entities."""
    return remembered(fabric, people, other, entity=one, predicate=f"tied_{other.replace(':', '_')}", **fields)


def about(fabric: Fabric, people: People, entity: str, **fields: Any) -> str:
    """A fact about one."""
    return remembered(fabric, people, "here", entity=entity, predicate="state", **fields)


def reached(
    fabric: Fabric, run: RunContext, hops: int, query: str | None = None, start: Sequence[str] = (START,), **asked: Any
) -> set[str]:
    answer = fabric.recall(run, query, entities=start, hops=hops, **asked)
    return {record.id for record in answer.all_records}


@pytest.mark.rule("REC-6")
def test_one_or_two_steps_go_along_ties_in_both_directions(under: Opener, people: People) -> None:
    with under("memory_layer: {recall_policy: {max_recalls: 100}}") as fabric:
        ties = {
            "out": tied(fabric, people, START, "order:out"),
            "in": tied(fabric, people, "order:in", START),
            "out, out": tied(fabric, people, "order:out", "courier:out"),
            "out, in": tied(fabric, people, "courier:in", "order:out"),
            "in, in": tied(fabric, people, "courier:far", "order:in"),
            "third": tied(fabric, people, "courier:out", "depot:d1"),
            "elsewhere": tied(fabric, people, "order:else", "courier:else"),
        }
        facts = {
            entity: about(fabric, people, entity)
            for entity in (START, "order:out", "order:in", "courier:out", "courier:far", "depot:d1", "order:else")
        }
        run = people.run()
        one = {facts[START], facts["order:out"], facts["order:in"], ties["out"], ties["in"], ties["out, out"]}
        two = one | {ties["out, in"], ties["in, in"], ties["third"], facts["courier:out"], facts["courier:far"]}
        for query in (None, "here"):
            assert reached(fabric, run, 0, query) == {ties["out"], facts[START]}
            assert reached(fabric, run, 1, query) == one
            assert reached(fabric, run, 2, query) == two
            assert reached(fabric, run, 2, query, start=["depot:nowhere"]) == set()


@pytest.mark.rule("REC-6", "REC-2")
def test_the_further_away_the_less_an_entity_counts(fabric: Fabric, people: People) -> None:
    tied(fabric, people, START, "order:o1")
    tied(fabric, people, "order:o1", "courier:k1")
    facts = {entity: about(fabric, people, entity) for entity in (START, "order:o1", "courier:k1")}
    answer = fabric.recall(people.run(), "here", entities=[START], hops=2)
    parts = {record.id: record.score["entity"] for record in answer.records}
    assert [parts[facts[entity]] for entity in (START, "order:o1", "courier:k1")] == [0.2, 0.1, 0.05]


@pytest.mark.rule("REC-6")
def test_a_ring_is_walked_once_and_steps_may_begin_anywhere_in_it(fabric: Fabric, people: People) -> None:
    ring = ["order:r0", "order:r1", "order:r2", "order:r3", "order:r4"]
    ties = [tied(fabric, people, one, other) for one, other in zip(ring, [*ring[1:], ring[0]], strict=True)]
    for place, start in enumerate(ring):
        answer = fabric.recall(people.run(), entities=[start], hops=1)
        nearby = {ties[place - 1], ties[place], ties[(place + 1) % 5]}
        assert {record.id for record in answer.records} == nearby
        answer = fabric.recall(people.run(), entities=[start], hops=2)
        assert sorted(record.id for record in answer.records) == sorted(ties), "each once"


@pytest.mark.rule("REC-6")
def test_only_a_whole_value_is_a_tie(fabric: Fabric, people: People) -> None:
    for n, value in enumerate(["see order:o1", ["order:o1"], {"order": "order:o1"}, "Order:o1", START]):
        remembered(fabric, people, value, predicate=f"p{n}")
    about(fabric, people, "order:o1")
    answer = fabric.recall(people.run(), entities=[START], hops=2)
    assert {record.entity for record in answer.records} == {START}


@pytest.mark.rule("REC-6", "REC-4")
def test_narrowing_does_not_stop_the_steps(fabric: Fabric, people: People) -> None:
    tied(fabric, people, START, "order:o1", tier="durable", write_class="decision_outcome")
    far = about(fabric, people, "order:o1")
    for narrowed in ({"tiers": ["semantic"]}, {"classes": ["preference"]}):
        assert reached(fabric, people.run(), 1, **narrowed) == {far}


# --- what is not seen is not followed


@pytest.mark.rule("REC-6", "REC-1", "REC-10")
def test_a_tie_that_the_run_does_not_see_is_not_followed(
    under: Opener, people: People, others: People, clock: FakeClock
) -> None:
    with under("memory_layer: {recall_policy: {max_recalls: 100}}") as fabric:
        hide_ties(fabric, people, others, clock)


def hide_ties(fabric: Fabric, people: People, others: People, clock: FakeClock) -> None:
    consent = fabric.consent.grant(people.officer, subject=START, **CONSENT)
    ties: dict[str, dict[str, Any]] = {
        "user": {"user_id": "cust_2"},
        "label": {"classification": "CONFIDENTIAL"},
        "session": {"tier": "working", "session_id": "t"},
        "intent": {"intent_id": "sales.offer"},
        "region": {"qualifiers": {"region": "fr"}},
        "consent": {"subject": START, "classification": "PII"},
        "retracted": {},
        "expired": {"tier": "episodic"},
        "tenant": {},
        "seen": {"tier": "durable"},
    }
    shared = {name: about(fabric, people, f"order:{name}", user_id=None, tier="durable") for name in ties}
    made = {
        name: tied(fabric, others if name == "tenant" else people, START, f"order:{name}", **fields)
        for name, fields in ties.items()
    }
    fabric.retract(people.reviewer, made["retracted"], reason="wrong")
    fabric.consent.revoke(people.officer, consent.consent_id)
    clock.advance(days=30)
    run = people.run(session_id="s", qualifiers={"region": "de"}, classification_allowed={"PUBLIC", "INTERNAL", "PII"})
    allowed = {"PUBLIC", "INTERNAL", "CONFIDENTIAL"}
    wider = people.run("cust_2", classification_allowed=allowed, intent_id="sales.offer")
    for query in (None, "here"):
        for hops in (1, 2):
            assert reached(fabric, run, hops, query) == {made["seen"], shared["seen"]}
        assert reached(fabric, run, 0, query, start=[f"order:{name}" for name in ties]) == set(shared.values())
        assert {shared["user"]} <= reached(fabric, wider, 1, query)


@pytest.mark.rule("REC-6")
def test_a_tie_in_dispute_is_still_followed_and_comes_with_its_other_side(fabric: Fabric, people: People) -> None:
    far = [about(fabric, people, entity) for entity in ("order:o1", "order:o2")]
    sides = [remembered(fabric, people, value, entity=START, predicate="ordered") for value in ("order:o1", "order:o2")]
    answer = fabric.recall(people.run(), entities=[START], hops=1)
    assert {record.id for record in answer.records} == set(far)
    (conflict,) = answer.conflicts
    assert {record.id for record in conflict.records} == set(sides)


# --- a hub


@pytest.mark.rule("REC-6", "REC-2")
def test_a_hub_is_bounded_and_cut_in_the_same_place_each_time(
    under: Opener, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "MOST_REACHED", 12)
    with under(FAR_APART) as fabric:
        count = rules.MOST_REACHED + 8
        run = people.run()
        proposals: list[str] = []
        for n in range(count):
            fact: dict[str, Any] = {"entity": f"item:i{n}", "predicate": "part_of", "value": "order:hub"}
            done = fabric.propose(run, write_class="preference", classification="INTERNAL", confidence=0.7, **fact)
            proposals.append(submitted(done))
        outcomes = fabric.queue.approve_many(people.reviewer, proposals)
        assert {one.status for one in outcomes} == {"promoted"}
        ids = [record.id for record in fabric.recall(run).records]
        assert set(ids) == {one.memory_id for one in outcomes}
        answer = fabric.recall(run, entities=["order:hub"], hops=1)
        found = [record.id for record in answer.records]
        assert found == ids[: rules.MOST_REACHED], "the most important first, then the newest, then by id"
        assert answer.omitted == 0
        # From a leaf that was cut, over the hub, to the others.
        last = fabric.get(people.auditor, ids[-1]).entity
        assert last is not None
        assert ids[-1] in reached(fabric, run, 2, start=[last]) and ids[0] in reached(fabric, run, 2, start=[last])
        best = remembered(fabric, people, "order:hub", entity="item:last", predicate="p", priority=1.0)
        assert reached(fabric, run, 1, start=["order:hub"]) == {best, *ids[: rules.MOST_REACHED - 1]}
        assert fabric.replay(people.auditor, answer.recall_id).same


@pytest.mark.rule("REC-6")
def test_no_more_facts_are_read_for_a_step_than_is_bounded_the_most_important_first(
    fabric: Fabric, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "MOST_LINKS", 2)
    for n in range(4):
        tied(fabric, people, START, f"order:o{n}", priority=n / 10)
    facts = [about(fabric, people, f"order:o{n}", priority=0.0) for n in range(4)]
    assert set(facts) & reached(fabric, people.run(), 1) == {facts[2], facts[3]}


# --- at rest


@pytest.mark.rule("ERA-1")
def test_a_tie_rests_as_two_keyed_hashes_that_mean_nothing_in_another_tenant(
    fabric: Fabric, people: People, others: People, server: TestServer, database: str
) -> None:
    made, theirs = (
        remembered(fabric, cast, "order:quittengelee", entity=START, predicate="ordered") for cast in (people, others)
    )
    with server.connect(database) as owner:
        read = "SELECT memory_id, entity, links_to, l::text FROM memory_links l WHERE memory_id = ANY (%s)"
        rows: dict[Any, Any] = {row[0]: row[1:] for row in owner.execute(read, [[made, theirs]]).fetchall()}
        columns = owner.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = 'muniment' AND data_type IN ('text', 'jsonb', 'ARRAY')"
        ).fetchall()
        for table, column in columns:
            found = owner.execute(f"SELECT count(*) FROM {table} WHERE {column}::text LIKE '%quittengelee%'").fetchone()
            assert found == (0,), f"{table}.{column}"
    assert "quittengelee" not in str(rows) and "cust_1" not in str(rows)
    one, other = rows[made], rows[theirs]
    assert len({one[0], one[1], other[0], other[1]}) == 4


@pytest.mark.rule("ERA-2", "CON-4")
def test_a_tie_goes_with_the_content_it_was_taken_from(fabric: Fabric, people: People, rows: Any) -> None:
    consent = fabric.consent.grant(people.officer, subject=START, **CONSENT)
    made = tied(fabric, people, START, "order:o1", subject=START, classification="PII")
    staying = tied(fabric, people, START, "order:o2")
    assert {row["memory_id"] for row in rows("memory_links")} == {made, staying}
    fabric.consent.revoke(people.officer, consent.consent_id)
    fabric.consent.sweep(people.tenant_id)
    assert {row["memory_id"] for row in rows("memory_links")} == {staying}
    assert {row["memory_id"] for row in rows("memory_words")} == {staying}
    assert {row["memory_id"] for row in rows("memory_vectors")} == {staying}
