"""Session stores to test: either kind, servers shared and of one's own, and short ways to use them."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, TypeVar
from uuid import uuid4

import pytest

from muniment.sessions.redis_store import RedisStore
from muniment.sessions.store import InProcess, SessionStore
from muniment.testing.clock import START
from tests.redis_server import RedisServer, running

NOW = START
SOON = NOW + timedelta(minutes=30)


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
