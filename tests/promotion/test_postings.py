"""The postings of a large tenant: made, kept and dropped by its size; search by words finds the same with and without."""

import random
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from muniment import Fabric
from muniment.database import vector_index
from muniment.database.address import Address
from muniment.database.packed_words import terms_in
from muniment.promotion import postings
from muniment.promotion.reindex import rebuilt
from muniment.recall import search as searching
from muniment.testing import FakeClock, People, TestServer
from tests.recall.test_large_scopes import found, opened, question, recalled, sentence, stated
from tests.security.catalogue import Connection
from tests.stories import CONSENT, remembered, run_job


@pytest.fixture
def owner(server: TestServer, fresh_database: str) -> Iterator[Connection]:
    with server.connect(fresh_database) as connection:
        yield connection


@pytest.fixture
def own(server: TestServer, fresh_database: str, clock: FakeClock) -> Iterator[Fabric]:
    with opened(server, fresh_database, clock) as fabric:
        yield fabric


@pytest.fixture(autouse=True)
def scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_index, "MADE_ABOVE", 20)
    monkeypatch.setattr(vector_index, "DROPPED_BELOW", 10)
    monkeypatch.setattr(postings, "AT_ONCE", 7)
    monkeypatch.setattr(searching, "NEAREST", 0)


def sentences(count: int, seed: int = 1) -> list[str]:
    chance = random.Random(seed)
    return [sentence(chance) for _ in range(count)]


def ran(fabric: Fabric, people: People) -> int:
    return run_job(fabric, "embed", people.tenant_id).counts["posted"]


def posted(owner: Connection, people: People) -> set[tuple[Any, ...]]:
    rows = owner.execute("SELECT memory_id, term FROM memory_terms WHERE tenant_id = %s", [people.tenant_id]).fetchall()
    assert len(set(rows)) == len(rows)
    return set(rows)


def said(owner: Connection, people: People, ids: list[str]) -> set[tuple[Any, ...]]:
    """Every word of these memories, by the packed words."""
    rows: list[Any] = owner.execute(
        "SELECT memory_id, terms FROM memory_words WHERE tenant_id = %s AND memory_id = ANY (%s)",
        [people.tenant_id, ids],
    ).fetchall()
    return {(memory_id, term) for memory_id, terms in rows for term in terms_in(terms)}


def candidates(fabric: Fabric, people: People) -> list[list[str] | None]:
    chance = random.Random(9)
    return [found(fabric, people.run(), question(chance), most_seen=5).candidates for _ in range(20)]


@pytest.mark.rule("JOB-11")
def test_postings_are_made_above_a_size_kept_down_to_another_and_dropped_below(
    own: Fabric, people: People, others: People, owner: Connection
) -> None:
    ids = stated(own, people, sentences(20))
    stated(own, others, sentences(5))
    assert (ran(own, people), posted(owner, people)) == (0, set()), "the words of twenty are read"
    ids += stated(own, people, sentences(2, seed=2))
    assert posted(owner, people) == set(), "a promotion writes none"
    assert (ran(own, people), ran(own, others)) == (22, 0)
    assert posted(owner, people) == said(owner, people, ids)
    assert posted(owner, others) == set()
    assert ran(own, people) == 0, "they are there already"
    ids += stated(own, people, sentences(3, seed=3))
    assert ran(own, people) == 3
    assert posted(owner, people) == said(owner, people, ids)
    owner.execute("DELETE FROM memory_words WHERE memory_id = ANY (%s)", [ids[:15]])
    ran(own, people)
    assert posted(owner, people), "ten are not fewer than ten"
    owner.execute("DELETE FROM memory_words WHERE memory_id = ANY (%s)", [ids[:16]])
    ran(own, people)
    assert posted(owner, people) == set()
    assert owner.execute("SELECT FROM cursors WHERE name = %s", [postings.CURSOR]).fetchall() == []


@pytest.mark.rule("REC-2", "JOB-11")
def test_search_by_words_finds_the_same_by_postings_by_words_and_by_some_of_both(
    own: Fabric, people: People, owner: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "MOST_COMMON", 4)
    stated(own, people, sentences(30))
    stated(own, people, sentences(20, seed=2), run=people.run(None))
    stated(own, people, sentences(10, seed=3), run=people.run("cust_2"))
    by_words = candidates(own, people)
    browsed = own.memories.list(people.auditor, query="copper kettle Lisbon")
    assert ran(own, people) == 60
    assert candidates(own, people) == by_words
    assert own.memories.list(people.auditor, query="copper kettle Lisbon") == browsed != []
    stated(own, people, sentences(15, seed=4))
    by_both = candidates(own, people)
    assert by_both != by_words
    assert ran(own, people) == 15
    assert candidates(own, people) == by_both
    owner.execute("DELETE FROM cursors WHERE name = %s", [postings.CURSOR])
    owner.execute("DELETE FROM memory_terms")
    assert candidates(own, people) == by_both
    ordered = [sorted(one or ()) for one in by_both]
    assert any(len(one) > 4 for one in ordered)


@pytest.mark.rule("REC-2")
def test_the_newest_with_a_word_come_first_by_postings_and_by_words(
    own: Fabric, people: People, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "MOST_COMMON", 5)
    made: list[str] = []
    for n in range(24):
        run = people.run(None if n % 2 else "cust_1")
        made += stated(own, people, [f"Quittengelee was served in room {n}."], run=run)
        clock.advance(seconds=1)

    def newest() -> list[str]:
        answer = found(own, people.run(), "quittengelee", most_seen=5)
        return sorted(answer.candidates or ())[-5:]

    for _ in range(2):
        assert newest() == sorted(made)[-5:]
        ran(own, people)
    made += stated(own, people, ["Quittengelee again.", "And quittengelee."])
    assert newest() == sorted(made)[-5:], "two by their words, three by postings"


@pytest.mark.rule("ERA-2", "CON-4")
def test_postings_go_with_the_content_that_they_are_of(own: Fabric, people: People, owner: Connection) -> None:
    stated(own, people, sentences(20))
    consent = own.consent.grant(people.officer, subject="customer:cust_1", **CONSENT)
    gone = remembered(own, people, "tea", predicate="drink", subject="customer:cust_1", classification="PII")
    assert ran(own, people) == 21
    assert {memory_id for memory_id, _ in posted(owner, people)} >= {gone}
    own.consent.revoke(people.officer, consent.consent_id)
    own.consent.sweep(people.tenant_id)
    assert gone not in {memory_id for memory_id, _ in posted(owner, people)}


@pytest.mark.rule("JOB-11")
def test_an_old_memory_that_gets_its_words_later_gets_its_postings_too(
    own: Fabric, people: People, owner: Connection
) -> None:
    ids = stated(own, people, ["Quittengelee was served.", *sentences(20)])
    ids += stated(own, people, sentences(5, seed=2))
    ran(own, people)
    whole, answers = posted(owner, people), candidates(own, people)
    for table in ("memory_words", "memory_terms"):
        owner.execute(f"DELETE FROM {table} WHERE memory_id = %s", [ids[0]])
    assert ids[0] not in (found(own, people.run(), "quittengelee", most_seen=5).candidates or ())
    assert own.reindex(people.tenant_id).memories == 1
    assert ids[0] in (found(own, people.run(), "quittengelee", most_seen=5).candidates or ())
    assert ran(own, people) == len(ids), "from that memory's sequence on"
    assert (posted(owner, people), candidates(own, people)) == (whole, answers)


@pytest.mark.rule("TIR-4")
def test_a_rebuild_of_the_durable_tier_writes_its_postings_too(
    own: Fabric, people: People, owner: Connection, server: TestServer, fresh_database: str
) -> None:
    durable = [remembered(own, people, n, predicate=f"p{n}", tier="durable") for n in range(3)]
    stated(own, people, sentences(20))
    ran(own, people)
    later = remembered(own, people, "later", predicate="later", tier="durable")
    whole = posted(owner, people)
    owner.execute("DELETE FROM memory_terms WHERE memory_id = ANY (%s)", [durable[:1]])

    async def rebuilding() -> tuple[str, ...]:
        context, address = own._fabric._context, Address.parse(server.url(fresh_database), None)
        return (await rebuilt(context, address, people.tenant_id)).repaired

    assert own._wait(rebuilding) == (durable[0],)
    assert posted(owner, people) == whole
    assert later not in {memory_id for memory_id, _ in whole}, "the job comes to it"
    assert own._wait(rebuilding) == ()


@pytest.mark.rule("JOB-11")
def test_two_runs_at_once_write_each_posting_once(
    own: Fabric, people: People, owner: Connection, server: TestServer, fresh_database: str
) -> None:
    ids = stated(own, people, sentences(40))
    address, counts = Address.parse(server.url(fresh_database), None), list[int]()

    async def one() -> None:
        counts.append(await postings.update(own._fabric._context, address, people.tenant_id))

    async def both() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one)
            tasks.start_soon(one)

    own._wait(both)
    assert sum(counts) == 40
    assert posted(owner, people) == said(owner, people, ids)


@pytest.mark.rule("REC-9")
def test_an_approximate_recall_is_replayed_the_same_when_its_postings_have_come(own: Fabric, people: People) -> None:
    stated(own, people, sentences(30))
    chance = random.Random(5)
    answers = [recalled(own, people.run(), question(chance), most_seen=5) for _ in range(8)]
    stated(own, people, sentences(10, seed=2))
    ran(own, people)
    assert all(own.replay(people.auditor, answer.recall_id).same for answer in answers)
