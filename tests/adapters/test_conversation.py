"""What the adapters share, without a framework: on a server with an agent's key, and what becomes of odd turns."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from muniment import AsyncFabric, AsyncMemory, Fabric
from muniment.adapters.conversation import NOTHING, Conversation, Conversations, Turn, told_of
from muniment.client import AsyncClient
from muniment.errors import Denied, InvalidInput
from muniment.memory import Added
from muniment.pack import profile_pack
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.adapters.homes import ORDER, QUESTION, TOLD, captures, home, opened, said, user
from tests.pack_activation import put_in_force
from tests.server_thread import RemoteFabric, ServerThread

__all__ = ["home", "user"]


@pytest.fixture(scope="module")
def served(server: TestServer, database: str) -> Iterator[ServerThread]:
    with ServerThread.on(server.url(database)) as running:
        yield running


@pytest.fixture
def local(server: TestServer, database: str, people: People) -> Iterator[Fabric]:
    with Fabric.open(server.url(database), master_keys=MASTER_KEYS) as opened:
        put_in_force(opened, people.tenant_id, profile_pack("personal"))
        yield opened


@pytest.mark.rule("ADP-2", "ADP-4")
def test_on_a_server_a_conversation_says_what_is_not_read_and_forgets_nothing_on_an_agents_word(
    served: ServerThread, local: Fabric, people: People
) -> None:
    key = RemoteFabric(local, served.url).token(people.run(None), speaks_for={"channels": ["app_chat"]})

    async def story() -> None:
        async with AsyncClient.open(served.url, key) as client:
            threads = Conversations(client, framework="tests")
            first, second = await threads.of("ann", "monday"), await threads.of("ann", "tuesday")
            assert (await first.capture([Turn("user", TOLD)])).unread == 1
            assert "1 not read yet" in await first.context(QUESTION)
            await asyncio.to_thread(local.consolidate, people.tenant_id)
            assert TOLD in await second.context(QUESTION)
            assert await (await threads.of("bob", "monday")).recall(QUESTION) == NOTHING
            (fact,) = await second.memory.search(QUESTION)
            assert fact.record.provenance.vouched == "user"
            with pytest.raises(Denied, match="own act"):
                await second.forget(fact.id)
            assert "waits as mwp_" in await second.ask_to_remember("The user likes risotto.")
            assert [one.text for one in await second.memory.search("risotto")] == []

    asyncio.run(story())


@pytest.mark.rule("ISO-8", "ADP-2")
def test_without_the_users_channel_a_key_speaks_for_nobody_and_what_is_said_waits(
    served: ServerThread, local: Fabric, people: People
) -> None:
    key = RemoteFabric(local, served.url).token(people.run(None), speaks_for={})

    async def story() -> None:
        async with AsyncClient.open(served.url, key) as client:
            one = await Conversations(client, framework="tests").of("ann", "monday")
            added = await one.capture([Turn("user", TOLD)])
            assert "counts as the agent's word" in added.notes[0]
            await asyncio.to_thread(local.consolidate, people.tenant_id)
            assert TOLD not in await one.context(QUESTION)

    asyncio.run(story())
    assert [one.candidate.source for one in local.queue.list(people.reviewer)] == ["agent"]


@pytest.mark.rule("ADP-2")
def test_what_waited_is_not_said_to_wait_once_it_is_decided(home: Path, user: str) -> None:
    async def story() -> None:
        async with opened(home, user) as memory:
            one = Conversation(memory, "monday", framework="tests")
            await memory.allow("PII")
            await one.capture([Turn("user", "I am allergic to penicillin.")])
            assert "1 waiting for a person" in await one.context("penicillin")
            (waits,) = (await one.pending()).waiting
            await memory.confirm(waits.id)
            shown = await one.context("Am I allergic to penicillin?")
            assert "waiting" not in shown and "I am allergic to penicillin." in shown

    asyncio.run(story())


@pytest.mark.rule("ADP-2")
def test_a_program_can_wait_until_what_was_told_is_decided(home: Path, user: str) -> None:
    async def story() -> None:
        async with opened(home, user) as memory:
            one = Conversation(memory, "monday", framework="tests")
            await memory.allow("PII")
            (waits,) = (await one.capture([Turn("user", "I am allergic to penicillin.")])).waiting
            assert [still.id for still in (await one.wait(0.01)).waiting] == [waits.id]
            done, _ = await asyncio.gather(one.wait(30), memory.confirm(waits.id))
            assert done == Added()

    asyncio.run(story())


def test_a_result_in_json_is_kept_as_such_and_an_odd_name_of_a_tool_or_a_time_to_come_is_not_kept(
    home: Path, user: str
) -> None:
    async def story() -> None:
        async with opened(home, user) as memory:
            one = Conversation(memory, "monday", framework="tests")
            later, before = datetime.now(UTC) + timedelta(days=1), datetime.now(UTC) - timedelta(days=1)
            await one.capture(
                [
                    Turn("tool", '{"tier": "gold"}', tool="crm.lookup", at=before),
                    Turn("tool", '{"tier": ', tool="ann@example.com", at=later),
                    Turn("user", "  "),
                ]
            )
            assert [known.said for known in await said(memory)] == [{"tier": "gold"}, '{"tier": ']
            first, second = await captures(memory)
            assert (first.origin, first.observed_at) == ("tool:crm.lookup", before)
            assert second.origin is None and second.observed_at < later

    asyncio.run(story())


def test_a_proposal_that_cannot_be_taken_is_an_answer_and_no_error(home: Path, user: str) -> None:
    async def story() -> None:
        async with opened(home, user) as memory:
            one = Conversation(memory, "monday", framework="tests")
            for fact in ("", "\x00", "x" * 40_000):
                assert (await one.ask_to_remember(fact)).startswith("Not taken: text")
            assert (await one.ask_to_remember("The user has diabetes.")).startswith("Refused: it is personal data")

    asyncio.run(story())


def test_a_long_question_and_one_of_control_characters_are_asked_all_the_same(home: Path, user: str) -> None:
    async def story() -> None:
        async with opened(home, user) as memory:
            one = Conversation(memory, framework="tests")
            await one.capture([Turn("user", TOLD), Turn("user", ORDER)])
            assert TOLD in await one.context("What should I cook for Ana?\x00 " * 1000)
            assert "1 waiting" in await one.context(None) and await one.recall("\x00") != NOTHING
            assert one.memory.run == memory.run

    asyncio.run(story())


def test_a_place_that_is_none_and_options_that_it_does_not_take_are_refused(home: Path, user: str) -> None:
    async def story() -> None:
        async with opened(home, user) as memory:
            with pytest.raises(InvalidInput, match="memory: expected"):
                Conversations("a memory", framework="tests")  # pyright: ignore[reportArgumentType]
            with pytest.raises(InvalidInput, match="tenant: is for a fabric"):
                Conversations(memory, framework="tests", tenant="acme")
            assert isinstance(memory.fabric, AsyncFabric) and isinstance(memory, AsyncMemory)

    asyncio.run(story())
    assert told_of(Added()) == ""
