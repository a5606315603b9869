"""Recall by a query: what matters most to it first, a wrong one refused, each recorded."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from muniment import Fabric
from muniment.errors import InvalidInput, TooLarge
from muniment.model.context import RunContext
from muniment.model.recall import Recall
from muniment.pack import load_pack
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.pack_activation import WITHOUT_FLOOR, acme, put_in_force, register
from tests.recall.scores import PARTS, texts, totals

EMAIL = "Anna prefers to be contacted by email in the morning."
PARCELS = "The warehouse in Hamburg ships parcels every Tuesday."
REFUNDS = "Refunds go back to the original card within five days."
RENEWAL = "The subscription renews in January."
DOG = "Her dog is called Biscuit."
INVOICE = "Invoices carry the purchase order of the department."
JAPANESE = "\u8fd4\u54c1\u306f\u4e09\u5341\u65e5\u4ee5\u5185\u3067\u3059"
TEXTS = (EMAIL, PARCELS, REFUNDS, RENEWAL, DOG, INVOICE, JAPANESE)


def stated(fabric: Fabric, people: People, texts: Sequence[str], run: RunContext | None = None, **fields: Any) -> None:
    """Plain facts, captured by a run and approved together."""
    item = {"kind": "statement", "classification": "INTERNAL", **fields}
    fabric.capture_many(run or people.run(), [{**item, "text": text} for text in texts])
    done = fabric.consolidate(people.tenant_id)
    assert done.refusals == ()
    outcomes = fabric.queue.approve_many(people.reviewer, done.proposals)
    assert [one.status for one in outcomes] == ["promoted"] * len(texts)


@pytest.fixture(scope="module")
def library(server: TestServer, database: str) -> Iterator[tuple[Fabric, People]]:
    """A few facts that nobody changes."""
    people = People(f"tenant_{uuid4().hex[:12]}")
    url, keys = server.url(database), MASTER_KEYS
    with Fabric.open(url, clock=FakeClock(), master_keys=keys, pack=WITHOUT_FLOOR) as fabric:
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
            f'pack_meta: {{id: only.{name}, version: "1.0.0"}}\nmemory_layer: {{recall_policy: {{relevance_floor: 0.0, weights: '
            + "{"
            + ", ".join(f"{part}: {2.0 if part == name else 0.0}" for part in sorted(PARTS))
            + "}}}"
        )
        for name in ("vector", "words", "recency")
    }
    for pack in only.values():
        register(fabric, people.tenant_id, pack)
    pins = f"[{', '.join(one.ref for one in only.values())}]"
    text = "memory_layer: {recall_policy: {relevance_floor: 0.0}}"
    put_in_force(fabric, people.tenant_id, acme("1.0.0", text, may_pin=pins))

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
    result = str(row) + repr(bytes(row["query"])) + bytes(row["query"]).hex()
    for word in (query, "Quittengelee", "quittengele", "Biscuit", query.encode().hex(), b"Biscuit".hex()):
        assert word not in result
    assert (row["at"], row["seq"], row["pack"]) == (clock.now, answer.seq, "muniment.builtin@1.3.0")
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
