"""What every session store promises, in process or in Redis, and how the one in process keeps within its bounds."""

import asyncio
from datetime import timedelta

import pytest

from muniment.sessions.redis_store import session_key
from muniment.sessions.store import LARGEST_BODY, LARGEST_SESSION, MOST_BODIES, InProcess, SessionStore
from tests.sessions.session_stores import NOW, Make, keep, make, many, play, redis_server, session

__all__ = ["make", "redis_server", "session"]  # fixtures

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
