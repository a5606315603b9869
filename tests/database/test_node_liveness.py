"""Which nodes are away, as `node_liveness` finds out; on one server that says it is a coordinator."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from datetime import UTC, datetime

import pytest
from psycopg.conninfo import make_conninfo

from muniment import AsyncFabric
from muniment.database import server_liveness
from muniment.database.address import Address
from muniment.database.cluster import node_liveness
from muniment.database.cluster.errors import NodeAway
from muniment.database.cluster.node_liveness import EVERY_TENANT, NodeLiveness
from muniment.database.storage import Storage
from muniment.errors import StorageUnavailable
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.database.coordinator import CATALOGUE, Change, changes
from tests.faults.concurrency import hold_clock

GONE = "UPDATE pg_catalog.pg_dist_node SET nodename = 'gone' WHERE groupid = 2"
# A standby in its place has another address.
BACK = "UPDATE pg_catalog.pg_dist_node SET nodename = 'another' WHERE groupid = 2"


@pytest.fixture
def plain(server: TestServer, fresh_database: str) -> Change:
    """Run statements on the server as it is."""
    return changes(make_conninfo(server.conninfo, dbname=fresh_database))


@pytest.fixture
def change(plain: Change) -> Change:
    """Run statements on a server that has the catalogue."""
    plain(CATALOGUE)
    return plain


@pytest.fixture
def place(server: TestServer, fresh_database: str) -> Iterator[str]:
    yield server.task_url(fresh_database, "recall")


def told(place: str, story: Callable[[NodeLiveness], Awaitable[None]]) -> None:
    async def run() -> None:
        liveness = NodeLiveness(place)
        try:
            await story(liveness)
        finally:
            await liveness.close()

    asyncio.run(run())


async def until(holds: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < give_up_at
        await asyncio.sleep(0.01)


@pytest.mark.rule("SCL-3")
def test_only_the_tenants_of_a_node_that_is_away_are_refused_until_it_answers_again(change: Change, place: str) -> None:
    async def story(nodes: NodeLiveness) -> None:
        assert not await nodes.look("far_1")
        assert nodes.away == []
        change(GONE)
        assert await nodes.look("far_1")
        assert nodes.away == [2]
        for tenant in ("far_1", "far_never_seen"):
            with pytest.raises(NodeAway):
                await nodes.require(tenant)
        await nodes.require("near_1")
        await nodes.require(EVERY_TENANT)
        change(BACK)
        await until(lambda: nodes.away == [])
        await nodes.require("far_1")

    told(place, story)


@pytest.mark.rule("SCL-3")
def test_many_that_find_a_node_away_have_it_looked_at_once(
    change: Change, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_liveness, "AGAIN_SECONDS", 3600.0)

    async def story(nodes: NodeLiveness) -> None:
        change(GONE)
        for n in range(50):
            nodes.suspect(f"far_{n % 5}")
        await until(lambda: nodes.away == [2])
        assert await nodes.among(["far_1", "near_1", "far_2"]) == {"far_1", "far_2"}
        await asyncio.sleep(0.1)
        # The first look, that of the watch which it began, and one at the node of `near_1`.
        assert change("SELECT last_value FROM pg_catalog.test_looks") == [(3,)]

    told(place, story)


@pytest.mark.rule("SCL-3")
def test_a_statement_on_all_tenants_has_every_node_looked_at(change: Change, place: str) -> None:
    async def story(nodes: NodeLiveness) -> None:
        assert not await nodes.look(EVERY_TENANT)
        change(GONE)
        assert await nodes.look(EVERY_TENANT)
        assert nodes.away == [2]

    told(place, story)


@pytest.mark.rule("SCL-3")
def test_one_server_has_no_nodes_and_is_not_asked_again_at_once(place: str, server: TestServer) -> None:
    async def story(nodes: NodeLiveness) -> None:
        assert not await nodes.look("far_1")
        assert not await nodes.look(EVERY_TENANT)
        await nodes.require("far_1")
        assert nodes._plain_until > time.monotonic()

    told(place, story)


@pytest.mark.rule("SCL-3", "ERR-3")
def test_a_coordinator_that_does_not_answer_says_nothing_about_its_nodes(change: Change) -> None:
    async def story(nodes: NodeLiveness) -> None:
        assert not await nodes.look("far_1")
        assert not await nodes.look(EVERY_TENANT)
        assert nodes.away == []

    told("host=127.0.0.1 port=1 dbname=nowhere", story)


@pytest.mark.rule("SCL-3")
def test_a_transaction_of_such_a_tenant_is_refused_without_a_connection(
    change: Change, server: TestServer, fresh_database: str
) -> None:
    async def story() -> None:
        storage = Storage(Address.parse(server.url(fresh_database), None))
        try:
            change(GONE)
            assert await storage.nodes.look("far_1")
            with pytest.raises(NodeAway):
                async with storage.transaction("far_1", "recall", datetime.now(UTC)):
                    raise AssertionError("it was opened")
            assert storage._pools["recall"].size == 0
            async with storage.transaction("near_1", "recall", datetime.now(UTC)) as tx:
                assert await tx.rows("tenant.clock") == []
        finally:
            await storage.close()

    asyncio.run(story())


@pytest.mark.rule("SCL-3")
def test_a_statement_that_takes_long_is_given_up_if_the_tenant_s_node_is_away_and_no_other_is(
    plain: Change, server: TestServer, fresh_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_liveness, "PATIENCE_SECONDS", 0.05)
    far, near = People("far_1"), People("near_1")

    async def captured(fabric: AsyncFabric, people: People, text: str) -> str:
        await fabric.capture(people.run(), kind="statement", text=text, classification="PUBLIC")
        return text

    async def story() -> None:
        async with AsyncFabric.open(server.url(fresh_database), master_keys=MASTER_KEYS) as fabric:
            for people in (far, near):
                await captured(fabric, people, "the first")
            plain(CATALOGUE)
            with (
                hold_clock(server, fresh_database, far.tenant_id) as gate,
                hold_clock(server, fresh_database, near.tenant_id),
            ):
                waiting = [asyncio.create_task(captured(fabric, people, "the second")) for people in (far, near)]
                await asyncio.to_thread(gate.until_waiting, 2)
                plain(GONE)
                with pytest.raises(StorageUnavailable, match="node"):
                    await waiting[0]
                assert not waiting[1].done()
            assert await waiting[1] == "the second"

    asyncio.run(story())
