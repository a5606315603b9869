"""`muniment mcp hook` before a server: the agent's key says whose words count as the user's own (ISO-8)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from muniment import Fabric, Principal
from muniment.pack import profile_pack
from muniment.testing import People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.assistants.test_hook import PREFERS, Ran, hook, prompt
from tests.pack_activation import put_in_force
from tests.server_thread import RemoteFabric, ServerThread

Call = Callable[..., Ran]


@pytest.fixture(scope="module")
def served(server: TestServer, database: str) -> Iterator[ServerThread]:
    with ServerThread.on(server.url(database)) as running:
        yield running


@pytest.fixture
def local(server: TestServer, database: str, people: People) -> Iterator[Fabric]:
    with Fabric.open(server.url(database), master_keys=MASTER_KEYS) as opened:
        put_in_force(opened, people.tenant_id, profile_pack("personal"))
        yield opened


@pytest.fixture
def call(local: Fabric, served: ServerThread, people: People, tmp_path: Path) -> Call:
    """Run a hook under a key of the agent, which may speak for these channels and this user."""

    def made(event: str, given: dict[str, Any], *options: str, channels: list[str], user_id: str | None = None) -> Ran:
        file = tmp_path / f"{'_'.join(channels)}_{user_id}"
        if not file.exists():
            spoken = {"channels": channels}
            token = RemoteFabric(local, served.url).token(people.run(None), user_id=user_id, speaks_for=spoken)
            file.write_text(f"{token}\n")
        return hook(event, given, "--program", "cursor", "--server", served.url, "--key", f"@{file}", *options)

    return made


def person(people: People, user: str) -> Principal:
    return Principal(tenant_id=people.tenant_id, id=user, kind="end_user", roles={"subject"})


@pytest.mark.rule("ISO-8", "MEM-5")
def test_with_the_channel_what_is_typed_is_the_users_word_and_becomes_memory(
    call: Call, local: Fabric, people: People
) -> None:
    ran = call("beforeSubmitPrompt", prompt(PREFERS), "--user", "joanna", channels=["cursor"])
    assert (ran.answer, ran.err) == ({"continue": True}, "")
    assert call("beforeSubmitPrompt", prompt(PREFERS), "--user", "joanna", channels=["cursor"]).err == ""
    (capture,) = local.me.captures(person(people, "joanna"))
    assert (capture.said_by_you, capture.origin, capture.text) == (True, "channel:cursor", PREFERS)
    local.consolidate(people.tenant_id)
    begun = call("sessionStart", {"session_id": "s2"}, "--user", "joanna", channels=["cursor"])
    assert PREFERS in begun.answer["additional_context"]
    assert call("sessionEnd", {"session_id": "s1"}, "--user", "joanna", channels=["cursor"]).err == ""
    assert call("stop", {"session_id": "s1"}, "--user", "joanna", channels=["cursor"]).err == ""


@pytest.mark.rule("ISO-8")
def test_without_the_channel_it_is_the_agents_word_and_waits(call: Call, local: Fabric, people: People) -> None:
    assert call("UserPromptSubmit", prompt(PREFERS), "--user", "joanna", channels=["app_chat"]).err == ""
    (capture,) = local.me.captures(person(people, "joanna"))
    assert not capture.said_by_you
    local.consolidate(people.tenant_id)
    assert local.me.list(person(people, "joanna")) == []
    # The channel that the key has may be named.
    call("UserPromptSubmit", prompt(PREFERS), "--user", "joan", "--channel", "app_chat", channels=["app_chat"])
    assert local.me.captures(person(people, "joan"))[0].said_by_you


@pytest.mark.rule("ISO-5")
def test_a_key_for_one_user_captures_for_no_other(call: Call, local: Fabric, people: People) -> None:
    ran = call("UserPromptSubmit", prompt(PREFERS), "--user", "victim", channels=["*"], user_id="joanna")
    assert ran.answer == {} and "403" in ran.err and PREFERS not in ran.err
    assert local.me.captures(person(people, "victim")) == []
    assert call("UserPromptSubmit", prompt(PREFERS, user_id="victim"), channels=["*"], user_id="joanna").err == ""
    (capture,) = local.me.captures(person(people, "joanna"))
    assert capture.said_by_you
    assert local.me.captures(person(people, "victim")) == []


def test_a_key_on_the_command_line_or_none_is_refused(served: ServerThread) -> None:
    for key in (["--key", "mun_secret"], []):
        ran = hook("UserPromptSubmit", prompt(PREFERS), "--server", served.url, *key)
        assert ran.answer == {} and "mun_secret" not in ran.err and "MUNIMENT_KEY" in ran.err
    ran = hook("UserPromptSubmit", prompt(PREFERS), "--server", served.url, MUNIMENT_KEY="mun_wrong")
    assert ran.answer == {} and "401" in ran.err and "mun_wrong" not in ran.err


@pytest.mark.parametrize("place", ["ftp://memory.example.com", "memory.example.com", "http://", "http://127.0.0.1:1"])
def test_an_address_that_is_none_is_said(place: str) -> None:
    ran = hook("UserPromptSubmit", prompt(PREFERS), "--server", place, MUNIMENT_KEY="mun_x")
    assert ran.answer == {} and ran.err.startswith("muniment hook: ") and "mun_x" not in ran.err
