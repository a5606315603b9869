"""Faults behind the HTTP interface: PostgreSQL down, Redis down, a worker killed, the server itself killed."""

import asyncio
import time
from collections import Counter
from typing import Any

import httpx2
import pytest

from muniment import Fabric
from muniment.client import AsyncClient, Client
from muniment.database import embedded, server_liveness
from muniment.errors import ServerUnavailable, StorageUnavailable
from muniment.sessions.redis_store import RedisStore
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.faults.concurrency import hold_clock
from tests.faults.load import Command, Serving, clients, token
from tests.faults.servers import eventually
from tests.redis_server import running
from tests.server_thread import ServerThread
from tests.stories import remembered

# Seconds; it takes some tens of milliseconds, and waiting for a pool or a time-out would take three seconds.
SOON = 1.0
WORD: dict[str, Any] = {"kind": "statement", "classification": "PUBLIC"}


class Writer:
    """Captures line after line until told to end; each line is known by its session."""

    def __init__(self, client: AsyncClient, people: People, name: str) -> None:
        self._client = client
        self._people = people
        self._name = name
        self.acknowledged: list[str] = []
        self.errors: list[StorageUnavailable | ServerUnavailable] = []
        self.slowest = 0.0

    async def write(self, ended: asyncio.Event) -> None:
        """Each line once; where that failed it is not tried again."""
        while not ended.is_set():
            line = f"{self._name}_{len(self.acknowledged) + len(self.errors)}"
            await self._say(line)

    async def insist(self, ended: asyncio.Event) -> None:
        """Each line under a key of its own, again and again until it is acknowledged."""
        while not ended.is_set():
            line = f"{self._name}_{len(self.acknowledged)}"
            while not await self._say(line, idempotency_key=line):
                pass

    async def _say(self, line: str, **more: Any) -> bool:
        began = time.monotonic()
        try:
            await self._client.capture(self._people.run(session_id=line), text=f"this is {line}", **WORD, **more)
        except (StorageUnavailable, ServerUnavailable) as error:
            self.errors.append(error)
            return False
        else:
            self.acknowledged.append(line)
            return True
        finally:
            self.slowest = max(self.slowest, time.monotonic() - began)


def lines(server: TestServer, database: str, people: People) -> "Counter[str]":
    """What is captured, by session."""
    with server.connect(database) as owner:
        rows = owner.execute("SELECT session_id FROM captures WHERE tenant_id = %s", [people.tenant_id]).fetchall()
    return Counter(str(one) for (one,) in rows)


async def until(condition: Any) -> None:
    await asyncio.to_thread(eventually, condition)


@pytest.mark.rule("ERR-3", "ERR-2", "CAP-10")
def test_postgresql_stopped_and_started_under_load_is_reported_at_once_and_costs_nothing_acknowledged(
    away: TestServer, own: str, people: People
) -> None:
    place = away.url(own)
    with Fabric.open(place, master_keys=MASTER_KEYS) as local:
        keys = [token(local, people.run()) for _ in range(6)]

    async def story(url: str) -> list[Writer]:
        ended = asyncio.Event()
        async with (
            clients(url, keys[:4], retries=0) as hasty,
            clients(url, keys[4:]) as patient,
            httpx2.AsyncClient(base_url=url, headers={"Authorization": f"Bearer {keys[0]}"}, timeout=30) as http,
        ):
            failing = [Writer(client, people, f"hasty_{n}") for n, client in enumerate(hasty)]
            riding = [Writer(client, people, f"patient_{n}") for n, client in enumerate(patient)]
            writers = failing + riding
            tasks = [asyncio.create_task(writer.write(ended)) for writer in writers]
            await until(lambda: all(len(writer.acknowledged) > 3 for writer in writers))

            await asyncio.to_thread(embedded.stop, away.home)
            await until(lambda: all(writer.errors for writer in failing))
            began = time.monotonic()
            answer = await http.post("/v1/recall", json={"run": {"run_id": "r", "user_id": "u"}})
            ready, healthy = await http.get("/readyz"), await http.get("/healthz")
            assert time.monotonic() - began < SOON
            for one in (answer, ready):
                assert (one.status_code, one.json()["code"]) == (503, "storage_unavailable")
                assert one.headers["content-type"] == "application/problem+json"
                assert int(one.headers["retry-after"]) >= 1
            assert (healthy.status_code, healthy.json()) == (200, {"status": "ok"})

            await asyncio.to_thread(embedded.keep_running, away.home)
            before = [len(writer.acknowledged) for writer in writers]
            await until(lambda: all(len(w.acknowledged) > n + 3 for w, n in zip(writers, before, strict=True)))
            assert (await http.get("/readyz")).status_code == 200
            ended.set()
            await asyncio.gather(*tasks)
        assert {type(error) for writer in failing for error in writer.errors} == {StorageUnavailable}
        assert (
            max(writer.slowest for writer in failing)
            < server_liveness.PATIENCE_SECONDS + server_liveness.ANSWER_SECONDS
        )
        assert [writer.errors for writer in riding] == [[], []], "these were told to be patient"
        return writers

    with ServerThread.on(place) as served:
        writers = asyncio.run(story(served.url))
    there = lines(away, own, people)
    assert there.keys() >= {line for writer in writers for line in writer.acknowledged}
    assert set(there.values()) == {1}


@pytest.mark.rule("ERR-4", "TIR-3")
def test_redis_killed_and_back_stops_neither_capture_nor_recall(
    server: TestServer, database: str, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(RedisStore.__init__.__kwdefaults__ or {}, "pause", 0.3)
    place, run = server.url(database), people.run(session_id="s")
    with running() as redis, Fabric.open(place, master_keys=MASTER_KEYS) as local:
        remembered(local, people, "email", tier="working", session_id="s")
        with (
            ServerThread.on(place, redis_url=redis.url) as served,
            Client.open(served.url, token(local, run)) as client,
        ):

            def degraded() -> tuple[str, ...]:
                answer = client.recall(run)
                assert [record.value for record in answer.records] == ["email"]
                return answer.degraded

            eventually(lambda: degraded() == ())
            redis.kill()
            assert degraded() == ("session_store",)
            assert client.capture(run, text="Somebody spoke.", **WORD).capture_id
            redis.start()
            eventually(lambda: degraded() == ())


@pytest.mark.rule("JOB-1", "ERR-2", "CAP-10")
def test_a_worker_killed_at_work_is_replaced_and_each_capture_is_consolidated_once(
    server: TestServer, fresh_database: str, people: People
) -> None:
    place = server.url(fresh_database)
    worker = Command("worker", "--url", place)
    with Fabric.open(place, master_keys=MASTER_KEYS) as local, server.connect(fresh_database) as owner:
        with ServerThread.on(place) as served, Client.open(served.url, token(local, people.run())) as client:

            def said(number: int) -> list[str]:
                items = [WORD | {"text": f"Box {number} holds {n * 17} plates."} for n in range(20)]
                return [one.capture_id for one in client.capture_many(people.run(), items)]

            kept = said(1)
            with hold_clock(server, fresh_database, people.tenant_id), worker.running():
                eventually(lambda: owner.execute(_IN_THE_MIDDLE).fetchone() is not None)
            kept += said(2)
            with worker.running():
                eventually(lambda: local.work.backlog(people.admin).behind == 0)
        rows = owner.execute(_CONSOLIDATED, [people.tenant_id]).fetchall()
        assert Counter(rows) == Counter({(one, 1): 1 for one in kept})


# A consolidation that waits for the tenant's clock: all is decided, nothing is written.
_IN_THE_MIDDLE = (
    "SELECT FROM pg_stat_activity"
    " WHERE datname = current_database() AND usename = 'muniment_writer' AND wait_event_type = 'Lock'"
)
_CONSOLIDATED = (
    "SELECT e.capture_id, (SELECT count(*) FROM candidates d WHERE d.tenant_id = e.tenant_id AND d.capture_id = e.capture_id)"
    " FROM consolidations e WHERE e.tenant_id = %s"
)


@pytest.mark.rule("ERR-2", "CAP-10", "CAP-4")
def test_a_server_killed_in_the_middle_of_writes_has_all_it_acknowledged_and_nothing_twice(
    server: TestServer, fresh_database: str, people: People
) -> None:
    place = server.url(fresh_database)
    with Fabric.open(place, master_keys=MASTER_KEYS) as local:
        keys = [token(local, people.run()) for _ in range(4)]
    serving = Serving("--url", place)

    async def story() -> list[Writer]:
        ended = asyncio.Event()
        async with clients(serving.url, keys) as opened:
            writers = [Writer(client, people, f"writer_{n}") for n, client in enumerate(opened)]
            tasks = [asyncio.create_task(writer.insist(ended)) for writer in writers]
            await until(lambda: all(len(writer.acknowledged) > 3 for writer in writers))
            serving.kill()
            await asyncio.to_thread(serving.start)
            before = [len(writer.acknowledged) for writer in writers]
            await until(lambda: all(len(w.acknowledged) > n + 3 for w, n in zip(writers, before, strict=True)))
            ended.set()
            await asyncio.gather(*tasks)
        assert {type(error) for writer in writers for error in writer.errors} <= {ServerUnavailable}
        return writers

    with serving.running():
        writers = asyncio.run(story())
    said = [line for writer in writers for line in writer.acknowledged]
    assert lines(server, fresh_database, people) == Counter(said) == Counter(set(said))
