"""Memory over a fabric or a client that is open already (MEM-5): who acts, whose own acts are possible, what stays open."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from muniment import AsyncFabric, AsyncMemory, Fabric, Principal
from muniment.client import AsyncClient
from muniment.errors import Denied, InvalidInput
from muniment.memory import Asked
from muniment.pack import profile_pack
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.pack_activation import put_in_force
from tests.server_thread import RemoteFabric, ServerThread

TOLD, QUESTION = "I'm vegan, and my sister Ana is getting married in June.", "what should I cook for her?"
CHANNELS = {"channels": ["app_chat"]}


@pytest.fixture(scope="module")
def served(server: TestServer, database: str) -> Iterator[ServerThread]:
    with ServerThread.on(server.url(database)) as running:
        yield running


@pytest.fixture
def local(server: TestServer, database: str, people: People) -> Iterator[Fabric]:
    with Fabric.open(server.url(database), master_keys=MASTER_KEYS) as opened:
        put_in_force(opened, people.tenant_id, profile_pack("personal"))
        yield opened


def _on_fabric(place: str, story: Callable[[AsyncFabric], Awaitable[None]]) -> None:
    async def told() -> None:
        async with AsyncFabric.open(place, master_keys=MASTER_KEYS) as fabric:
            await story(fabric)

    asyncio.run(told())


@pytest.mark.rule("MEM-2", "MEM-5")
def test_on_a_fabric_of_many_users_each_has_a_memory_and_the_fabric_stays_open(
    local: Fabric, server: TestServer, database: str, people: People
) -> None:
    async def story(fabric: AsyncFabric) -> None:
        async with AsyncMemory.over(fabric, "ann", tenant=people.tenant_id, agent="desk_bot") as ann:
            added = await ann.add(TOLD)
            assert [one.text for one in added.promoted] == [TOLD] and added.unread == 0
            assert (ann.run.tenant_id, ann.run.agent_id, ann.run.user_id) == (people.tenant_id, "desk_bot", "ann")
        bob = await AsyncMemory.over(fabric, "bob", tenant=people.tenant_id)
        assert await bob.search(QUESTION) == []
        again = await AsyncMemory.over(fabric, "ann", tenant=people.tenant_id)
        assert [one.text for one in await again.search(QUESTION)] == [TOLD]
        with pytest.raises(InvalidInput, match="not open"):
            await ann.search(QUESTION)

    _on_fabric(server.url(database), story)


@pytest.mark.rule("ADP-4", "MEM-5")
def test_on_a_fabric_that_is_nobodys_home_the_persons_own_acts_make_a_request(
    local: Fabric, server: TestServer, database: str, people: People
) -> None:
    async def story(fabric: AsyncFabric) -> None:
        memory = await AsyncMemory.over(fabric, "ann", tenant=people.tenant_id)
        (kept,) = (await memory.add(TOLD)).promoted
        assert isinstance(await memory.forget(kept.id), Asked)
        assert isinstance(await memory.forget_everything(), Asked)
        assert isinstance(await memory.correct(kept.id, "I eat everything."), Asked)
        for act in (memory.pending(), memory.history(), memory.export(), memory.allow("PII")):
            with pytest.raises(Denied):
                await act
        assert [one.text for one in await memory.search(QUESTION)] == [TOLD]

    _on_fabric(server.url(database), story)


@pytest.mark.rule("ISO-8")
def test_a_program_says_for_which_channel_and_tools_its_agent_speaks(
    local: Fabric, server: TestServer, database: str, people: People
) -> None:
    async def story(fabric: AsyncFabric) -> None:
        memory = await AsyncMemory.over(fabric, "ann", tenant=people.tenant_id, channel="mail", tools=["crm"])
        assert memory.channel == "mail"
        fields: dict[str, Any] = {"kind": "tool_result", "classification": "INTERNAL", "payload": {"tier": "gold"}}
        added = await memory.keep([fields | {"origin": "tool:crm"}, fields | {"origin": "tool:other"}])
        found = [await fabric.captures.get(people.auditor, one) for one in added.captures]
        assert [one.capture and one.capture.vouched for one in found] == ["tool:crm", None]

    _on_fabric(server.url(database), story)


def test_what_the_place_says_itself_cannot_be_said_otherwise(
    local: Fabric, server: TestServer, database: str, people: People, served: ServerThread
) -> None:
    async def story(fabric: AsyncFabric) -> None:
        with pytest.raises(InvalidInput, match="tenant: is required"):
            await AsyncMemory.over(fabric, "ann")
        with pytest.raises(InvalidInput, match="user: is required"):
            AsyncMemory.over(fabric, tenant=people.tenant_id)
        with pytest.raises(InvalidInput, match="user: expected"):
            AsyncMemory.over(fabric, "ann@example.com", tenant=people.tenant_id)
        with pytest.raises(InvalidInput, match="fabric: expected"):
            AsyncMemory.over("postgresql://", "ann")  # pyright: ignore[reportArgumentType]
        async with AsyncClient.open(served.url, "mun_none") as client:
            for wrong in ({"tenant": "acme"}, {"tools": ["crm"]}, {"agent": "bot"}):
                with pytest.raises(InvalidInput, match="is the key's to say"):
                    AsyncMemory.over(client, "ann", **wrong)
            with pytest.raises(InvalidInput, match="own: is for a client"):
                AsyncMemory.over(fabric, "ann", tenant="acme", own=client)

    _on_fabric(server.url(database), story)


@pytest.mark.rule("MEM-5")
def test_over_a_client_the_key_says_who_acts_and_the_users_own_key_acts_for_them(
    local: Fabric, served: ServerThread, people: People
) -> None:
    remote = RemoteFabric(local, served.url)
    ann = Principal(tenant_id=people.tenant_id, id="ann", kind="end_user", roles={"subject", "agent"})
    key, own_key = remote.token(people.run(None), speaks_for=CHANNELS), remote.token(ann, user_id="ann")

    async def story() -> None:
        async with AsyncClient.open(served.url, key) as client, AsyncClient.open(served.url, own_key) as own:
            memory = await AsyncMemory.over(client, "ann")
            assert (await memory.add(TOLD)).unread == 1
            await asyncio.to_thread(local.consolidate, people.tenant_id)
            (fact,) = await memory.search(QUESTION)
            assert fact.record.provenance.vouched == "user" and isinstance(await memory.forget(fact.id), Asked)
            assert await AsyncMemory.over(client, "ann").__aenter__() is not memory
            acting = await AsyncMemory.over(client, "ann", own=own)
            added = await acting.outcomes({fact.record.provenance.capture_id: TOLD})
            assert [one.id for one in added.promoted] == [fact.id]
            assert not isinstance(await acting.forget(fact.id), Asked)
            with pytest.raises(InvalidInput, match="own_key"):
                await AsyncMemory.over(client, "tom", own=own)
            assert memory.secret("a") == acting.secret("a") != memory.secret("b")
            assert (await client.whoami()).kind == "agent"

    asyncio.run(story())


def test_a_memory_in_another_session_is_the_same_memory(home: Path, user: str) -> None:
    async def story() -> None:
        async with AsyncMemory.open(user=user, home=home) as memory:
            other = memory.in_session("session_1", qualifiers={"app": "kitchen"})
            assert other.run.session_id == "session_1" != memory.run.session_id
            assert other.run.run_id == memory.run.run_id and other.run.speaks_for == memory.run.speaks_for
            await other.add(TOLD)
            await other.close()
            assert [one.text for one in await memory.search(QUESTION)] == [TOLD]
            with pytest.raises(InvalidInput, match="session_id"):
                memory.in_session("ann@example.com")
            assert await other.forget_everything() is not None

    asyncio.run(story())
