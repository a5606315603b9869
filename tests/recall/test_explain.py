"""Explain: what each filter said of a memory, of a moment or of a recall."""

from datetime import timedelta
from itertools import product
from typing import Any, get_args

import pytest

from muniment import Fabric, Principal, RunContext
from muniment.model.explanation import Explanation, FilterName
from muniment.model.recall import Recall
from muniment.pack import load_pack
from muniment.testing import FakeClock, People
from tests.pack_activation import acme, put_in_force, register
from tests.recall.explaining import PII, SUBJECT, not_found
from tests.stories import CONSENT, promoted, remembered

FILTERS: tuple[FilterName, ...] = get_args(FilterName)
FRESH = 'pack_meta: {id: fresh, version: "1.0.0"}\nmemory_layer: {recall_policy: {freshness: {semantic: 7d}}}'


def verdict(explained: Explanation, name: str) -> tuple[bool, dict[str, Any], dict[str, Any]]:
    (one,) = (one for one in explained.filters if one.name == name)
    return one.passed, one.memory, one.asked


# --- every filter alone, with its inputs


@pytest.mark.rule("REC-10", "REC-1")
@pytest.mark.parametrize(
    ("memory", "run", "hidden_by", "has", "asked"),
    [
        ({}, {"user_id": "cust_2"}, "user", {"user_id": "cust_1", "tier": "semantic"}, {"users": [None, "cust_2"]}),
        ({}, {"user_id": None}, "user", {"user_id": "cust_1", "tier": "semantic"}, {"users": [None]}),
        (
            {"tier": "working", "session_id": "s"},
            {"session_id": "t"},
            "session",
            {"session_id": "s", "tier": "working"},
            {"session_id": "t"},
        ),
        (
            {"tier": "episodic", "workflow_id": "w", "user_id": None},
            {},
            "workflow",
            {"workflow_id": "w", "tier": "episodic"},
            {"workflow_id": None},
        ),
        (
            {"intent_id": "sales.*"},
            {"intent_id": "support.refund"},
            "intent",
            {"intent_id": "sales.*", "tier": "semantic"},
            {"intents": [None, "support.refund", "support.*"]},
        ),
        (
            {"classification": "CONFIDENTIAL"},
            {"classification_allowed": {"PUBLIC", "INTERNAL"}},
            "classification",
            {"classification": "CONFIDENTIAL"},
            {"labels": ["INTERNAL", "PUBLIC"]},
        ),
        (
            {"qualifiers": {"region": "de"}},
            {"qualifiers": {"region": "fr"}},
            "qualifiers",
            {"qualifiers": {"region": "de"}, "required": []},
            {"qualifiers": {"region": "fr"}},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_filter_of_scope_that_fails_alone_is_named_with_its_inputs(
    fabric: Fabric,
    people: People,
    memory: dict[str, Any],
    run: dict[str, Any],
    hidden_by: str,
    has: dict[str, Any],
    asked: dict[str, Any],
) -> None:
    memory_id = remembered(fabric, people, **memory)
    there = people.run(**run)
    assert fabric.recall(there).records == ()
    for asker in (people.auditor, people.reviewer):
        explained = fabric.explain(asker, memory_id=memory_id, run=there)
        assert (explained.visible, explained.visibility, explained.hidden_by) == (False, "hidden", (hidden_by,))
        assert verdict(explained, hidden_by) == (False, has, asked)
        assert tuple(one.name for one in explained.filters) == FILTERS, "every filter, not the first alone"
    unknown = not_found(lambda: fabric.explain(there, memory_id="pm_0000"))
    assert not_found(lambda: fabric.explain(there, memory_id=memory_id)) == unknown


@pytest.mark.rule("REC-10", "CTR-5")
def test_what_a_settled_contradiction_asks_a_run_to_say_is_named(fabric: Fabric, people: People) -> None:
    first = promoted(fabric, people, "email")
    promoted(fabric, people, "phone")
    (found,) = fabric.contradictions.list(people.reviewer)
    sides: dict[str, dict[str, str]] = {"existing": {"region": "de"}, "incoming": {"region": "fr"}}
    fabric.contradictions.resolve(people.reviewer, found.contradiction_id, "coexist", **sides)
    explained = fabric.explain(people.auditor, memory_id=first, run=people.run())
    assert explained.hidden_by == ("qualifiers",)
    assert verdict(explained, "qualifiers") == (
        False,
        {"qualifiers": {}, "required": [{"region": "de"}]},
        {"qualifiers": {}},
    )
    assert fabric.explain(people.auditor, memory_id=first, run=people.run(qualifiers={"region": "de"})).visible


@pytest.mark.rule("REC-10", "CON-3")
def test_a_consent_that_ended_is_named_and_then_the_content_that_is_gone(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    memory_id = remembered(fabric, people, **PII)
    assert fabric.explain(people.run(), memory_id=memory_id).visible
    fabric.consent.revoke(people.officer, consent.consent_id)
    explained = fabric.explain(people.auditor, memory_id=memory_id, run=people.run())
    assert (explained.visibility, explained.hidden_by) == ("hidden", ("consent",))
    assert verdict(explained, "consent") == (
        False,
        {"consent_root": consent.consent_id, "classification": "PII"},
        {"sensitive": ["PII", "RESTRICTED"]},
    )
    clock.advance(hours=1)
    fabric.consent.sweep(people.tenant_id)
    explained = fabric.explain(people.auditor, memory_id=memory_id, run=people.run())
    assert explained.visibility == "tombstoned"
    assert {"consent", "content"} <= set(explained.hidden_by)
    assert verdict(explained, "content") == (False, {"tombstoned_at": clock.now}, {})
    assert explained.tombstoned_at == clock.now


@pytest.mark.rule("REC-10")
def test_what_time_hides_is_told_to_the_run_too_with_when_and_by_what(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    pack = load_pack(FRESH)
    register(fabric, people.tenant_id, pack)
    put_in_force(fabric, people.tenant_id, acme("1.0.0", may_pin=f"[{pack.ref}]"))
    begin = clock.now
    clock.advance(hours=1)
    born = clock.now
    old, gone, mortal = (
        remembered(fabric, people, predicate=name, tier=tier)
        for name, tier in (("old", "semantic"), ("gone", "semantic"), ("mortal", "episodic"))
    )
    clock.advance(hours=1)
    fabric.retract(people.reviewer, gone, reason="deprecated")
    withdrawn = clock.now
    clock.advance(days=31)
    for asker, run in ((people.run(), None), (people.auditor, people.run())):
        explained = fabric.explain(asker, memory_id=gone, run=run)
        assert (explained.visibility, explained.hidden_by) == ("retracted", ("retracted",))
        assert (explained.retracted_at, explained.retraction_reason) == (withdrawn, "deprecated")
        assert explained.retracted_by == (None if run is None else "boris"), "people's names are for people"
        passed, has, asked = verdict(explained, "retracted")
        assert (passed, has["retracted_at"], has["reason"]) == (False, withdrawn, "deprecated")
        assert asked == {"at": clock.now}
        explained = fabric.explain(asker, memory_id=mortal, run=run)
        assert (explained.visibility, explained.hidden_by) == ("expired", ("expired",))
        assert verdict(explained, "expired") == (False, {"expires_at": born + timedelta(days=30)}, {"at": clock.now})
        explained = fabric.explain(asker, memory_id=old, as_of=begin, run=run)
        assert (explained.visibility, explained.hidden_by) == ("not_yet_promoted", ("promoted",))
        assert verdict(explained, "promoted")[2] == {"at": begin}
        assert (explained.promoted_at, explained.at) == (born, begin)
    for asker, run in ((people.run(pack=pack.ref), None), (people.auditor, people.run(pack=pack.ref))):
        explained = fabric.explain(asker, memory_id=old, run=run)
        assert (explained.visibility, explained.hidden_by, explained.pack) == ("hidden", ("freshness",), pack.ref)
        assert verdict(explained, "freshness") == (
            False,
            {"promoted_at": born, "tier": "semantic"},
            {"since": clock.now - timedelta(days=7)},
        )


@pytest.mark.rule("REC-10")
def test_every_filter_that_hides_it_is_reported_not_only_the_first(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    memory_id = remembered(
        fabric,
        people,
        tier="working",
        session_id="s",
        intent_id="sales.offer",
        qualifiers={"region": "de"},
        classification="CONFIDENTIAL",
    )
    fabric.retract(people.reviewer, memory_id, reason="wrong")
    clock.advance(days=1)
    stranger = people.run("cust_2", qualifiers={"region": "fr"}, classification_allowed={"PUBLIC"})
    explained = fabric.explain(people.auditor, memory_id=memory_id, run=stranger)
    wrong = ("user", "session", "intent", "classification", "qualifiers", "retracted", "expired")
    assert explained.hidden_by == wrong
    assert explained.visibility == "retracted"


@pytest.mark.rule("REC-10")
def test_without_a_run_those_filters_are_reported_that_ask_nothing_of_one(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    memory_id = remembered(fabric, people, tier="episodic", classification="CONFIDENTIAL")
    explained = fabric.explain(people.auditor, memory_id=memory_id)
    assert (explained.visible, explained.pack, explained.returned, explained.seq) == (True, None, None, None)
    asked_of_nobody = {"consent", "content", "promoted", "retracted", "expired", "session_end", "validity"}
    assert {one.name for one in explained.filters} == asked_of_nobody
    clock.advance(days=30)
    assert fabric.explain(people.reviewer, memory_id=memory_id).hidden_by == ("expired",)


@pytest.mark.rule("REC-10", "EVT-2")
def test_an_explanation_holds_no_content(fabric: Fabric, people: People) -> None:
    memory_id = remembered(fabric, people, "aardvark", text="aardvark", evidence_refs=["tool:aardvark"])
    answer = fabric.recall(people.run(), "aardvark")
    explained = fabric.explain(people.auditor, memory_id=memory_id, recall_id=answer.recall_id)
    assert "aardvark" not in explained.model_dump_json()


# --- of a recorded recall


@pytest.mark.rule("REC-10", "REC-8")
def test_of_a_recall_it_says_what_was_returned_cut_or_narrowed(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    run, then = people.run(), clock.now
    best = remembered(fabric, people, priority=0.9)
    low = remembered(fabric, people, predicate="low", confidence=0.4)
    cut = remembered(fabric, people, predicate="cut", text="Never mind.", priority=0.0)
    aside = remembered(fabric, people, predicate="aside", tier="durable")
    sides = [promoted(fabric, people, value, predicate="dispute") for value in ("email", "phone")]
    answers = [fabric.recall(run, query, limit=1, tiers=["semantic"]) for query in (None, "email")]
    clock.advance(days=1)
    later = remembered(fabric, people, predicate="later")
    fabric.retract(people.reviewer, best, reason="wrong")
    for answer, asker in product(answers, (run, people.auditor, people.reviewer)):

        def explained(
            memory_id: str, answer: Recall = answer, asker: Principal | RunContext = asker
        ) -> tuple[str, bool | None, str | None]:
            one = fabric.explain(asker, memory_id=memory_id, recall_id=answer.recall_id)
            assert (one.recall_id, one.seq, one.pack) == (answer.recall_id, answer.seq, answer.pack)
            assert one.at == then
            return one.visibility, one.returned, one.missed

        for memory_id in (best, low, *sides):
            assert explained(memory_id) == ("visible", True, None), "as of then"
        assert explained(cut) == ("visible", False, "cut")
        assert explained(aside) == ("visible", False, "narrowed")
        assert explained(later) == ("not_yet_promoted", False, None)


@pytest.mark.rule("REC-10", "REC-6")
def test_what_was_reached_by_a_step_and_cut_is_reported_as_cut(fabric: Fabric, people: People) -> None:
    best = remembered(fabric, people, "order:o1", predicate="ordered", priority=0.9)
    cut = remembered(fabric, people, "late", entity="order:o1", predicate="state", priority=0.1)
    aside = remembered(fabric, people, "late", entity="order:o2", predicate="state", priority=0.5)
    answer = fabric.recall(people.run(), entities=[SUBJECT], hops=1, limit=1)
    assert ([record.id for record in answer.records], answer.omitted) == ([best], 1)
    missed = [
        fabric.explain(people.run(), memory_id=one, recall_id=answer.recall_id).missed for one in (best, cut, aside)
    ]
    assert missed == [None, "cut", "narrowed"]


@pytest.mark.rule("REC-10", "REC-7")
def test_a_recall_as_of_a_moment_is_explained_as_of_that_moment(
    fabric: Fabric, people: People, clock: FakeClock
) -> None:
    memory_id = remembered(fabric, people, tier="episodic")
    then = clock.now
    clock.advance(days=40)
    answer = fabric.recall(people.run(), as_of=then)
    explained = fabric.explain(people.run(), memory_id=memory_id, recall_id=answer.recall_id)
    assert (explained.visibility, explained.returned, explained.at) == ("visible", True, then)
    assert fabric.explain(people.run(), memory_id=memory_id).visibility == "expired"


@pytest.mark.rule("REC-10", "REC-8")
def test_it_says_in_which_prompts_of_the_recall_a_memory_was(fabric: Fabric, people: People) -> None:
    memory_id = remembered(fabric, people)
    first, second = (fabric.compile(people.run(), "email") for _ in range(2))
    for compiled in (first, second):
        explained = fabric.explain(people.run(), memory_id=memory_id, recall_id=compiled.recall_id)
        assert explained.prompts == (compiled.compile_id,)
    tight = fabric.compile(people.run(), "email", token_budget=5)
    assert tight.blocks == ()
    explained = fabric.explain(people.auditor, memory_id=memory_id, recall_id=tight.recall_id)
    assert (explained.returned, explained.prompts) == (True, ()), "recalled, and there was no room for it"
    bare = fabric.recall(people.run(), "email")
    assert fabric.explain(people.run(), memory_id=memory_id, recall_id=bare.recall_id).prompts == ()
