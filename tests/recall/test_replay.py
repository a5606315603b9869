"""Replay: a recorded recall run again as of then is the same, whatever came later; and where not, it says why."""

import random
from collections.abc import Sequence
from datetime import timedelta
from itertools import product
from threading import Event
from typing import Any

import pytest

from muniment import Fabric, RunContext
from muniment.errors import MunimentError, NotFound, RoleMissing
from muniment.model.explanation import Replay
from muniment.model.recall import Recall
from muniment.pack import load_pack
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.conftest import Opener
from tests.faults.concurrency import Calls
from tests.pack_activation import acme, put_in_force, register
from tests.stories import CONSENT, promoted, proposed, remembered, submitted

SUBJECT = "customer:cust_1"
PII: dict[str, Any] = {"subject": SUBJECT, "classification": "PII"}
TALK = """parcel refund invoice harbour kettle lantern orchard tractor violin glacier carpet pigeon ladder meadow anchor
walnut compass bakery canyon drum elevator ferry garage hedge jacket kiosk late early paid open blue email"""
WORDS = TALK.split()
# So many texts of few words are not to be compared with each other: that is not what this is about.
FAR_APART = (
    "memory_layer: {contradiction: {embedders: {wordllama-256@1: {similarity: 0.99, duplicate_similarity: 0.99}}}}"
)


def ids(answer: Recall) -> tuple[str, ...]:
    return tuple(record.id for record in answer.all_records)


def stated(fabric: Fabric, people: People, texts: Sequence[str], run: RunContext) -> list[str]:
    """Plain facts, captured by a run and approved together."""
    items = [{"kind": "statement", "classification": "INTERNAL", "text": text} for text in texts]
    fabric.capture_many(run, items)
    done = fabric.consolidate(people.tenant_id)
    outcomes = fabric.queue.approve_many(people.reviewer, done.proposals)
    return [one.memory_id for one in outcomes if one.memory_id is not None]


def sentences(count: int, seed: int) -> list[str]:
    chance = random.Random(seed)
    return [f"The {' '.join(chance.sample(WORDS, 5))} of number {seed}{n}." for n in range(count)]


def recalls_of_all_shapes(fabric: Fabric, people: People, clock: FakeClock) -> list[Recall]:
    """Sixty of them: five runs, with and without a query, narrowed, along the graph, cut, as of before."""
    begin = clock.now - timedelta(days=1)
    runs = [
        people.run(),
        people.run(session_id="s", intent_id="sales.offer", decision_key="d1"),
        people.run(None),
        people.run("cust_2"),
        people.run(classification_allowed={"INTERNAL"}, qualifiers={"region": "de"}),
    ]
    around: dict[str, Any] = {"entities": [SUBJECT]}
    shapes: list[tuple[str | None, dict[str, Any]]] = [
        (None, {}),
        ("late parcel refund", {}),
        ("what about order:o1?", {"limit": 3}),
        (None, {"limit": 1}),
        (None, {"tiers": ["semantic", "working"]}),
        ("email", {"classes": ["preference"]}),
        (None, {**around}),
        (None, {**around, "hops": 1}),
        ("the state of an order", {**around, "hops": 2}),
        (None, {"as_of": begin}),
        ("blue violin", {"as_of": begin, "limit": 4}),
        ("late", {**around, "hops": 2, "as_of": begin, "tiers": ["semantic"]}),
    ]
    answers: list[Recall] = []
    for run, (query, narrowed) in product(runs, shapes):
        clock.advance(seconds=1)
        answers.append(fabric.recall(run, query, **narrowed))
    return answers


@pytest.mark.rule("REC-9", "REC-8")
def test_sixty_recalls_of_all_shapes_replay_the_same_whatever_came_later(
    under: Opener, people: People, clock: FakeClock
) -> None:
    with under(FAR_APART) as fabric:
        play_sixty_recalls(fabric, people, clock)


def play_sixty_recalls(fabric: Fabric, people: People, clock: FakeClock) -> None:
    own = stated(fabric, people, sentences(20, 1), people.run())
    shared = stated(fabric, people, sentences(10, 2), people.run(None))
    tie = remembered(fabric, people, "order:o1", predicate="ordered")
    remembered(fabric, people, "courier:k1", entity="order:o1", predicate="carried_by")
    remembered(fabric, people, "late", entity="courier:k1", predicate="state", text="The courier is late.")
    sides = [promoted(fabric, people, value) for value in ("email", "phone")]
    clock.advance(days=1)
    fleeting = remembered(fabric, people, "x", predicate="w", tier="working", session_id="s", text="Working on it.")
    remembered(fabric, people, "y", predicate="i", intent_id="sales.*", text="An offer for a violin.")
    remembered(fabric, people, "z", predicate="low", confidence=0.4, text="Perhaps a blue violin.")
    remembered(fabric, people, "q", predicate="q", qualifiers={"region": "fr"}, text="French parcels.")
    remembered(fabric, people, "c", predicate="c", classification="CONFIDENTIAL", text="A closed harbour.")
    answers = recalls_of_all_shapes(fabric, people, clock)
    shapes = {ids(answer) for answer in answers}
    assert len(answers) == 60 and len(shapes) > 25, "they differ from one another"
    assert {fleeting, *sides, tie} <= {memory_id for shape in shapes for memory_id in shape}

    def differing() -> list[Replay]:
        replays = [fabric.replay(people.auditor, answer.recall_id) for answer in answers]
        for answer, replay in zip(answers, replays, strict=True):
            assert replay.then == ids(answer)
        return [replay for replay in replays if not replay.same or replay.now != replay.then or replay.reasons]

    assert differing() == []
    clock.advance(minutes=5)
    stated(fabric, people, sentences(120, 3), people.run())
    stated(fabric, people, sentences(80, 4), people.run(None))
    for gone in (own[3], own[11], shared[2], tie, sides[0]):
        fabric.retract(people.reviewer, gone, reason="wrong")
    correction = fabric.correct(people.author, memory_id=own[5], text="It was never so.")
    fabric.queue.approve(people.reviewer, submitted(correction))
    assert differing() == []
    clock.advance(days=400)
    left = fabric.recall(people.run(session_id="s"), "parcel").records
    assert [record.tier for record in left] == ["durable"], "all that could expire has expired"
    assert differing() == []


@pytest.mark.rule("REC-9")
def test_reading_a_memory_by_its_id_is_a_recall_that_replays(fabric: Fabric, people: People, rows: Any) -> None:
    memory_id = remembered(fabric, people)
    fabric.get(people.run(), memory_id)
    with pytest.raises(NotFound):
        fabric.get(people.run("stranger"), memory_id)
    remembered(fabric, people, predicate="other")
    replays = [fabric.replay(people.auditor, row["recall_id"]) for row in rows("recalls")]
    # In the order of their ids, which says nothing within one millisecond.
    assert sorted((one.same, one.now) for one in replays) == [(True, ()), (True, (memory_id,))]


@pytest.mark.rule("REC-9", "REC-2")
def test_a_recall_that_its_decision_ordered_replays_the_same(fabric: Fabric, people: People) -> None:
    made: list[str | None] = []
    for key in ("d1", "d2"):
        fact = {"entity": "order:o1", "predicate": key, "value": "granted", "text": "It was granted."}
        item = proposed(fabric, people.run(decision_key=key), write_class="decision_outcome", **fact)
        made.append(fabric.queue.approve(people.reviewer, item.proposal_id).memory_id)
    for key, best in (("d1", made[0]), ("d2", made[1]), (None, made[1])):
        answer = fabric.recall(people.run(decision_key=key), "granted")
        assert answer.records[0].id == best
        assert fabric.replay(people.auditor, answer.recall_id).same


# --- why it is not the same


@pytest.mark.rule("REC-9", "REC-7", "CON-3")
@pytest.mark.parametrize("swept", [False, True])
@pytest.mark.parametrize("query", [None, "email"])
def test_what_lost_its_consent_is_missing_and_the_reason_is_named(
    fabric: Fabric, people: People, query: str | None, swept: bool
) -> None:
    consent = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    sensitive = remembered(fabric, people, priority=0.9, **PII)
    other = remembered(fabric, people, "email", predicate="other", text="Never mind.", priority=0.1)
    answer = fabric.recall(people.run(), query)
    assert ids(answer) == (sensitive, other)
    fabric.consent.revoke(people.officer, consent.consent_id)
    if swept:
        fabric.consent.sweep(people.tenant_id)
    replay = fabric.replay(people.auditor, answer.recall_id)
    assert (replay.same, replay.then, replay.now) == (False, (sensitive, other), (other,))
    assert [(one.memory_id, one.then, one.now, one.why) for one in replay.differences] == [
        (sensitive, 0, None, "erased" if swept else "consent"),
        (other, 1, 0, "moved"),
    ]


@pytest.mark.rule("REC-9", "REC-7")
def test_what_a_consent_hid_then_and_shows_now_is_named_too(fabric: Fabric, people: People) -> None:
    first = fabric.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    sensitive = remembered(fabric, people, **PII)
    narrow = CONSENT | {"predicates_allowed": ["phone_number"]}
    second = fabric.consent.grant(people.officer, subject=SUBJECT, supersedes=first.consent_id, **narrow)
    answer = fabric.recall(people.run())
    assert ids(answer) == ()
    fabric.consent.grant(people.officer, subject=SUBJECT, supersedes=second.consent_id, **CONSENT)
    replay = fabric.replay(people.auditor, answer.recall_id)
    assert not replay.same
    assert [(one.memory_id, one.why) for one in replay.differences] == [(sensitive, "consent")]


def clerks(number: int, labels: str) -> str:
    return (
        f'pack_meta: {{id: acme, version: "{number}.0.0"}}\n'
        f"roles: {{agent: {{}}, clerk: {{classifications_allowed: [{labels}]}}}}"
    )


@pytest.mark.rule("REC-9", "REC-7")
def test_what_the_role_may_not_see_any_more_is_missing_for_its_clearance(fabric: Fabric, people: People) -> None:
    run = people.run(role="clerk")
    wide, narrow = (load_pack(clerks(n, labels)) for n, labels in ((1, "INTERNAL, CONFIDENTIAL"), (2, "INTERNAL")))
    put_in_force(fabric, people.tenant_id, wide)
    closed = remembered(fabric, people, predicate="a", classification="CONFIDENTIAL")
    usual = remembered(fabric, people, predicate="b", priority=0.9)
    answer = fabric.recall(run)
    assert fabric.replay(people.auditor, answer.recall_id).same
    register(fabric, people.tenant_id, narrow)
    assert fabric.replay(people.auditor, answer.recall_id).same, "a draft decides nothing"
    put_in_force(fabric, people.tenant_id, narrow)
    remembered(fabric, people, predicate="c")
    replay = fabric.replay(people.auditor, answer.recall_id)
    assert replay.now == (usual,)
    assert [(one.memory_id, one.why) for one in replay.differences] == [(closed, "clearance")]


@pytest.mark.rule("REC-9", "REC-7")
@pytest.mark.parametrize("gone", ["the role", "the label"])
def test_a_role_or_a_label_that_there_is_no_more_has_no_clearance(fabric: Fabric, people: People, gone: str) -> None:
    roles = {"the role": "roles: {agent: {}}", "the label": "roles: {agent: {}, clerk: {}}"}[gone]
    labels = {"the role": "", "the label": "classifications: [{name: PUBLIC}, {name: INTERNAL}]"}[gone]
    new = load_pack(f'pack_meta: {{id: acme, version: "2.0.0"}}\n{roles}\n{labels}')
    old = load_pack(clerks(1, "INTERNAL, CONFIDENTIAL"))
    put_in_force(fabric, people.tenant_id, old)
    closed = remembered(fabric, people, predicate="a", classification="CONFIDENTIAL", priority=0.9)
    usual = remembered(fabric, people, predicate="b")
    run = people.run(role="clerk", classification_allowed={"INTERNAL", "CONFIDENTIAL"})
    answer = fabric.recall(run)
    assert ids(answer) == (closed, usual)
    put_in_force(fabric, people.tenant_id, new)
    remembered(fabric, people, predicate="c")
    replay = fabric.replay(people.auditor, answer.recall_id)
    assert replay.now == (() if gone == "the role" else (usual,))
    whys = {one.memory_id: one.why for one in replay.differences}
    assert whys[closed] == "clearance"
    result = fabric.explain(people.auditor, memory_id=closed, recall_id=answer.recall_id)
    assert (result.returned, result.hidden_by) == (True, ("classification",))


@pytest.mark.rule("REC-9", "PAC-4")
def test_a_recall_under_a_pinned_pack_replays_the_same(fabric: Fabric, people: People) -> None:
    pack = load_pack(clerks(1, "INTERNAL"))
    register(fabric, people.tenant_id, pack)
    roles = "roles: {agent: {}, clerk: {classifications_allowed: [PUBLIC, INTERNAL, CONFIDENTIAL]}}"
    put_in_force(fabric, people.tenant_id, acme("2.0.0", roles, may_pin=f"[{pack.ref}]"))
    memory_id = remembered(fabric, people)
    closed = remembered(fabric, people, predicate="a", classification="CONFIDENTIAL")
    assert closed in ids(fabric.recall(people.run(role="clerk")))
    answer = fabric.recall(people.run(role="clerk", pack=pack.ref))
    assert ids(answer) == (memory_id,)
    # Nor does it change the answer that the pin was allowed then and is not any more.
    for put in (lambda: None, lambda: put_in_force(fabric, people.tenant_id, acme("3.0.0", roles))):
        put()
        replay = fabric.replay(people.auditor, answer.recall_id)
        assert (replay.same, replay.now, replay.pack) == (True, (memory_id,), pack.ref)


@pytest.mark.rule("REC-9", "PAC-4")
def test_a_recall_under_a_pack_that_nothing_was_written_under_replays_the_same(fabric: Fabric, people: People) -> None:
    memory_id = remembered(fabric, people)
    new = put_in_force(fabric, people.tenant_id, load_pack(clerks(1, "INTERNAL")))
    answer = fabric.recall(people.run(), "email")
    assert (ids(answer), answer.pack) == ((memory_id,), new)
    assert fabric.replay(people.auditor, answer.recall_id).same
    assert fabric.explain(people.run(), memory_id=memory_id, recall_id=answer.recall_id).returned


@pytest.mark.rule("REC-9", "PAC-4")
def test_another_process_replays_a_recall_under_a_pack_that_it_was_not_started_with(
    fabric: Fabric, server: TestServer, database: str, clock: FakeClock, people: People
) -> None:
    memory_id = remembered(fabric, people)
    new = load_pack(clerks(1, "INTERNAL"))
    with Fabric.open(server.url(database), pack=new, clock=clock, master_keys=MASTER_KEYS) as later:
        put_in_force(later, people.tenant_id, new)
        answer = later.recall(people.run(), "email")
        assert answer.pack == new.ref
    replay = fabric.replay(people.auditor, answer.recall_id)
    assert (replay.same, replay.now) == (True, (memory_id,))
    assert fabric.explain(people.auditor, memory_id=memory_id, recall_id=answer.recall_id).returned


@pytest.mark.rule("REC-9", "AUD-1")
def test_recalls_amid_promotions_and_retractions_replay_the_same(
    server: TestServer, database: str, people: People
) -> None:
    answers: list[Recall] = []

    def write(fabric: Fabric, name: str) -> None:
        for n in range(8):
            made = remembered(fabric, people, n, predicate=f"{name}{n}", text=f"The {name} parcel {n} is late.")
            if n % 3 == 0:
                fabric.retract(people.reviewer, made, reason="wrong")

    def read(fabric: Fabric, writing: Event) -> None:
        while not writing.is_set():
            for query in (None, "late parcels"):
                answers.append(fabric.recall(people.run(), query))

    where: dict[str, Any] = {"pack": load_pack(f'pack_meta: {{id: acme, version: "1.0.0"}}\n{FAR_APART}')}
    where |= {"master_keys": MASTER_KEYS}
    with Fabric.open(server.url(database), **where) as one, Fabric.open(server.url(database), **where) as other:
        remembered(one, people)
        done = Event()
        readers = Calls([lambda fabric=fabric: read(fabric, done) for fabric in (one, other)])
        writers = Calls([lambda: write(one, "green"), lambda: write(other, "blue")])
        outcomes = writers.wait()
        done.set()
        assert [*outcomes, *readers.wait()] == [None] * 4
        assert len({answer.seq for answer in answers}) > 10, "they really ran side by side"
        few = answers[:: max(1, len(answers) // 100)]
        assert [one.replay(people.auditor, answer.recall_id).same for answer in few] == [True] * len(few)


# --- whose


@pytest.mark.rule("ISO-4", "REC-9")
def test_another_tenants_recall_answers_exactly_like_one_that_does_not_exist(
    fabric: Fabric, people: People, others: People
) -> None:
    remembered(fabric, people)
    remembered(fabric, others)
    theirs = fabric.recall(people.run(), "email").recall_id
    assert fabric.replay(people.auditor, theirs).same
    result: list[tuple[str, str]] = []
    for recall_id in (theirs, "rcl_0000", "rcl_%", "RCL" + theirs[3:]):
        with pytest.raises(NotFound) as caught:
            fabric.replay(others.auditor, recall_id)
        result.append((caught.value.code, str(caught.value)))
    assert set(result) == {("not_found", "recall_id: no such recall")}


@pytest.mark.rule("REC-9", "ISO-5", "AUD-3")
def test_only_an_auditor_may_replay(fabric: Fabric, people: People) -> None:
    remembered(fabric, people)
    recall_id = fabric.recall(people.run()).recall_id
    denied: list[Any] = [people.run(), people.reviewer, people.author, people.officer, people.admin, people.service]
    for asker in denied:
        with pytest.raises(RoleMissing):
            fabric.replay(asker, recall_id)
    reported = [event for event in fabric.events(people.auditor) if event.type == "memory.security"]
    assert [event.actor for event in reported] == ["bot", "boris", "olga", "petra", "ada", "importer"]
    assert fabric.replay(people.auditor, recall_id).same


@pytest.mark.rule("REC-9")
def test_a_replay_changes_nothing_and_is_no_recall(fabric: Fabric, people: People, rows: Any) -> None:
    memory_id = remembered(fabric, people)
    answer = fabric.recall(people.run(), "email")
    before = fabric.trail(people.auditor, memory_id)
    for _ in range(2):
        fabric.replay(people.auditor, answer.recall_id)
    assert fabric.trail(people.auditor, memory_id) == before
    assert len(rows("recalls")) == 1


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize("wrong", ["", None, 5, "a\x00b", "x" * 300])
def test_a_wrong_id_is_refused_by_its_field(fabric: Fabric, people: People, wrong: Any) -> None:
    with pytest.raises(MunimentError) as caught:
        fabric.replay(people.auditor, wrong)
    assert caught.value.field == "recall_id"
