"""Profiles, undo and the end of a session through HTTP, the client and the command line."""

from collections.abc import Iterator
from typing import Any

import pytest

from muniment.client import Client
from muniment.errors import Conflict, RoleMissing
from muniment.pack import PROFILES
from muniment.testing import People, TestServer
from tests.interfaces.command import Terminal, run
from tests.interfaces.http import RunningServer
from tests.pack_activation import put_in_force
from tests.packs.profile_packs import CRM_IS_PROVEN, made_of
from tests.packs.test_profiles import look_up


@pytest.fixture(scope="module")
def http_server(server: TestServer, database: str) -> Iterator[RunningServer]:
    with RunningServer(server, database) as opened:
        yield opened


@pytest.fixture
def assisted(http_server: RunningServer, people: People) -> Any:
    put_in_force(http_server.local, people.tenant_id, made_of("assisted", proven=(CRM_IS_PROVEN,)))
    return http_server.local


@pytest.mark.rule("PRO-8")
def test_a_promotion_is_undone_over_http_once(http_server: RunningServer, people: People, assisted: Any) -> None:
    (memory_id,) = look_up(assisted, people, run=people.run(), channel="email")
    path, key = f"/v1/memories/{memory_id}/undo", http_server.key(people.reviewer)
    assert http_server.ask("POST", path, {}, key=http_server.key(people.auditor)).status_code == 403
    once = {"Idempotency-Key": b"take-back"}
    first = http_server.ask("POST", path, {"note": "not so"}, key=key, headers=once)
    assert first.status_code == 200, first.json()
    assert first.json()["retraction"]["reason"] == "undone"
    assert http_server.ask("POST", path, {"note": "not so"}, key=key, headers=once).json() == first.json()
    again = http_server.ask("POST", path, {}, key=key)
    assert (again.status_code, again.json()["code"]) == (409, "conflict")


@pytest.mark.rule("PRO-8", "TIR-6", "PAC-8")
def test_a_client_has_the_same_verbs(http_server: RunningServer, people: People, assisted: Any) -> None:
    (memory_id,) = look_up(assisted, people, run=people.run(), channel="email")
    assert len(look_up(assisted, people, note="The parcel is at the depot.")) == 1
    run_of_session = people.run(session_id="s1")
    with Client.open(http_server.url, http_server.key(run_of_session.principal)) as client:
        assert len(client.recall(run_of_session).records) == 2
        ended = client.sessions.end(run_of_session, "s1")
        assert (ended.session_id, ended.user_id) == ("s1", "cust_1")
        assert len(client.recall(run_of_session).records) == 1
        with pytest.raises(RoleMissing):
            client.undo(run_of_session, memory_id)
    with Client.open(http_server.url, http_server.key(people.reviewer)) as client:
        assert client.undo(people.reviewer, memory_id).retraction.memory_id == memory_id
        with pytest.raises(Conflict):
            client.undo(people.reviewer, memory_id)
        assert [one.name for one in client.profiles(people.reviewer)] == list(PROFILES)
    with Client.open(http_server.url, http_server.key(people.admin)) as client:
        assert client.packs.register(people.admin, "personal").ref == "muniment.personal@1.0.0"


@pytest.mark.rule("PAC-8")
def test_the_profiles_at_the_command_line() -> None:
    strict, assisted, personal = run("profiles", "--json").json
    assert (strict["name"], assisted["name"], personal["name"]) == PROFILES
    assert {one["threshold"] for one in strict["classes"]} == {None}
    by_class = {one["write_class"]: one for one in assisted["classes"]}
    assert by_class["preference"]["proven_sources"] == ["user (messages@2, said@1)"]
    assert by_class["statement"]["proven_sources"] == []
    assert (assisted["cap"], assisted["undo_term"], personal["own_updates"]) == (0.8, "1d", True)
    shown = run("profiles").out
    for words in ("assisted (muniment.assisted@1.0.0)", "0.90", "sensitive: the subject's consent", "undo for 1d"):
        assert words in shown


@pytest.mark.rule("PAC-8", "PRO-8")
def test_a_profile_by_name_and_an_undo_at_the_command_line(terminal: Terminal) -> None:
    terminal.json("capture", "hello", "-c", "PUBLIC", "--pack-file", "assisted")
    assert terminal.json("pack", "in-force")["pack"] == "muniment.assisted@1.0.0"
    payload = '{"effect": "refund", "outcome": "granted"}'
    given = ("--kind", "agent", "-k", "effect", "-c", "INTERNAL", "--subject", "customer:cust_1", "--session", "s1")
    given = (*given, "--user", "cust_1")
    terminal.json("capture", "--payload", payload, *given)
    (memory_id,) = terminal.json("consolidate")["promoted"]
    done = terminal("undo", memory_id, "--note", "not so")
    assert (done.code, done.out.strip()) == (
        0,
        f"undone {memory_id}, by {terminal.json('get', memory_id)['retracted_by']}",
    )
    assert terminal("undo", memory_id).code == 1
    assert terminal.json("pack", "register", "personal")["pack"] == "muniment.personal@1.0.0"
