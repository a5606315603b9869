"""The command line of API keys."""

import pytest

from muniment import Fabric
from muniment.errors import Unauthenticated
from tests.interfaces.command import Terminal, run


def test_a_key_is_made_shown_once_listed_and_revoked(terminal: Terminal) -> None:
    made = terminal.json(
        *("key", "create", "--for", "refund_bot", "--grant", "agent", "--for-user", "cust_1"),
        *("--clearance", "PUBLIC", "--clearance", "PII", "--expires", "30d", "--label", "the shop", "--as", "ada"),
    )
    assert (made["kind"], made["roles"], made["user_id"]) == ("agent", ["agent"], "cust_1")
    assert made["tenant_id"] == terminal.tenant
    assert (made["clearance"], made["created_by"], made["state"]) == (["PII", "PUBLIC"], "ada", "active")
    with Fabric.open(home=terminal.home) as fabric:
        held = fabric.keys.check(made["token"])
        assert (held.principal.id, held.principal.tenant_id, held.key_id) == (
            "refund_bot",
            terminal.tenant,
            made["key_id"],
        )
        shown = terminal("key", "list")
        assert shown.code == 0
        for word in (made["key_id"], "active", "refund_bot, agent", "cust_1", "PII, PUBLIC", "the shop", "last used"):
            assert word in shown.out
        assert made["token"] not in shown.out
        assert terminal.json("key", "revoke", made["key_id"])["state"] == "revoked"
        with pytest.raises(Unauthenticated):
            fabric.keys.check(made["token"])
    assert [one["state"] for one in terminal.json("key", "list")] == ["revoked"]


def test_a_person_reads_how_to_use_the_token_and_that_it_is_not_shown_again(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ran = terminal("key", "create", "--for", "jane", "--grant", "reviewer", "--grant", "auditor")
    assert ran.code == 0
    (token,) = [word for word in ran.out.split() if word.startswith("mun_")]
    assert len(token) > 80  # it is not broken, so that it can be copied
    with Fabric.open(home=terminal.home) as fabric:
        assert fabric.keys.check(token).principal.id == "jane"
    assert f'export MUNIMENT_KEY="{token}"' in ran.err.splitlines()
    assert "not shown again" in ran.err
    assert f"tenant     {terminal.tenant}\n" in ran.out
    (one,) = terminal.json("key", "list")
    assert (one["kind"], one["roles"], one["token"]) == ("operator", ["auditor", "reviewer"], None)
    assert one["expires_at"] is not None
    never = terminal.json("key", "create", "--for", "jane", "--grant", "admin", "--expires", "never")
    assert never["expires_at"] is None
    assert terminal.json("key", "list", "--limit", 1, "--after", never["key_id"]) == [one]


def test_keys_of_the_database_say_so_where_a_server_is_named(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUNIMENT_SERVER", "http://127.0.0.1:8600")
    assert "MUNIMENT_SERVER" not in terminal("key", "list").err  # its home is named
    monkeypatch.setenv("MUNIMENT_HOME", str(terminal.home))
    ran = run("key", "list", "--tenant", terminal.tenant)
    assert f"works on the database itself ({terminal.home}), not on the server in" in " ".join(ran.err.split())


def test_what_is_wrong_with_an_order_is_said_by_its_field(terminal: Terminal) -> None:
    for options, field in (
        (("--grant", "god"), "roles"),
        (("--grant", "God"), "roles.0"),
        (("--grant", "agent", "--expires", "soon"), "expires_in"),
        (("--grant", "agent", "--clearance", "GEHEIM"), "clearance"),
        (("--grant", "reviewer", "--for-user", "cust_1"), "user_id"),
        (("--grant", "agent", "--grant", "admin", "--for-kind", "agent"), "roles"),
    ):
        ran = terminal("key", "create", "--for", "bot", *options, "--json")
        assert (ran.code, ran.error["field"]) == (1, field)
    assert terminal.json("key", "list") == []
    assert terminal("key", "revoke", "key_0", "--json").error["code"] == "not_found"
    assert terminal("key", "list", "--role", "auditor", "--json").error["code"] == "role_missing"
    assert terminal("key", "create", "--for", "bot").code == 2


def test_the_help_says_how_long_a_key_lasts_and_shows_examples() -> None:
    said = run("key", "create", "--help").out
    for words in ("90d", "--expires", "never", "muniment key create --for refund_bot --grant agent", "--for-kind"):
        assert words in said


@pytest.mark.rule("ISO-5", "ISO-8")
def test_a_key_is_made_with_the_tools_channels_and_packs_it_is_for(terminal: Terminal) -> None:
    options = ("--tool", "crm.lookup", "--tool", "web", "--channel", "app_chat", "--pin", "acme@1.0.0")
    made = terminal.json("key", "create", "--for", "bot", "--grant", "agent", *options)
    assert {name: sorted(found) for name, found in made["speaks_for"].items()} == {
        "tools": ["crm.lookup", "web"],
        "channels": ["app_chat"],
    }
    assert made["packs"] == ["acme@1.0.0"]
    shown = terminal("key", "list").out
    assert "crm.lookup" in shown and "app_chat" in shown and "acme@1.0.0" in shown


@pytest.mark.rule("ISO-8")
def test_at_the_keyboard_the_command_says_what_an_agent_may_speak_for(terminal: Terminal) -> None:
    typed = (
        "propose",
        "--class",
        "statement",
        "-c",
        "PUBLIC",
        "--origin",
        "tool:crm",
        "--kind",
        "agent",
        "--as",
        "bot",
    )
    trusts: list[float] = []
    for text, options in (("It rains.", ()), ("It snows in March.", ("--tool", "crm"))):
        done = terminal.json(*typed, "--text", text, *options)
        trusts.append(terminal.json("queue", "show", done["proposal_id"])["trust"])
    assert trusts == [0.6, 0.7]
