"""The session store, in process and against a real Redis: fast when it is there, and nothing is lost when it is not."""

import asyncio
import logging
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import pytest

from muniment.errors import InvalidInput
from muniment.testing.clock import START
from muniment.tiers.redis_store import RedisStore, session_key
from muniment.tiers.working import (
    LARGEST_BODY,
    LARGEST_SESSION,
    MOST_BODIES,
    InProcess,
    SessionStore,
    session_store,
)
from tests.redis_server import RedisServer, running

NOW = START
SOON = NOW + timedelta(minutes=30)
DAY = 24 * 60 * 60 * 1000

# Where no failure is meant, a busy machine must not look like one.
PATIENT = 20.0

T = TypeVar("T")
Make = Callable[[], SessionStore]


class Ticks:
    """A monotonic clock that moves when told."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    with running() as server:
        yield server


@pytest.fixture
def own_server() -> Iterator[RedisServer]:
    """A server of the test's own, to be ill-treated."""
    with running() as server:
        yield server


@pytest.fixture(params=["in process", "redis"])
def make(request: pytest.FixtureRequest) -> Make:
    """Either store."""
    if request.param == "in process":
        return InProcess
    url = request.getfixturevalue("redis_server").url
    return lambda: RedisStore(url, timeout=PATIENT)


@pytest.fixture
def session() -> str:
    """A session of the test's own, as the server is shared."""
    return f"session_{uuid4().hex}"


@asynccontextmanager
async def opened(store: SessionStore) -> AsyncGenerator[SessionStore]:
    try:
        yield store
    finally:
        await store.close()


def play(store: SessionStore, story: Callable[[SessionStore], Coroutine[Any, Any, T]]) -> T:
    async def whole() -> T:
        async with opened(store):
            return await story(store)

    return asyncio.run(whole())


async def keep(store: SessionStore, tenant: str, session: str, bodies: dict[str, bytes], ends_at: Any = SOON) -> None:
    await store.keep(tenant, session, bodies, dict.fromkeys(bodies, ends_at), NOW)


def many(count: int, size: int = 10, prefix: str = "pm") -> dict[str, bytes]:
    return {f"{prefix}_{n}": n.to_bytes(8, "big").ljust(size, b".") for n in range(count)}


# ---- what both promise ----


@pytest.mark.rule("TIR-3")
def test_what_was_kept_is_held_byte_for_byte_and_the_rest_is_missing(make: Make, session: str) -> None:
    async def story(store: SessionStore) -> None:
        bodies = {"pm_1": bytes(range(256)), "pm_2": b"", "pm_3": b"\r\n$-1\r\n*0\r\n", "pm_\u00e9 \u4e2d": b"4"}
        await keep(store, "acme", session, bodies)
        assert await store.held("acme", session, ["pm_9", *bodies], NOW) == bodies
        assert await store.held("acme", session, ["pm_2"], NOW) == {"pm_2": b""}
        assert await store.held("acme", session, ["pm_9"], NOW) == {}
        assert await store.held("acme", session, [], NOW) == {}
        await keep(store, "acme", session, {"pm_1": b"sealed anew"})
        assert await store.held("acme", session, ["pm_1", "pm_3"], NOW) == {
            "pm_1": b"sealed anew",
            "pm_3": bodies["pm_3"],
        }
        assert not store.away

    play(make(), story)


@pytest.mark.rule("ERA-3", "TIR-5")
def test_what_is_forgotten_is_gone_and_the_rest_of_the_session_stays(make: Make, session: str) -> None:
    async def story(store: SessionStore) -> None:
        await keep(store, "acme", session, {"pm_1": b"1", "pm_2": b"2", "pm_3": b"3"})
        await store.forget("acme", session, ["pm_1", "pm_3", "pm_9"])
        assert await store.held("acme", session, ["pm_1", "pm_2", "pm_3"], NOW) == {"pm_2": b"2"}
        await store.forget("acme", session, [])
        await store.forget("acme", session, ["pm_2"])
        await store.forget("acme", f"{session} never was", ["pm_2"])
        assert await store.held("acme", session, ["pm_2"], NOW) == {}
        assert not store.away

    play(make(), story)


# Pairs of tenant and session that a careless key would take for one another.
NEAR = [
    ("a", "bc"),
    ("ab", "c"),
    ("", "abc"),
    ("abc", ""),
    ("a:b", "c"),
    ("a", "b:c"),
    ("A", "bc"),
    ("a", "BC"),
    ("a", "bc "),
    ("a\x00b", "c"),
    ("a", "b\x00c"),
    ("a*", "bc"),
    ("a%", "bc"),
    ("\u00e9", "x"),
    ("e\u0301", "x"),
    ("\x00\x00\x00\x00\x00\x00\x00\x01a", "x"),
    ("user_1", "x"),
    ("user_10", "x"),
    ("user_1", "0x"),
]


@pytest.mark.rule("ISO-1", "ISO-4")
def test_no_two_sessions_see_each_other_however_alike_their_names(make: Make, session: str) -> None:
    async def story(store: SessionStore) -> None:
        places = [(tenant, f"{name}{session}") for tenant, name in NEAR]
        places += [(f"{session}{tenant}", name) for tenant, name in NEAR]
        for n, (tenant, name) in enumerate(places):
            await keep(store, tenant, name, {"pm_1": b"%d" % n, f"pm_only_{n}": b"mine"})
        everything = ["pm_1", *(f"pm_only_{n}" for n in range(len(places)))]
        for n, (tenant, name) in enumerate(places):
            held = await store.held(tenant, name, everything, NOW)
            assert held == {"pm_1": b"%d" % n, f"pm_only_{n}": b"mine"}
        await store.forget(*places[0], everything)
        assert [bool(await store.held(*place, everything, NOW)) for place in places] == [False] + [True] * (
            len(places) - 1
        )

    play(make(), story)


@pytest.mark.rule("ISO-4")
def test_a_session_name_in_redis_tells_where_the_tenant_ends() -> None:
    keys = {session_key(tenant, session) for tenant, session in NEAR}
    assert len(keys) == len(NEAR)
    assert all(len(key) == len("muniment:") + 64 and key.startswith(b"muniment:") for key in keys)


@pytest.mark.rule("ISO-4")
def test_memory_ids_are_compared_byte_for_byte(make: Make, session: str) -> None:
    async def story(store: SessionStore) -> None:
        await keep(store, "acme", session, {"pm_1": b"1", "pm_10": b"10"})
        assert await store.held("acme", session, ["PM_1", "pm_", "pm_*", "pm_1 ", "pm%", ""], NOW) == {}

    play(make(), story)


@pytest.mark.rule("TIR-2")
def test_what_has_ended_is_not_kept(make: Make, session: str) -> None:
    async def story(store: SessionStore) -> None:
        bodies = {"past": b"1", "now": b"2", "future": b"3"}
        ends = {"past": NOW - timedelta(days=1), "now": NOW, "future": NOW + timedelta(seconds=60)}
        await store.keep("acme", session, bodies, ends, NOW)
        assert await store.held("acme", session, list(bodies), NOW - timedelta(days=2)) == {"future": b"3"}

    play(make(), story)


def test_bodies_that_are_too_large_are_not_kept_and_the_others_are(make: Make, session: str) -> None:
    async def story(store: SessionStore) -> None:
        bodies = {
            "huge": bytes(50 * LARGEST_BODY),
            "over": bytes(LARGEST_BODY + 1),
            "at": bytes(LARGEST_BODY),
            "x": b"x",
        }
        await keep(store, "acme", session, bodies)
        assert set(await store.held("acme", session, list(bodies), NOW)) == {"at", "x"}
        assert not store.away

    play(make(), story)


@pytest.mark.rule("ISO-3")
@pytest.mark.parametrize("size", [10, LARGEST_BODY])
def test_a_session_is_bounded_in_number_and_bytes_and_the_newest_are_in_it(make: Make, session: str, size: int) -> None:
    async def story(store: SessionStore) -> None:
        first, later = many(2 * MOST_BODIES if size == 10 else 40, size), many(3, size, "later")
        await keep(store, "acme", session, first)
        held = await store.held("acme", session, list(first), NOW)
        assert 0 < len(held) <= MOST_BODIES and sum(map(len, held.values())) <= LARGEST_SESSION
        for memory_id, body in later.items():
            await keep(store, "acme", session, {memory_id: body})
        held = await store.held("acme", session, [*first, *later], NOW)
        assert later.items() <= held.items()
        assert len(held) <= MOST_BODIES and sum(map(len, held.values())) <= LARGEST_SESSION
        assert not store.away

    play(make(), story)


def test_many_tasks_use_one_store_at_once_and_none_gets_what_is_another_s(make: Make, session: str) -> None:
    most = at_once = 0

    async def story(store: SessionStore) -> None:
        async def work(n: int) -> None:
            nonlocal most, at_once
            at_once += 1
            most = max(most, at_once)
            place, mine = (f"tenant_{n % 7}", f"{session}_{n}"), {f"pm_{n}": b"%d" % n, "pm_x": b"x%d" % n}
            for _ in range(3):
                await keep(store, *place, mine)
                assert await store.held(*place, list(mine), NOW) == mine
            await store.forget(*place, ["pm_x"])
            assert await store.held(*place, list(mine), NOW) == {f"pm_{n}": b"%d" % n}
            at_once -= 1

        await asyncio.gather(*(work(n) for n in range(200)))
        assert not store.away

    play(make(), story)
    assert most > 1 or make is InProcess


def test_a_closed_store_holds_nothing_and_may_be_closed_again(make: Make, session: str) -> None:
    async def story(store: SessionStore) -> None:
        await keep(store, "acme", session, {"pm_1": b"1"})
        await store.close()
        await store.close()
        await keep(store, "acme", session, {"pm_2": b"2"})
        assert await store.held("acme", session, ["pm_1", "pm_2"], NOW) == {}
        await store.forget("acme", session, ["pm_1"])

    play(make(), story)
    asyncio.run(make().close())  # never used


def test_a_body_without_an_expiry_is_the_caller_s_mistake(make: Make, session: str) -> None:
    async def story(store: SessionStore) -> None:
        with pytest.raises(KeyError):
            await store.keep("acme", session, {"pm_1": b"1"}, {}, NOW)

    play(make(), story)


# ---- in process ----


@pytest.mark.rule("TIR-2")
def test_in_process_a_body_ends_at_its_expiry_by_the_clock_it_is_given() -> None:
    async def story(store: SessionStore) -> None:
        ends = {"pm_1": NOW + timedelta(seconds=10), "pm_2": NOW + timedelta(seconds=20)}
        await store.keep("acme", "s", {"pm_1": b"1", "pm_2": b"2"}, ends, NOW)
        assert set(await store.held("acme", "s", ["pm_1", "pm_2"], NOW + timedelta(seconds=9.999))) == {"pm_1", "pm_2"}
        assert set(await store.held("acme", "s", ["pm_1", "pm_2"], NOW + timedelta(seconds=10))) == {"pm_2"}
        assert await store.held("acme", "s", ["pm_1", "pm_2"], NOW + timedelta(seconds=20)) == {}
        assert isinstance(store, InProcess) and store.size == 0

    play(InProcess(), story)


def test_in_process_the_session_that_was_idle_longest_makes_room() -> None:
    async def story(store: SessionStore) -> None:
        for name in ("first", "second", "third"):
            await keep(store, "acme", name, {"pm_1": bytes(2500)})
        assert await store.held("acme", "first", ["pm_1"], NOW)
        await keep(store, "acme", "fourth", {"pm_1": bytes(2500)})
        left = [
            name for name in ("first", "second", "third", "fourth") if await store.held("acme", name, ["pm_1"], NOW)
        ]
        assert left == ["first", "third", "fourth"]

    play(InProcess(max_bytes=10_000), story)


def test_in_process_memory_is_bounded_whatever_comes() -> None:
    async def story(store: SessionStore) -> None:
        assert isinstance(store, InProcess)
        for n in range(300):
            # one large session, many small ones, empty bodies, the same body again, larger than all there is
            await keep(store, "acme", "large", {f"pm_{n}": bytes(400)})
            await keep(store, f"tenant_{n}", "s", {"pm_1": b"" if n % 2 else bytes(n)})
            await keep(store, "acme", "again", {"pm_1": bytes(n)})
            await keep(store, "acme", "too large", {"pm_1": bytes(10_001)})
            assert 0 < store.size <= 10_000
        await keep(store, "acme", "large", {"pm_new": bytes(9600)})
        assert await store.held("acme", "large", ["pm_new", "pm_299"], NOW) == {"pm_new": bytes(9600)}
        await store.forget("acme", "large", ["pm_new"])
        assert store.size == 0
        await keep(store, "acme", "again", {"pm_1": bytes(10)})
        once = store.size
        for size in (500, 20, 10):
            await keep(store, "acme", "again", {"pm_1": bytes(size)})
        assert store.size == once

    play(InProcess(max_bytes=10_000), story)


# ---- in Redis ----


@pytest.mark.rule("TIR-3")
def test_two_processes_share_what_is_in_redis(redis_server: RedisServer, session: str) -> None:
    async def story(one: SessionStore) -> None:
        async with opened(RedisStore(redis_server.url, timeout=PATIENT)) as other:
            await keep(one, "acme", session, {"pm_1": b"1"})
            assert await other.held("acme", session, ["pm_1"], NOW) == {"pm_1": b"1"}
            await other.forget("acme", session, ["pm_1"])
            assert await one.held("acme", session, ["pm_1"], NOW) == {}

    play(RedisStore(redis_server.url, timeout=PATIENT), story)


@pytest.mark.rule("TIR-2")
def test_a_session_in_redis_ends_with_its_last_body_and_within_a_day(redis_server: RedisServer, session: str) -> None:
    async def story(store: SessionStore) -> None:
        with redis_server.client() as outside:

            def left() -> Any:
                return outside.pttl(session_key("acme", session))

            minutes = {"pm_1": NOW + timedelta(minutes=5), "pm_2": NOW + timedelta(minutes=30), "pm_3": NOW}
            await store.keep("acme", session, dict.fromkeys(minutes, b"x"), minutes, NOW)
            assert 29 * 60_000 < left() <= 30 * 60_000
            # a shorter one does not take the longer one with it
            await keep(store, "acme", session, {"pm_4": b"4"}, NOW + timedelta(seconds=1))
            assert 29 * 60_000 < left() <= 30 * 60_000
            await keep(store, "acme", session, {"pm_5": b"5"}, NOW + timedelta(days=400))
            assert DAY - 60_000 < left() <= DAY
            # nor does it stay when somebody took the end away
            outside.persist(session_key("acme", session))
            await keep(store, "acme", session, {"pm_6": b"6"})
            assert 29 * 60_000 < left() <= 30 * 60_000

    play(RedisStore(redis_server.url, timeout=PATIENT), story)


def test_a_body_with_hardly_any_time_left_does_not_stay(redis_server: RedisServer, session: str) -> None:
    async def story(store: SessionStore) -> None:
        await keep(store, "acme", session, {"pm_1": b"1"}, NOW + timedelta(microseconds=1))
        give_up_at = time.monotonic() + PATIENT
        while await store.held("acme", session, ["pm_1"], NOW):
            assert time.monotonic() < give_up_at
        assert not store.away

    play(RedisStore(redis_server.url, timeout=PATIENT), story)


@pytest.mark.rule("ERA-1", "TIR-3")
def test_redis_holds_nothing_but_the_sealed_bodies_and_their_ids(redis_server: RedisServer, session: str) -> None:
    async def story(store: SessionStore) -> None:
        await keep(store, "tenant of note", session, {"pm_1": b"sealed"})

    play(RedisStore(redis_server.url, timeout=PATIENT), story)
    with redis_server.client() as outside:
        assert outside.hgetall(session_key("tenant of note", session)) == {b"pm_1": b"sealed"}
        names: set[Any] = set(outside.scan_iter())
    assert all(name.startswith(b"muniment:") for name in names)
    assert not [name for name in names if b"tenant" in name or session.encode() in name]


def test_each_call_is_one_round_trip(redis_server: RedisServer, session: str) -> None:
    pieces: list[bytes] = []

    async def pump(source: asyncio.StreamReader, target: asyncio.StreamWriter, seen: list[bytes]) -> None:
        while passed := await source.read(1 << 20):
            seen.append(passed)
            target.write(passed)
            await target.drain()
        target.close()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(str(redis_server.socket))
        await asyncio.gather(pump(reader, back, pieces), pump(there, writer, []))

    async def counted(store: SessionStore) -> list[int]:
        await store.held("acme", session, ["pm_1"], NOW)
        counts: list[int] = []
        for call in (
            keep(store, "acme", session, {"pm_1": b"1", "pm_2": b"2"}),
            store.held("acme", session, ["pm_1", "pm_2"], NOW),
            store.forget("acme", session, ["pm_1", "pm_2"]),
            store.held("acme", session, [], NOW),
            keep(store, "acme", session, {}),
            store.forget("acme", session, []),
        ):
            before = len(pieces)
            await call
            counts.append(len(pieces) - before)
        assert not store.away
        return counts

    async def story() -> list[int]:
        async with await asyncio.start_server(pass_on, "127.0.0.1", 0) as proxy:
            port = proxy.sockets[0].getsockname()[1]
            async with opened(RedisStore(f"redis://127.0.0.1:{port}/0", timeout=PATIENT)) as store:
                return await counted(store)

    assert asyncio.run(story()) == [1, 1, 1, 0, 0, 0]


@pytest.mark.rule("ERR-4")
@pytest.mark.parametrize("kind", ["string", "list", "set"])
def test_another_type_under_the_name_is_a_miss_and_replaced_and_nobody_else_notices(
    redis_server: RedisServer, session: str, kind: str
) -> None:
    async def story(store: SessionStore) -> None:
        key = session_key("acme", session)
        with redis_server.client() as outside:
            {"string": outside.set, "list": outside.rpush, "set": outside.sadd}[kind](key, b"something")
        await store.forget("acme", session, ["pm_1"])
        assert await store.held("acme", session, ["pm_1"], NOW) == {}
        assert not store.away
        await keep(store, "acme", session, {"pm_1": b"1"})
        assert await store.held("acme", session, ["pm_1"], NOW) == {"pm_1": b"1"}

    play(RedisStore(redis_server.url, timeout=PATIENT), story)


# ---- Redis away ----


@pytest.mark.rule("ERR-4", "TIR-3")
def test_killed_and_started_again_empty_it_is_away_for_a_pause_and_then_filled_again(
    own_server: RedisServer, session: str
) -> None:
    ticks = Ticks()

    async def story(store: SessionStore) -> None:
        await keep(store, "acme", session, {"pm_1": b"1"})
        # several connections, all of which die
        await asyncio.gather(*(store.held("acme", session, ["pm_1"], NOW) for _ in range(10)))
        own_server.kill()
        started = time.monotonic()
        assert await store.held("acme", session, ["pm_1"], NOW) == {}
        assert store.away
        own_server.start()
        # not asked within the pause
        ticks.now += 4.999
        assert await store.held("acme", session, ["pm_1"], NOW) == {}
        await keep(store, "acme", session, {"pm_2": b"2"})
        await store.forget("acme", session, ["pm_2"])
        assert store.away
        with own_server.client() as outside:
            assert outside.dbsize() == 0
        ticks.now += 0.001
        assert await store.held("acme", session, ["pm_1"], NOW) == {}
        assert not store.away
        await keep(store, "acme", session, {"pm_1": b"1"})
        held = await asyncio.gather(*(store.held("acme", session, ["pm_1"], NOW) for _ in range(20)))
        assert held == [{"pm_1": b"1"}] * 20
        assert not store.away
        assert time.monotonic() - started < PATIENT

    play(RedisStore(own_server.url, timeout=PATIENT, monotonic=ticks), story)


@pytest.mark.rule("ERR-4")
def test_killed_while_it_is_asked_no_call_raises(own_server: RedisServer, session: str) -> None:
    async def story(store: SessionStore) -> None:
        mine = many(50, 1000)
        await keep(store, "acme", session, mine)
        answered = asyncio.Event()

        async def ask() -> None:
            while not store.away:
                held = await store.held("acme", session, list(mine), NOW)
                assert held in (mine, {})
                if held:
                    answered.set()
                await keep(store, "acme", session, mine)
                await store.forget("acme", session, ["pm_999"])

        asking = [asyncio.create_task(ask()) for _ in range(20)]
        await answered.wait()
        own_server.freeze()
        # they come to wait for an answer that does not come
        for _ in range(1000):
            await asyncio.sleep(0)
        assert not any(one.done() for one in asking)
        own_server.kill()
        await asyncio.gather(*asking)
        assert store.away

    play(RedisStore(own_server.url, timeout=PATIENT), story)


@pytest.mark.rule("ERR-4")
def test_frozen_it_costs_one_time_out_and_then_nothing_until_the_pause_is_over(
    own_server: RedisServer, session: str
) -> None:
    ticks = Ticks()

    async def story(store: SessionStore) -> None:
        await keep(store, "acme", session, {"pm_1": b"1"})
        own_server.freeze()
        try:
            started = time.monotonic()
            waiting = await asyncio.gather(*(store.held("acme", session, ["pm_1"], NOW) for _ in range(100)))
            assert waiting == [{}] * 100
            assert store.away
            # a fifth of a second, and room for a busy machine; the calls queued behind did not wait
            assert time.monotonic() - started < 2
            # within the pause nothing is waited for
            before = asyncio.all_tasks()
            for _ in range(1000):
                assert await store.held("acme", session, ["pm_1"], NOW) == {}
            assert asyncio.all_tasks() == before
            # after it a single call tries, on a new connection, and the others go on at once
            ticks.now += 5
            trying = asyncio.create_task(store.held("acme", session, ["pm_1"], NOW))
            await asyncio.sleep(0)
            assert await store.held("acme", session, ["pm_1"], NOW) == {}
            assert not trying.done()
            assert await trying == {}
            assert store.away
        finally:
            own_server.thaw()
        ticks.now += 5
        assert await store.held("acme", session, ["pm_1"], NOW) == {"pm_1": b"1"}
        assert not store.away

    play(RedisStore(own_server.url, monotonic=ticks), story)


@pytest.mark.rule("ERR-4")
def test_one_failure_lets_go_of_all_idle_connections_so_that_none_costs_another(
    own_server: RedisServer, session: str
) -> None:
    async def story(store: SessionStore) -> None:
        with own_server.client() as outside:
            await asyncio.gather(*(store.held("acme", session, ["pm_1"], NOW) for _ in range(10)))
            assert len(outside.client_list()) > 2
            own_server.freeze()
            try:
                assert await store.held("acme", session, ["pm_1"], NOW) == {}
            finally:
                own_server.thaw()
            give_up_at = time.monotonic() + PATIENT
            while len(outside.client_list()) > 1:
                assert time.monotonic() < give_up_at

    play(RedisStore(own_server.url), story)


@pytest.mark.rule("ERR-4")
def test_a_full_redis_does_not_keep_and_does_not_raise(own_server: RedisServer, session: str) -> None:
    ticks = Ticks()

    async def story(store: SessionStore) -> None:
        await keep(store, "acme", session, {"pm_1": b"1"})
        with own_server.client() as outside:
            outside.config_set("maxmemory-policy", "noeviction")
            outside.config_set("maxmemory", 1)
            await keep(store, "acme", session, {"pm_2": b"2"})
            assert store.away
            outside.config_set("maxmemory", 0)
        ticks.now += 5
        assert await store.held("acme", session, ["pm_1", "pm_2"], NOW) == {"pm_1": b"1"}
        assert not store.away

    play(RedisStore(own_server.url, timeout=PATIENT, monotonic=ticks), story)


@pytest.mark.rule("ERR-4")
def test_a_redis_that_forbids_the_command_is_away(own_server: RedisServer, session: str) -> None:
    async def story(store: SessionStore) -> None:
        assert await store.held("acme", session, ["pm_1"], NOW) == {}
        assert store.away

    with own_server.client() as outside:
        outside.execute_command("ACL", "SETUSER", "default", "-hmget")
    play(RedisStore(own_server.url, timeout=PATIENT), story)


@pytest.mark.rule("ERR-4")
def test_a_wrong_password_is_away_and_the_right_one_is_told_to_nobody(
    session: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    with running(password="correct-horse") as server:

        async def held(url: str) -> tuple[dict[str, bytes], bool]:
            async with opened(RedisStore(url, timeout=PATIENT)) as store:
                await keep(store, "acme", session, {"pm_1": b"1"})
                held = await store.held("acme", session, ["pm_1"], NOW)
                assert "horse" not in f"{store!r} {store}"
                return held, store.away

        assert asyncio.run(held(server.url)) == ({}, True)
        assert asyncio.run(held(f"{server.url}?password=wrong-horse")) == ({}, True)
        assert asyncio.run(held(f"unix://:wrong-horse@{server.socket}")) == ({}, True)
        assert asyncio.run(held(f"{server.url}?password=correct-horse")) == ({"pm_1": b"1"}, False)
        assert asyncio.run(held(f"unix://:correct-horse@{server.socket}")) == ({"pm_1": b"1"}, False)
    assert "horse" not in caplog.text + "".join(capfd.readouterr())


NONSENSE = {
    "nothing": b"",
    "another protocol": b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n",
    "zeros": bytes(1000),
    "no line end": b"+" * 100_000,
    "errors": b"-ERR no\r\n-ERR no\r\n",
    "loading": b"-LOADING Redis is loading the dataset in memory\r\n" * 2,
    "words": b"+OK\r\n+OK\r\n",
    "numbers": b":1\r\n:1\r\n",
    "not a number": b":one\r\n:one\r\n",
    "a type and too few fields": b"+hash\r\n*1\r\n$1\r\nx\r\n",
    "a type and fields that are numbers": b"+hash\r\n*2\r\n:1\r\n:2\r\n",
    "a type and a list in the list": b"+hash\r\n*2\r\n*0\r\n*0\r\n",
    "a type and no list": b"+none\r\n$-1\r\n",
    "half an answer": b"+hash\r\n*2\r\n$5\r\nab",
    "without end": b"+hash\r\n*2\r\n$99999999999\r\n" + b"x" * 1000,
    "negative lengths": b"*-7\r\n$-7\r\n",
    "more nested than can be read": b"*1\r\n" * 20_000,
}


@asynccontextmanager
async def impostor(answer: Callable[[bytes, asyncio.StreamWriter], Coroutine[Any, Any, None]]) -> AsyncGenerator[str]:
    """The address of a server that answers whatever it is asked with that."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while asked := await reader.read(1 << 20):
                await answer(asked, writer)
                await writer.drain()
        writer.close()

    with tempfile.TemporaryDirectory(prefix="mr") as folder:
        async with await asyncio.start_unix_server(serve, f"{folder}/s"):
            yield f"unix://{folder}/s"


@pytest.mark.rule("ERR-4")
@pytest.mark.parametrize("nonsense", NONSENSE.values(), ids=NONSENSE)
def test_a_server_that_answers_nonsense_is_away_and_nothing_raises(nonsense: bytes) -> None:
    async def answer(asked: bytes, writer: asyncio.StreamWriter) -> None:
        # the driver greets with its name, and does not mind when that is refused
        writer.write(b"-ERR\r\n" * asked.count(b"SETINFO") or nonsense)

    async def story() -> None:
        ticks = Ticks()
        async with impostor(answer) as url, opened(RedisStore(url, timeout=0.1, monotonic=ticks)) as store:
            assert await store.held("acme", "s", ["pm_1", "pm_2"], NOW) == {}
            assert store.away
            ticks.now += 5
            await keep(store, "acme", "s", {"pm_1": b"1"})
            ticks.now += 5
            await store.forget("acme", "s", ["pm_1"])
            ticks.now += 5
            assert await store.held("acme", "s", ["pm_1", "pm_2"], NOW) == {}
            assert store.away

    asyncio.run(story())


@pytest.mark.rule("ERR-4")
def test_a_server_that_dribbles_is_not_waited_for_longer_than_the_deadline() -> None:
    greeted = 0

    async def answer(asked: bytes, writer: asyncio.StreamWriter) -> None:
        # each answer comes soon, all of them together do not
        nonlocal greeted
        for _ in range(asked.count(b"SETINFO")):
            greeted += 1
            await asyncio.sleep(0.1)
            writer.write(b"-ERR\r\n")
        if b"HMGET" in asked:
            writer.write(b"+hash\r\n")
            await asyncio.sleep(0.1)
            writer.write(b"*1\r\n$1\r\n1\r\n")

    async def story() -> None:
        async with impostor(answer) as url, opened(RedisStore(url)) as store:
            assert await store.held("acme", "s", ["pm_1"], NOW) == {}
            assert store.away
        async with impostor(answer) as url, opened(RedisStore(url, timeout=PATIENT)) as store:
            assert await store.held("acme", "s", ["pm_1"], NOW) == {"pm_1": b"1"}

    asyncio.run(story())
    assert greeted


@pytest.mark.rule("ERR-4")
def test_where_nobody_listens_it_is_away(tmp_path: Path) -> None:
    async def story(store: SessionStore) -> None:
        assert not store.away
        assert await store.held("acme", "s", ["pm_1"], NOW) == {}
        assert store.away
        await keep(store, "acme", "s", {"pm_1": b"1"})
        await store.forget("acme", "s", ["pm_1"])

    play(RedisStore(f"unix://{tmp_path}/none.sock"), story)
    play(RedisStore("redis://127.0.0.1:1/0"), story)
    play(RedisStore("rediss://127.0.0.1:1/0"), story)


@pytest.mark.rule("ERR-4")
def test_closing_lets_the_calls_under_way_end(own_server: RedisServer, session: str) -> None:
    async def story(store: SessionStore) -> None:
        await keep(store, "acme", session, {"pm_1": b"1"})
        own_server.freeze()
        calls = [asyncio.create_task(store.held("acme", session, ["pm_1"], NOW)) for _ in range(40)]
        await asyncio.sleep(0)
        closing = asyncio.create_task(store.close())
        await asyncio.sleep(0)
        own_server.thaw()
        held = await asyncio.gather(*calls)
        await closing
        assert {"pm_1": b"1"} in held and {} in held, "some were under way, the others came too late"
        with own_server.client() as outside:
            assert [one["cmd"] for one in outside.client_list()] == ["client"]

    play(RedisStore(own_server.url, timeout=PATIENT), story)


@pytest.mark.rule("ISO-1")
def test_a_cancelled_call_leaves_no_answer_for_the_next(own_server: RedisServer, session: str) -> None:
    async def story(store: SessionStore) -> None:
        await keep(store, "acme", session, {"pm_1": b"1", "pm_2": b"2"})
        for turns in range(40):
            own_server.freeze()
            call = asyncio.create_task(store.held("acme", session, ["pm_1"], NOW))
            for _ in range(turns):
                await asyncio.sleep(0)
            started = time.monotonic()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert time.monotonic() - started < PATIENT, "it waited for the answer all the same"
            own_server.thaw()
            assert await store.held("acme", session, ["pm_2"], NOW) == {"pm_2": b"2"}
            assert not store.away

    play(RedisStore(own_server.url, timeout=PATIENT), story)
    with own_server.client() as outside:
        assert len(outside.client_list()) == 1


# ---- which store ----


def test_without_an_address_the_store_is_in_process() -> None:
    assert isinstance(session_store(None), InProcess)


def test_with_an_address_it_is_in_redis_and_connects_only_when_asked(redis_server: RedisServer, session: str) -> None:
    # outside any event loop, as settings are read
    store = session_store(redis_server.url)
    assert isinstance(store, RedisStore)

    async def story(store: SessionStore) -> None:
        await keep(store, "acme", session, {"pm_1": b"1"})
        assert await store.held("acme", session, ["pm_1"], NOW) == {"pm_1": b"1"}

    play(store, story)


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost",
        "redis://localhost/",
        "redis://localhost:6380/3",
        "REDIS://user:p%40ss%2Fword@cache.example:6379/0",
        "rediss://:secret@[::1]:6379?db=2&ssl_ca_certs=/etc/ca.pem",
        "unix:///run/redis.sock?db=1&password=secret",
        "unix://user:secret@/run/redis.sock",
    ],
)
def test_an_address_that_is_one_is_taken(url: str) -> None:
    assert isinstance(session_store(url), RedisStore)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "horse",
        "localhost:6379",
        "http://:horse@localhost",
        "redis+sentinel://:horse@localhost",
        "redis:localhost",
        "redis://",
        "redis:///0",
        "redis://localhost/horse",
        "redis://localhost/0/1",
        "redis://localhost:horse",
        "redis://localhost:99999",
        "redis://[::1",
        # a password that was not written as a URL asks for
        "redis://:ho/rse@localhost:6379",
        "redis://:ho?rse@localhost:6379",
        "redis://:ho#rse@localhost:6379",
        "redis://:#horse@localhost:6379",
        "redis://user:12/3horse@localhost",
        "redis://user:12#horse@localhost",
        "unix://",
        "unix:///",
        "unix://horse",
        "unix://horse/redis.sock",
        # options that would undo the time-outs, or turn bytes into text
        "redis://localhost?socket_timeout=60",
        "redis://localhost?decode_responses=true",
        "redis://localhost?protocol=3",
        "redis://localhost?horse=1",
        "redis://localhost?db=horse",
        "redis://localhost?db=",
        b"redis://localhost",
        6379,
    ],
)
def test_an_address_that_is_none_is_refused_without_being_repeated(url: Any) -> None:
    with pytest.raises(InvalidInput, match=r"expected redis://|the options after") as refused:
        session_store(url)
    error: BaseException | None = refused.value
    assert refused.value.field == "redis_url"
    while error is not None:
        assert "horse" not in str(error) and "rse" not in str(error.args)
        error = error.__context__
