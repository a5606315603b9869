"""A scope too large to be ranked whole: the answer is nearly the exact one, recorded with what it was chosen from."""

import random
from collections.abc import Iterator, Sequence
from typing import Any
from uuid import uuid4

import pytest

from muniment import Fabric, RunContext
from muniment.database import vector_index, vectors
from muniment.language.embedding.function import FunctionEmbedder
from muniment.model.recall import Recall
from muniment.pack import load_pack
from muniment.recall import rules
from muniment.recall import search as searching
from muniment.recall.dependencies import dependencies
from muniment.recall.recall import find, find_and_record
from muniment.recall.rules import view_of
from muniment.recall.search import Found, Request
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.stories import CONSENT, promoted, proposed, remembered, run_job

# So many texts of few words are not to be compared with each other.
PACK = load_pack(
    'pack_meta: {id: large, version: "1.0.0"}\n'
    "memory_layer: {recall_policy: {max_recalls: 50, relevance_floor: 0.0},"
    " contradiction: {embedders: {wordllama-256@1: {similarity: 0.99, duplicate_similarity: 0.99}}}}"
)
COLOURS, THINGS, DOINGS, PLACES = (
    line.split()
    for line in """
copper northern silent crooked velvet amber hollow rapid frozen gentle rusty marble golden dusty bitter
kettle harbour lantern orchard tractor violin glacier carpet pigeon ladder cathedral submarine pepper hammock volcano
hums sleeps waits travels burns sings melts wanders floats shines leaks rattles vanishes grows spins
Lisbon Oslo Nairobi Quito Hanoi Perth Dakar Minsk Lima Tunis Riga Sofia Osaka Cairo Delhi
""".strip().splitlines()
)
LARGE = 50


def sentence(chance: random.Random) -> str:
    one, other = chance.sample(THINGS, 2)
    colour, doing, place = chance.choice(COLOURS), chance.choice(DOINGS), chance.choice(PLACES)
    return f"The {colour} {one} {doing} beside the {other} in {place}."


def question(chance: random.Random) -> str:
    return f"{chance.choice(COLOURS)} {chance.choice(THINGS)} {chance.choice(DOINGS)} {chance.choice(PLACES)}"


def stated(
    fabric: Fabric, people: People, texts: Sequence[str], run: RunContext | None = None, **fields: Any
) -> list[str]:
    item = {"kind": "statement", "classification": "INTERNAL", **fields}
    fabric.capture_many(run or people.run(), [{**item, "text": text} for text in texts])
    outcomes = fabric.queue.approve_many(people.reviewer, fabric.consolidate(people.tenant_id).proposals)
    return [one.memory_id for one in outcomes if one.memory_id is not None]


def opened(server: TestServer, database: str, clock: FakeClock | None = None) -> Fabric:
    return Fabric.open(server.url(database), pack=PACK, clock=clock or FakeClock(), master_keys=MASTER_KEYS)


def found(fabric: Fabric, run: RunContext, query: str, most_seen: int = LARGE, limit: int = 10) -> Found:
    """What a recall finds where a scope is large from that many memories on."""

    async def finding() -> Found:
        context = fabric._fabric._context
        pack = await context.pack_for(run)
        async with context.transaction(run.tenant_id, "recall") as tx:
            request = Request(limit=limit, query=query, most_seen=most_seen)
            return await find(
                tx, await dependencies(context, run.tenant_id, request.query), view_of(run, pack, tx.now), pack, request
            )

    return fabric._wait(finding)


def recalled(fabric: Fabric, run: RunContext, query: str, most_seen: int = LARGE, limit: int = 10) -> Recall:
    """The same, opened and recorded."""

    async def recalling() -> Recall:
        context = fabric._fabric._context
        pack = await context.pack_for(run)
        async with context.transaction(run.tenant_id, "recall") as tx:
            request = Request(limit=limit, query=query, most_seen=most_seen)
            return await find_and_record(
                tx,
                await dependencies(context, run.tenant_id, request.query),
                run,
                view_of(run, pack, tx.now),
                pack,
                request,
            )

    return fabric._wait(recalling)


@pytest.fixture(scope="module")
def large(server: TestServer, database: str) -> Iterator[tuple[Fabric, People]]:
    """Some two hundred memories that nobody changes."""
    people, chance = People(f"tenant_{uuid4().hex[:12]}"), random.Random(1)
    with opened(server, database) as fabric:
        stated(fabric, people, [sentence(chance) for _ in range(160)])
        stated(fabric, people, [sentence(chance) for _ in range(60)], run=people.run(None))
        yield fabric, people


@pytest.fixture
def scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bounds of a large scope, scaled to two hundred memories."""
    monkeypatch.setattr(rules, "MOST_SEEN", LARGE)
    monkeypatch.setattr(searching, "MOST_COMMON", 30)
    monkeypatch.setattr(searching, "NEAREST", 30)


# --- nearly the exact answer


@pytest.mark.rule("REC-2", "REC-9")
def test_of_the_ten_best_nearly_all_are_found(large: tuple[Fabric, People], scaled: None) -> None:
    fabric, people = large
    chance, run = random.Random(2), people.run()
    met = 0
    for _ in range(50):
        query = question(chance)
        exact, near = found(fabric, run, query, most_seen=100_000), found(fabric, run, query)
        assert exact.candidates is None
        assert near.candidates is not None and len(near.candidates) < 150, "far from all of them were ranked"
        assert set(near.plain) <= set(near.candidates)
        assert near.embedder == exact.embedder == "wordllama-256@1"
        met += len(set(near.plain) & set(exact.plain))
    assert met >= 0.95 * 500


@pytest.mark.rule("REC-2")
def test_the_same_request_gets_the_same_answer_and_says_that_it_is_approximate(large: tuple[Fabric, People]) -> None:
    fabric, people = large
    one, other = (recalled(fabric, people.run(), "copper kettle in Oslo") for _ in range(2))
    assert one.approximate and not fabric.recall(people.run(), "copper kettle in Oslo").approximate
    assert one.records == other.records
    assert one.omitted == other.omitted > 0


@pytest.mark.rule("REC-2")
def test_up_to_the_bound_a_scope_is_ranked_whole(large: tuple[Fabric, People]) -> None:
    fabric, people = large
    assert found(fabric, people.run(), "kettle", most_seen=220).candidates is None
    assert found(fabric, people.run(), "kettle", most_seen=219).candidates is not None
    assert found(fabric, people.run(None), "kettle", most_seen=60).candidates is None, "an anonymous run sees fewer"
    assert found(fabric, people.run(None), "kettle", most_seen=59).candidates is not None


@pytest.mark.rule("REC-2")
def test_in_however_many_parts_vectors_are_compared_the_scores_are_the_same(
    large: tuple[Fabric, People], monkeypatch: pytest.MonkeyPatch
) -> None:
    fabric, people = large
    chance = random.Random(3)
    for _ in range(10):
        query = question(chance)
        exact = found(fabric, people.run(), query, most_seen=100_000)
        monkeypatch.setattr(vectors, "CHUNK", 7)
        assert found(fabric, people.run(), query, most_seen=100_000) == exact
        monkeypatch.undo()


@pytest.mark.rule("REC-2", "REC-1")
def test_a_rare_word_is_found_however_far_its_text_lies(server: TestServer, database: str, people: People) -> None:
    chance = random.Random(4)
    with opened(server, database) as fabric:
        stated(fabric, people, [sentence(chance) for _ in range(30)])
        (rare,) = stated(fabric, people, ["Quittengelee was served to the board with the minutes of nine meetings."])
        stated(fabric, people, [sentence(chance) for _ in range(30)])
        assert found(fabric, people.run(), "who had quittengelee?", most_seen=20).plain[0] == rare


# --- filters, conflicts, narrowing hold there too


@pytest.mark.rule("REC-1", "REC-10")
def test_what_is_hidden_is_neither_found_nor_among_the_candidates(
    server: TestServer, database: str, people: People, others: People
) -> None:
    chance = random.Random(5)
    texts = [sentence(chance) for _ in range(12)]
    with opened(server, database) as fabric:
        consent = fabric.consent.grant(people.officer, subject="customer:c9", **CONSENT)
        own = stated(fabric, people, texts)
        hidden = stated(fabric, people, texts, run=people.run("cust_2"))
        hidden += stated(fabric, people, texts[:4], run=people.run("cust_2"), classification="CONFIDENTIAL")
        sensitive = stated(fabric, people, ["A velvet volcano."], subject="customer:c9", classification="PII")
        hidden += stated(fabric, others, texts[:4]) + sensitive
        retracted = own.pop()
        fabric.retract(people.reviewer, retracted, reason="wrong")
        fabric.consent.revoke(people.officer, consent.consent_id)
        answer = found(fabric, people.run(), " ".join(texts)[:4000], most_seen=5, limit=50)
        assert answer.candidates is not None
        assert set(answer.candidates) == set(answer.plain) == set(own)
        assert not {*hidden, retracted} & set(answer.ids)


@pytest.mark.rule("REC-4", "CTR-6")
def test_a_conflict_is_whole_even_where_one_side_was_not_among_the_candidates(
    server: TestServer, database: str, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(server, database) as fabric:
        one = promoted(fabric, people, "a", predicate="p", text="The kettle hums.")
        other = promoted(fabric, people, "b", predicate="p", text="Nothing of the kind.")
        plain = remembered(fabric, people, "c", predicate="q", text="A lantern shines.")
        monkeypatch.setattr(searching, "NEAREST", 1)
        answer = recalled(fabric, people.run(), "the kettle hums", most_seen=1)
        (conflict,) = answer.conflicts
        assert {record.id for record in conflict.records} == {one, other}
        assert plain not in {record.id for record in answer.all_records}
        assert answer.degraded == ()
        assert fabric.replay(people.auditor, answer.recall_id).same


@pytest.mark.rule("REC-4", "REC-10")
def test_where_a_run_sees_one_side_only_that_side_is_a_plain_record(
    server: TestServer, database: str, people: People
) -> None:
    with opened(server, database) as fabric:
        seen = promoted(fabric, people, "a", predicate="p", text="The kettle hums.")
        hidden = promoted(
            fabric, people, "b", predicate="p", text="The kettle is silent.", classification="CONFIDENTIAL"
        )
        remembered(fabric, people, "c", predicate="q", text="A lantern shines.")
        allowed = people.run(classification_allowed={"INTERNAL"})
        for run, sets in ((people.run(), 1), (allowed, 0)):
            answer = found(fabric, run, "the kettle hums", most_seen=1)
            assert answer.candidates is not None
            assert len(answer.sets) == sets
            assert (seen in answer.plain) == (sets == 0)
        assert hidden not in found(fabric, allowed, "the silent kettle", most_seen=1).ids


@pytest.mark.rule("REC-6")
def test_narrowed_it_finds_what_is_asked_for_however_much_else_is_nearer(
    large: tuple[Fabric, People], people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    fabric, _ = large
    monkeypatch.setattr(searching, "NEAREST", 3)
    stated(fabric, people, [f"The copper kettle hums in {place}." for place in PLACES])
    wanted = remembered(fabric, people, "far", predicate="p", text="A submarine.", tier="durable")

    async def narrowed() -> Found:
        context, run = fabric._fabric._context, people.run()
        async with context.transaction(run.tenant_id, "recall") as tx:
            view = view_of(run, PACK, tx.now, tiers=["durable"])
            request = Request(limit=5, query="the copper kettle", most_seen=5)
            return await find(tx, await dependencies(context, run.tenant_id, request.query), view, PACK, request)

    answer = fabric._wait(narrowed)
    assert (answer.plain, answer.candidates) == ([wanted], [wanted])


@pytest.mark.rule("REC-2")
def test_the_vector_index_gives_a_user_its_own_however_many_of_others_lie_nearer(
    server: TestServer, fresh_database: str, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So few vectors would be sorted: here the index is the only way.
    with server.connect("postgres") as owner:
        owner.execute(f"ALTER DATABASE {fresh_database} SET enable_sort = off")
    chance = random.Random(6)
    with opened(server, fresh_database) as fabric:
        near = [f"The copper kettle {chance.choice(DOINGS)} in {chance.choice(PLACES)} at {n}." for n in range(90)]
        stated(fabric, people, near, run=people.run("cust_2"))
        own = stated(fabric, people, [sentence(chance) for _ in range(20)])
        monkeypatch.setattr(vector_index, "MADE_ABOVE", 100)
        assert run_job(fabric, "embed", people.tenant_id).counts["indexes"] == 1
        monkeypatch.setattr(searching, "NEAREST", 20)
        answer = found(fabric, people.run(), "copperware", most_seen=5, limit=20)
        assert set(answer.candidates or ()) == set(own)


@pytest.mark.rule("ERR-4")
def test_any_other_embedder_and_none_at_all_search_a_large_scope_too(
    server: TestServer, database: str, people: People
) -> None:
    away = False

    def place(texts: list[str]) -> Any:
        if away:
            raise ConnectionError
        return [[1.0 + 9.0 * (word in text) for word in ("kettle", "lantern", "violin")] for text in texts]

    embedder = FunctionEmbedder(place, name="three@1", dimensions=3)
    where: dict[str, Any] = {"pack": PACK, "clock": FakeClock(), "master_keys": MASTER_KEYS, "embedder": embedder}
    with Fabric.open(server.url(database), **where) as fabric:
        ids = [
            remembered(fabric, people, n, predicate=f"p{n}", text=text)
            for n, text in enumerate(("A kettle.", "A lantern.", "A violin."))
        ]
        answer = recalled(fabric, people.run(), "which violin?", most_seen=1)
        assert (answer.records[0].id, answer.embedder, answer.approximate) == (ids[2], "three@1", True)
        away = True
        degraded = recalled(fabric, people.run(), "which violin?", most_seen=1)
        assert ([record.id for record in degraded.records], degraded.degraded) == ([ids[2]], ("embedder",))
        away = False
        for one in (answer, degraded):
            assert fabric.replay(people.auditor, one.recall_id).same


# --- recorded and replayed


@pytest.mark.rule("REC-9", "REC-8")
def test_the_record_keeps_its_candidates_and_a_replay_ranks_those_whatever_came_later(
    server: TestServer,
    database: str,
    people: People,
    clock: FakeClock,
    rows: Any,
    scaled: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chance, run = random.Random(7), people.run()
    with opened(server, database, clock) as fabric:
        own = stated(fabric, people, [sentence(chance) for _ in range(50)])
        answers = [recalled(fabric, run, question(chance), most_seen=20) for _ in range(12)]
        recorded = {row["recall_id"]: row for row in rows("recalls")}
        for answer in answers:
            row = recorded[answer.recall_id]
            assert set(row["result_ids"]) <= set(row["candidates"]) <= set(own)
            assert row["candidates"] == sorted(row["candidates"])
            assert row["request"]["most_seen"] == 20

        def replayed() -> list[bool]:
            return [fabric.replay(people.auditor, answer.recall_id).same for answer in answers]

        assert all(replayed())
        # Those recorded are ranked, and no new search decides: it would find one alone.
        monkeypatch.setattr(searching, "NEAREST", 1)
        assert all(replayed())
        clock.advance(days=1)
        stated(fabric, people, [sentence(chance) for _ in range(50)])
        for gone in own[::7]:
            fabric.retract(people.reviewer, gone, reason="wrong")
        assert all(replayed())
        clock.advance(days=400)
        assert all(replayed())


@pytest.mark.rule("REC-9", "REC-7")
def test_a_candidate_that_lost_its_consent_is_missing_from_the_replay(
    server: TestServer, database: str, people: People
) -> None:
    with opened(server, database) as fabric:
        consent = fabric.consent.grant(people.officer, subject="customer:c9", **CONSENT)
        item = proposed(
            fabric,
            people.run(),
            write_class="statement",
            text="The kettle hums.",
            subject="customer:c9",
            classification="PII",
        )
        fabric.queue.approve(people.reviewer, item.proposal_id)
        (other,) = stated(fabric, people, ["A kettle."])
        answer = recalled(fabric, people.run(), "kettle", most_seen=1)
        fabric.consent.revoke(people.officer, consent.consent_id)
        replay = fabric.replay(people.auditor, answer.recall_id)
        assert (replay.same, replay.now) == (False, (other,))
        assert "consent" in {one.why for one in replay.differences}
