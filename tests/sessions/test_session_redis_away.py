"""A Redis that is killed, frozen, full, foreign or sends nonsense is skipped for a pause, and no call raises."""

import asyncio
import logging
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from muniment.sessions.redis_store import RedisStore
from muniment.sessions.store import SessionStore
from tests.redis_server import RedisServer, running
from tests.sessions.session_stores import NOW, PATIENT, Ticks, keep, many, opened, own_server, play, session

__all__ = ["own_server", "session"]  # fixtures


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
