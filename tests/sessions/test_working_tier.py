"""The working tier: bodies come from the session store if it has them, and nothing else ever does."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any

import pytest

from muniment import Fabric, RunContext
from muniment.sessions.redis_store import RedisStore
from muniment.sessions.store import InProcess, SessionStore
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.redis_server import RedisServer, running
from tests.stories import CONSENT, remembered, submitted

SUBJECT = "customer:cust_1"
PII: dict[str, Any] = {"subject": SUBJECT, "classification": "PII"}
WORKING: dict[str, Any] = {"tier": "working", "session_id": "s"}
MICROSECOND = timedelta(microseconds=1)
OpenOn = Callable[[str | None], AbstractContextManager[Fabric]]


@pytest.fixture(scope="module")
def redis_server() -> Iterator[RedisServer]:
    with running() as server:
        yield server


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    """A server of the test's own, to be ill-treated."""
    with running() as server:
        yield server


@pytest.fixture
def open_on(server: TestServer, database: str, clock: FakeClock) -> OpenOn:
    """A fabric whose session store is at that address, or in process."""
    return lambda url: Fabric.open(server.url(database), clock=clock, master_keys=MASTER_KEYS, redis_url=url)


@pytest.fixture(params=["in process", "redis"])
def either(request: pytest.FixtureRequest, open_on: OpenOn) -> Iterator[Fabric]:
    """A fabric with either store."""
    url = None if request.param == "in process" else request.getfixturevalue("redis_server").url
    with open_on(url) as fabric:
        assert isinstance(store_of(fabric), InProcess if url is None else RedisStore)
        if isinstance(store := store_of(fabric), RedisStore):
            store._timeout = 20.0  # where no failure is meant, a busy machine must not look like one
        yield fabric


def store_of(fabric: Fabric) -> SessionStore:
    return fabric._fabric._context.sessions


def held(fabric: Fabric, people: People, *ids: str, session: str = "s") -> dict[str, bytes]:
    """What the store has of those."""
    now = fabric._fabric._context.now()
    return fabric._wait(store_of(fabric).held, people.tenant_id, session, ids, now)


def keep(fabric: Fabric, people: People, bodies: dict[str, bytes], session: str = "s") -> None:
    now = fabric._fabric._context.now()
    ends = dict.fromkeys(bodies, now + timedelta(hours=1))
    fabric._wait(store_of(fabric).keep, people.tenant_id, session, bodies, ends, now)


@pytest.fixture
def body_of(server: TestServer, database: str) -> Iterator[Callable[..., bytes]]:
    """The sealed body of a memory as PostgreSQL has it; with `spoilt` it is unreadable there from now on."""
    with server.connect(database) as owner:

        def read(memory_id: str, *, spoilt: bool = False) -> bytes:
            row: Any = owner.execute("SELECT content FROM memory_bodies WHERE memory_id = %s", [memory_id]).fetchone()
            if spoilt:
                owner.execute("UPDATE memory_bodies SET content = content || '\\x00' WHERE memory_id = %s", [memory_id])
            return bytes(row[0])

        yield read


def values(fabric: Fabric, run: RunContext, query: str | None = None) -> list[Any]:
    return [record.value for record in fabric.recall(run, query).records]


# --- filled and used


@pytest.mark.rule("TIR-3")
@pytest.mark.parametrize("query", [None, "email"])
def test_a_recall_fills_the_store_and_the_next_is_answered_from_it(
    either: Fabric, people: People, body_of: Callable[..., bytes], query: str | None
) -> None:
    run = people.run(session_id="s")
    working = remembered(either, people, "email", **WORKING)
    lasting = remembered(either, people, "letter", predicate="other")
    assert held(either, people, working, lasting) == {}, "promoting fills nothing"
    first = either.recall(run, query)
    assert held(either, people, working, lasting) == {working: body_of(working)}, (
        "sealed as it rests, and no other tier"
    )
    body_of(working, spoilt=True)
    second = either.recall(run, query)
    assert second.records == first.records, "PostgreSQL's own would not have opened"
    assert (first.degraded, second.degraded) == ((), ())
    body_of(lasting, spoilt=True)
    assert values(either, run, query) == ["email"]


@pytest.mark.rule("TIR-3", "ISO-4")
def test_what_a_store_holds_belongs_to_one_tenant_and_one_session(
    either: Fabric, people: People, others: People
) -> None:
    own = remembered(either, people, "email", **WORKING)
    theirs = remembered(either, others, "phone", **WORKING)
    elsewhere = remembered(either, people, "fax", tier="working", session_id="S")
    assert values(either, people.run(session_id="s")) == ["email"]
    assert values(either, others.run(session_id="s")) == ["phone"]
    assert values(either, people.run(session_id="S")) == ["fax"]
    assert values(either, people.run()) == values(either, people.run("cust_2", session_id="s")) == []
    assert held(either, people, own, theirs, elsewhere).keys() == {own}
    assert held(either, people, own, theirs, elsewhere, session="S").keys() == {elsewhere}
    assert held(either, others, own, theirs, elsewhere).keys() == {theirs}


@pytest.mark.rule("TIR-3")
def test_a_store_that_lost_everything_is_filled_again(open_on: OpenOn, own_redis: RedisServer, people: People) -> None:
    run = people.run(session_id="s")
    with open_on(None) as fabric:
        working = remembered(fabric, people, **WORKING)
        assert values(fabric, run) == ["email"]
    for url in (None, own_redis.url):
        with open_on(url) as fabric:
            assert held(fabric, people, working) == {}
            assert values(fabric, run) == ["email"]
            assert held(fabric, people, working).keys() == {working}


# --- what PostgreSQL says acts at once


@pytest.mark.rule("TIR-2", "TIR-5", "CON-3")
@pytest.mark.parametrize("how", ["retracted", "corrected", "expired", "revoked", "swept"])
def test_what_ended_is_gone_at_the_next_recall_whatever_the_store_holds(
    either: Fabric, people: People, clock: FakeClock, how: str
) -> None:
    run = people.run(session_id="s")
    consent = either.consent.grant(people.officer, subject=SUBJECT, **CONSENT)
    ending = remembered(either, people, "email", **WORKING, **PII)
    clock.advance(minutes=10)
    staying = remembered(either, people, "letter", predicate="other", **WORKING)
    assert sorted(values(either, run)) == ["email", "letter"]
    kept = held(either, people, ending, staying)
    assert kept.keys() == {ending, staying}
    match how:
        case "retracted":
            either.retract(people.reviewer, ending, reason="wrong")
        case "corrected":
            correction = either.correct(people.author, memory_id=ending, value="phone")
            either.queue.override(people.reviewer, submitted(correction), tier="durable")
            either.queue.approve(people.reviewer, submitted(correction))
        case "expired":
            clock.now += timedelta(minutes=50)
        case _:
            either.consent.revoke(people.officer, consent.consent_id)
            if how == "swept":
                either.consent.sweep(people.tenant_id)
    keep(either, people, kept)  # as a store that nobody told would have it
    for query in (None, "by email, phone or letter?"):
        answer = either.recall(run, query)
        shown = {record.value for record in answer.records}
        assert shown == ({"phone", "letter"} if how == "corrected" else {"letter"})
        assert answer.degraded == ()


@pytest.mark.rule("TIR-2")
def test_a_working_memory_is_gone_at_the_very_moment_it_expires(
    either: Fabric, people: People, clock: FakeClock
) -> None:
    run = people.run(session_id="s")
    remembered(either, people, **WORKING)
    clock.now += timedelta(hours=1) - MICROSECOND
    assert values(either, run) == ["email"]
    clock.now += MICROSECOND
    assert values(either, run) == []
    then = clock.now - MICROSECOND
    assert [record.value for record in either.recall(run, as_of=then).records] == ["email"], "PostgreSQL has the record"
    assert values(either, run) == []


# --- what is not ours


@pytest.mark.rule("TIR-3", "ERA-1")
@pytest.mark.parametrize("forged", ["nonsense", "nothing", "moved", "of another tenant", "cut", "changed"])
def test_what_was_forged_is_ignored_and_the_true_text_answered(
    either: Fabric, people: People, others: People, body_of: Callable[..., bytes], forged: str
) -> None:
    run = people.run(session_id="s")
    target = remembered(either, people, "email", **WORKING)
    other = remembered(either, people, "letter", predicate="other", **WORKING)
    true = body_of(target)
    put = {
        "nonsense": b"\x01" + bytes(60),
        "nothing": b"",
        "moved": body_of(other),
        "of another tenant": body_of(remembered(either, others, "evil", **WORKING)),
        "cut": true[:-1],
        "changed": true[:-1] + bytes([true[-1] ^ 1]),
    }[forged]
    keep(either, people, {target: put, other: body_of(other)})
    for _ in range(2):
        answer = either.recall(run)
        assert {record.id: record.value for record in answer.records} == {target: "email", other: "letter"}
        assert answer.degraded == ()
    assert held(either, people, target) == {target: true}, "and put right"


@pytest.mark.rule("TIR-3")
def test_a_body_nobody_asked_for_is_never_shown(either: Fabric, people: People, body_of: Callable[..., bytes]) -> None:
    hidden = remembered(either, people, "secret", **WORKING, classification="CONFIDENTIAL")
    shown = remembered(either, people, "email", predicate="other", **WORKING)
    keep(either, people, {hidden: body_of(hidden), shown: body_of(shown)})
    run = people.run(session_id="s", classification_allowed={"INTERNAL"})
    assert values(either, run) == ["email"]


# --- Redis


@pytest.mark.rule("TIR-3")
def test_processes_share_what_lies_in_redis(
    open_on: OpenOn, redis_server: RedisServer, people: People, body_of: Callable[..., bytes]
) -> None:
    run = people.run(session_id="s")
    with open_on(redis_server.url) as one, open_on(redis_server.url) as other:
        for fabric in (one, other):
            store_of(fabric)._timeout = 20.0  # type: ignore[attr-defined]
        working = remembered(one, people, **WORKING)
        assert values(one, run) == ["email"]
        body_of(working, spoilt=True)
        assert values(other, run) == ["email"]
        assert other.recall(run).degraded == ()


@pytest.mark.rule("TIR-3", "ERA-1")
def test_nothing_lies_in_redis_in_plain(open_on: OpenOn, own_redis: RedisServer, people: People) -> None:
    with open_on(own_redis.url) as fabric:
        remembered(fabric, people, "quittengelee", tier="working", session_id="a_session")
        assert values(fabric, people.run(session_id="a_session")) == ["quittengelee"]
    with own_redis.client() as outside:
        names: Any = outside.keys()
        (name,) = names
        found: Any = outside.hgetall(name)
        ((_, body),) = found.items()
        ends: Any = outside.pttl(name)
    assert 0 < ends <= 60 * 60 * 1000
    for plain in (b"quittengelee", b"a_session", people.tenant_id.encode(), b"cust_1"):
        assert plain not in name + body


@pytest.mark.rule("ERR-4", "TIR-3")
def test_without_redis_the_answer_is_right_and_says_so_and_with_it_again_all_is_well(
    open_on: OpenOn, own_redis: RedisServer, people: People
) -> None:
    run, now = people.run(session_id="s"), 1000.0
    with open_on(own_redis.url) as fabric:
        store = store_of(fabric)
        assert isinstance(store, RedisStore)
        store._monotonic = lambda: now
        working = remembered(fabric, people, **WORKING)
        whole = fabric.recall(run)
        assert (values(fabric, run), whole.degraded) == (["email"], ())
        own_redis.kill()
        for query in (None, "email"):
            answer = fabric.recall(run, query)
            assert [record.value for record in answer.records] == ["email"]
            assert answer.degraded == ("session_store",)
        assert fabric.recall(people.run()).degraded == (), "without a session nobody asks it"
        second = remembered(fabric, people, "phone", predicate="other", **WORKING)
        fabric.retract(people.reviewer, working, reason="wrong")
        answer = fabric.recall(run)
        assert [record.id for record in answer.records] == [second]
        assert answer.degraded == ("session_store",)
        own_redis.start()
        now += 5.0
        store._timeout = 20.0
        again = fabric.recall(run)
        assert ([record.id for record in again.records], again.degraded) == ([second], ())
        assert held(fabric, people, working, second).keys() == {second}
        assert fabric.replay(people.auditor, answer.recall_id).same


@pytest.mark.rule("ERR-4")
def test_a_redis_that_was_never_there_stops_no_recall(open_on: OpenOn, people: People, tmp_path: Any) -> None:
    with open_on(f"unix://{tmp_path}/none.sock") as fabric:
        remembered(fabric, people, **WORKING)
        for _ in range(2):
            answer = fabric.recall(people.run(session_id="s"), "email")
            assert [record.value for record in answer.records] == ["email"]
            assert answer.degraded == ("session_store",)
