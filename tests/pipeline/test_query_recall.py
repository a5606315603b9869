"""Recall by a query: what matters most to it first, scored by parts that the pack weighs, and recorded."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta
from threading import Event
from typing import Any
from uuid import uuid4

import numpy as np
import pytest

from muniment import Fabric
from muniment.embedding.function import FunctionEmbedder
from muniment.errors import EmbedderUnavailable, InvalidInput, TooLarge
from muniment.fabric import recollection
from muniment.model.context import RunContext
from muniment.model.recall import Recall, Record
from muniment.pack import load_pack
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.pipeline.stories import promoted, proposed, remembered

EMAIL = "Anna prefers to be contacted by email in the morning."
PARCELS = "The warehouse in Hamburg ships parcels every Tuesday."
REFUNDS = "Refunds go back to the original card within five days."
RENEWAL = "The subscription renews in January."
DOG = "Her dog is called Biscuit."
INVOICE = "Invoices carry the purchase order of the department."
JAPANESE = "\u8fd4\u54c1\u306f\u4e09\u5341\u65e5\u4ee5\u5185\u3067\u3059"
TEXTS = (EMAIL, PARCELS, REFUNDS, RENEWAL, DOG, INVOICE, JAPANESE)
PARTS = {"vector", "words", "priority", "recency", "confidence", "intent", "entity"}


def stated(fabric: Fabric, people: People, texts: Sequence[str], run: RunContext | None = None, **fields: Any) -> None:
    """Plain facts, captured by a run and approved together."""
    item = {"kind": "statement", "classification": "INTERNAL", **fields}
    fabric.capture_many(run or people.run(), [{**item, "text": text} for text in texts])
    done = fabric.consolidate(people.tenant_id)
    assert done.refusals == ()
    outcomes = fabric.queue.approve_many(people.reviewer, done.proposals)
    assert [one.status for one in outcomes] == ["promoted"] * len(texts)


def texts(answer: Recall) -> list[str]:
    return [record.text for record in answer.records]


def totals(records: Sequence[Record]) -> list[float]:
    return [record.score["total"] for record in records]


@pytest.fixture(scope="module")
def library(server: TestServer, database: str) -> Iterator[tuple[Fabric, People]]:
    """A few facts that nobody changes."""
    people = People(f"tenant_{uuid4().hex[:12]}")
    with Fabric.open(server.url(database), clock=FakeClock(), master_keys=MASTER_KEYS) as fabric:
        stated(fabric, people, TEXTS)
        yield fabric, people


# --- relevance


@pytest.mark.rule("REC-2")
@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("when are parcels shipped?", PARCELS),
        ("PARCELS", PARCELS),
        ("refunding to a card", REFUNDS),
        ("How does Anna's team contact her: by e-mail?", EMAIL),
        # no word in common: by meaning alone
        ("the name of the puppy", DOG),
        ("storage depot delivery", PARCELS),
        # no meaning that an embedder of English knows: by words alone
        ("\u8fd4\u54c1", JAPANESE),
        # hidden characters and letters that look alike
        ("re\u200bfunds", REFUNDS),
        ("p\u0430rcels", PARCELS),
        ("what happened? " * 300 + "Biscuit", DOG),
    ],
)
def test_what_matters_most_to_the_query_comes_first(library: tuple[Fabric, People], query: str, best: str) -> None:
    fabric, people = library
    answer = fabric.recall(people.run(), query)
    assert answer.records[0].text == best
    assert set(texts(answer)) == set(TEXTS), "what matters less comes after; nothing is dropped"
    assert answer.embedder == "wordllama-256@1"
    assert (answer.approximate, answer.degraded, answer.omitted) == (False, (), 0)


@pytest.mark.rule("REC-5", "REC-2")
def test_a_score_is_the_sum_of_its_parts_and_decides_the_order(library: tuple[Fabric, People]) -> None:
    fabric, people = library
    records = fabric.recall(people.run(), "refunds to the card").records
    for record in records:
        parts = {name: part for name, part in record.score.items() if name != "total"}
        assert parts.keys() == PARTS
        assert sum(parts.values()) == pytest.approx(record.score["total"], abs=1e-6)
        assert all(0.0 <= part <= 1.0 for part in parts.values())
    assert totals(records) == sorted(totals(records), reverse=True)
    assert records[0].score["vector"] > records[1].score["vector"]
    assert records[0].score["words"] > 0.5 > records[-1].score["words"] == 0.0
    assert {record.score["recency"] for record in records} == {0.05}


@pytest.mark.rule("REC-2")
def test_the_same_request_on_the_same_state_gets_the_same_answer(library: tuple[Fabric, People]) -> None:
    fabric, people = library

    def shown() -> dict[str, Any]:
        return fabric.recall(people.run(), "card and parcels").model_dump(exclude={"recall_id"})

    assert shown() == shown()


@pytest.mark.rule("REC-3")
def test_what_the_limit_cuts_is_the_least_relevant_and_is_counted(library: tuple[Fabric, People]) -> None:
    fabric, people = library
    whole = fabric.recall(people.run(), "Biscuit the dog")
    cut = fabric.recall(people.run(), "Biscuit the dog", limit=2)
    assert cut.records == whole.records[:2]
    assert (cut.omitted, whole.omitted) == (len(TEXTS) - 2, 0)


@pytest.mark.rule("REC-2")
@pytest.mark.parametrize("query", ["the of and", "?!", " ", "\u200b", "\U0001f600"])
def test_a_query_that_says_nothing_still_gets_an_answer(library: tuple[Fabric, People], query: str) -> None:
    fabric, people = library
    answer = fabric.recall(people.run(), query)
    assert set(texts(answer)) == set(TEXTS)
    assert answer.degraded == ()
    assert {record.score["words"] for record in answer.records} == {0.0}


@pytest.mark.rule("REC-2", "REC-9")
def test_a_rare_word_counts_more_than_one_that_all_have(fabric: Fabric, people: People) -> None:
    stated(fabric, people, [f"The garden shed holds {what}." for what in ("a rake", "two spades", "an old lawnmower")])
    stated(fabric, people, ["A garden path leads to the greenhouse."])
    best = fabric.recall(people.run(), "garden lawnmower").records[0]
    assert "lawnmower" in best.text
    assert fabric.recall(people.run(), "garden greenhouse").records[0].text.endswith("greenhouse.")


@pytest.mark.rule("REC-2")
def test_a_memory_is_found_by_the_month_it_was_seen(fabric: Fabric, people: People, clock: FakeClock) -> None:
    for month, text in ((1, "The meeting went well."), (2, "The meeting was short."), (3, "The meeting was moved.")):
        seen = clock.now.replace(year=2025, month=month)
        stated(fabric, people, [text], observed_at=seen)
    assert fabric.recall(people.run(), "the meeting in February").records[0].text == "The meeting was short."


# --- what the pack weighs


@pytest.mark.rule("REC-2")
def test_a_pack_with_other_weights_gives_another_order(library: tuple[Fabric, People]) -> None:
    fabric, people = library
    only = {
        name: load_pack(
            f'pack_meta: {{id: only.{name}, version: "1.0.0"}}\nmemory_layer: {{recall_policy: {{weights: '
            + "{"
            + ", ".join(f"{part}: {2.0 if part == name else 0.0}" for part in sorted(PARTS))
            + "}}}"
        )
        for name in ("vector", "words", "recency")
    }
    for pack in only.values():
        fabric.packs.register(people.admin, pack)

    def by(name: str, query: str) -> Recall:
        return fabric.recall(people.run(pack=only[name].ref), query)

    # said in none of its words
    assert by("vector", "a puppy with a name").records[0].text == DOG
    assert by("words", "the puppy Tuesday").records[0].text == PARCELS
    assert {record.score["total"] for record in by("recency", "puppy").records} == {2.0}
    for name, pack in only.items():
        answer = by(name, "a puppy on Tuesday")
        assert answer.pack == pack.ref
        assert all(record.score["total"] == record.score[name] for record in answer.records)


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


# --- bad input


@pytest.mark.rule("ERR-1")
@pytest.mark.parametrize(
    ("query", "narrowed", "field", "error"),
    [
        ("", {}, "query", InvalidInput),
        (5, {}, "query", InvalidInput),
        (b"tea", {}, "query", InvalidInput),
        ("a\x00b", {}, "query", InvalidInput),
        ("half a \ud83d pair", {}, "query", InvalidInput),
        ("x" * 8193, {}, "query", TooLarge),
        ("tea", {"limit": 0}, "limit", InvalidInput),
        ("tea", {"limit": True}, "limit", InvalidInput),
        ("tea", {"limit": "3"}, "limit", InvalidInput),
        ("tea", {"tiers": ["attic"]}, "tiers.0", InvalidInput),
        ("tea", {"classes": "preference"}, "classes", InvalidInput),
        ("tea", {"entities": ["Not one"]}, "entities.0", InvalidInput),
        ("tea", {"entities": [f"a:{n}" for n in range(257)]}, "entities", InvalidInput),
        ("tea", {"hops": 1}, "hops", InvalidInput),
        ("tea", {"hops": 3, "entities": ["a:1"]}, "hops", InvalidInput),
        ("tea", {"hops": -1, "entities": ["a:1"]}, "hops", InvalidInput),
        ("tea", {"as_of": "yesterday"}, "as_of", InvalidInput),
        ("tea", {"most_seen": 1}, "most_seen", InvalidInput),
    ],
)
def test_a_wrong_request_is_refused_by_its_field_and_not_recorded(
    library: tuple[Fabric, People],
    server: TestServer,
    database: str,
    query: Any,
    narrowed: dict[str, Any],
    field: str,
    error: type[InvalidInput],
) -> None:
    fabric, people = library

    def recorded() -> object:
        with server.connect(database) as owner:
            return owner.execute("SELECT count(*) FROM recalls WHERE tenant_id = %s", [people.tenant_id]).fetchone()

    before = recorded()
    with pytest.raises(error) as caught:
        fabric.recall(people.run(), query, **narrowed)
    assert caught.value.field == field
    assert recorded() == before


def test_a_query_of_the_largest_size_and_of_any_script_is_answered(library: tuple[Fabric, People]) -> None:
    fabric, people = library
    for query in (
        "x" * 8192,
        "tea " * 2048,
        "\u4e2d" * 8192,
        "line\nend\ttab",
        "'; DROP TABLE memories; --",
        "%s $1 :x",
    ):
        assert len(fabric.recall(people.run(), query).records) == len(TEXTS)


# --- nothing to answer with


@pytest.mark.rule("REC-1", "REC-8")
def test_a_tenant_without_memories_and_one_that_nobody_knows_get_an_empty_answer(
    fabric: Fabric, people: People, others: People
) -> None:
    fabric.capture(people.run(), kind="message", text="hello", classification="INTERNAL")
    for cast in (people, others):
        answer = fabric.recall(cast.run(), "hello")
        assert (answer.records, answer.low_confidence, answer.conflicts, answer.omitted) == ((), (), (), 0)
        assert answer.degraded == ()


# --- an embedder that fails


class Moody:
    """Where a word stands among a few; away when told."""

    def __init__(self) -> None:
        self.away = False
        self.asked = 0

    def __call__(self, texts: list[str]) -> Any:
        self.asked += 1
        if self.away:
            raise ConnectionError("no route to host")
        known = ("tea", "coffee", "train", "boat")
        return np.array([[1.0 + 9.0 * (word in text.casefold()) for word in known] for text in texts])


@pytest.mark.rule("ERR-4", "REC-2")
def test_while_the_embedder_is_away_recall_goes_on_by_words_and_priority_and_says_so(
    server: TestServer, database: str, clock: FakeClock, people: People, rows: Any
) -> None:
    mood = Moody()
    embedder = FunctionEmbedder(mood, name="moody@1", dimensions=4)
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, embedder=embedder) as fabric:
        tea = remembered(fabric, people, "tea", predicate="a", text="Tea at five.")
        train = remembered(fabric, people, "train", predicate="b", text="A train at six.", priority=0.9)
        whole = fabric.recall(people.run(), "some tea")
        assert (whole.embedder, whole.degraded) == ("moody@1", ())
        assert whole.records[0].id == tea
        mood.away = True
        answer = fabric.recall(people.run(), "some tea")
        assert (answer.embedder, answer.degraded) == (None, ("embedder",))
        assert [record.id for record in answer.records] == [tea, train]
        assert {record.score["vector"] for record in answer.records} == {0.0}
        assert answer.records[0].score["words"] > 0.0
        assert fabric.recall(people.run(), "nothing of it").records[0].id == train, "by priority"
        assert fabric.recall(people.run()).degraded == (), "without a query nobody asks it"
        asked = mood.asked
        fabric.recall(people.run())
        assert mood.asked == asked
        with pytest.raises(EmbedderUnavailable):
            fabric.propose(
                people.run(), classification="INTERNAL", write_class="statement", text="Boats leave at seven."
            )
        mood.away = False
        again = fabric.recall(people.run(), "some tea")
        assert again.records == whole.records
        assert fabric.replay(people.auditor, answer.recall_id).same, "without the vectors, as it was"
        assert fabric.replay(people.auditor, whole.recall_id).same
    recorded = {row["recall_id"]: row for row in rows("recalls")}
    assert (recorded[answer.recall_id]["embedder"], recorded[answer.recall_id]["degraded"]) == (None, ["embedder"])
    assert (recorded[whole.recall_id]["embedder"], recorded[whole.recall_id]["degraded"]) == ("moody@1", [])


@pytest.mark.rule("ERR-4")
def test_an_embedder_that_takes_too_long_is_not_waited_for(
    server: TestServer, database: str, clock: FakeClock, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, answered, stuck = Event(), Event(), False

    def place(texts: list[str]) -> Any:
        if stuck:
            asked.set()
            assert answered.wait(60)
        return np.ones((len(texts), 3))

    embedder = FunctionEmbedder(place, name="slow@1", dimensions=3)
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, embedder=embedder) as fabric:
        tea = remembered(fabric, people, "tea", predicate="a", text="Tea at five.")
        stuck = True
        monkeypatch.setattr(recollection, "PATIENCE_SECONDS", 0.05)
        answer = fabric.recall(people.run(), "some tea")
        assert asked.is_set() and not answered.is_set()
        assert ([record.id for record in answer.records], answer.degraded) == ([tea], ("embedder",))
        answered.set()


@pytest.mark.rule("ERR-4", "ISO-3")
def test_nothing_is_held_while_an_embedder_thinks(
    server: TestServer, database: str, clock: FakeClock, people: People
) -> None:
    held: list[Any] = []

    def place(texts: list[str]) -> Any:
        if texts == ["some tea"]:
            with server.connect("postgres") as watcher:
                held.append(
                    watcher.execute(
                        "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND usename = 'muniment_recall'"
                        " AND state <> 'idle'",
                        [database],
                    ).fetchone()
                )
        return np.ones((len(texts), 3))

    embedder = FunctionEmbedder(place, name="watching@1", dimensions=3)
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, embedder=embedder) as fabric:
        remembered(fabric, people, "tea", predicate="a", text="Tea at five.")
        assert fabric.recall(people.run(), "some tea").embedder == "watching@1"
    assert held == [(0,)], "a connection that waits for an embedder is one that nobody else has"


@pytest.mark.rule("REC-9", "ERR-4")
def test_a_replay_without_the_embedder_that_ranked_it_says_so(
    server: TestServer, database: str, clock: FakeClock, people: People
) -> None:
    embedder = FunctionEmbedder(Moody(), name="moody@1", dimensions=4)
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, embedder=embedder) as fabric:
        remembered(fabric, people, "boat", predicate="a", text="Boats leave late.", priority=0.1)
        remembered(fabric, people, "train", predicate="b", text="A train at six.", priority=0.9)
        answer = fabric.recall(people.run(), "a boat")
    with Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS) as fabric:
        again = fabric.recall(people.run(), "a boat")
        assert (again.embedder, again.degraded) == (None, ("embedder",)), "vectors of another are of no use"
        assert fabric.replay(people.auditor, answer.recall_id).reasons == ("embedder",)


# --- the record of it


@pytest.mark.rule("REC-8", "ERA-1")
@pytest.mark.parametrize("user", ["cust_1", "somebody_new", None])
def test_the_query_is_recorded_sealed_and_can_be_replayed(
    fabric: Fabric, people: People, clock: FakeClock, rows: Any, user: str | None
) -> None:
    stated(fabric, people, [PARCELS, DOG])
    stated(fabric, people, [REFUNDS], run=people.run(None))
    query = "Quittengelee for the dog Biscuit"
    answer = fabric.recall(people.run(user, trace_id="t1", decision_key="d1"), query, limit=2, tiers=["semantic"])
    (row,) = rows("recalls")
    told = str(row) + repr(bytes(row["query"])) + bytes(row["query"]).hex()
    for word in (query, "Quittengelee", "quittengele", "Biscuit", query.encode().hex(), b"Biscuit".hex()):
        assert word not in told
    assert (row["at"], row["seq"], row["pack"]) == (clock.now, answer.seq, "muniment.builtin@1.2.0")
    assert row["embedder"] == answer.embedder == "wordllama-256@1"
    assert row["result_ids"] == [record.id for record in answer.records]
    assert (row["omitted"], row["degraded"], row["candidates"]) == (answer.omitted, [], None)
    assert {"limit": 2, "tiers": ["semantic"], "decision_key": "d1", "trace_id": "t1"}.items() <= row["request"].items()
    clock.now += timedelta(days=1)
    replayed = fabric.replay(people.auditor, answer.recall_id)
    assert (replayed.same, replayed.reasons) == (True, ())
    assert replayed.then == replayed.now == tuple(row["result_ids"])


@pytest.mark.rule("ERA-1")
def test_a_sealed_query_that_was_moved_to_another_recall_is_not_read(
    fabric: Fabric, people: People, server: TestServer, database: str
) -> None:
    stated(fabric, people, [PARCELS, DOG])
    first, second = (fabric.recall(people.run(), query) for query in ("a dog", "the parcels"))
    assert [record.text for record in first.records] != [record.text for record in second.records]
    with server.connect(database) as owner:
        owner.execute(
            "UPDATE recalls SET query = (SELECT query FROM recalls WHERE tenant_id = %(t)s AND recall_id = %(b)s)"
            " WHERE tenant_id = %(t)s AND recall_id = %(a)s",
            {"t": people.tenant_id, "a": first.recall_id, "b": second.recall_id},
        )
    replayed = fabric.replay(people.auditor, first.recall_id)
    assert (replayed.same, replayed.reasons, replayed.now) == (False, ("query_erased",), ())
