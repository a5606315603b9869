"""The session store in a real Redis: what lies there, for how long, and which addresses lead to it."""

import asyncio
import time
from datetime import timedelta
from typing import Any

import pytest

from muniment.errors import InvalidInput
from muniment.sessions.redis_store import RedisStore, session_key
from muniment.sessions.store import InProcess, SessionStore, session_store
from tests.redis_server import RedisServer
from tests.sessions.session_stores import NOW, PATIENT, keep, opened, play, redis_server, session

__all__ = ["redis_server", "session"]  # fixtures

DAY = 24 * 60 * 60 * 1000


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


# ---- which store ----


def test_without_an_address_the_store_is_in_process() -> None:
    assert isinstance(session_store(None), InProcess)


@pytest.mark.rule("TIR-3")
def test_several_processes_keep_it_in_redis_or_not_at_all(redis_server: RedisServer, session: str) -> None:
    async def story(store: SessionStore) -> None:
        await keep(store, "acme", session, {"pm_1": b"1"})
        await store.forget("acme", session, ["pm_2"])
        # Nothing is missing: the database has it.
        assert (await store.held("acme", session, ["pm_1"], NOW), store.away) == ({}, False)

    play(session_store(None, processes=2), story)
    assert isinstance(session_store(redis_server.url, processes=2), RedisStore)


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
