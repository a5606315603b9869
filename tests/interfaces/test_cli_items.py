"""The command line at items: put, get, search, list, wait and delete."""

import pytest

from tests.interfaces.command import Terminal

WHO = ("--user", "ann", "--as", "bot")


@pytest.mark.rule("ADP-2", "ADP-3")
def test_an_item_is_put_waits_and_is_found_by_whole_parts_once_it_is_approved(terminal: Terminal) -> None:
    put = terminal.json("items", "put", "memories/ann", "food", '{"likes": "pizza"}', *WHO)
    assert put["status"] == "pending"
    assert terminal("items", "get", "memories/ann", "food", *WHO).out.strip() == ""
    assert put["proposal_id"] in terminal("items", "status", "memories", *WHO).out
    terminal.json("approve", put["proposal_id"], "--as", "boris")
    assert '{"likes": "pizza"}' in terminal("items", "get", "memories/ann", "food", *WHO).out
    assert terminal("items", "namespaces", *WHO).out.split() == ["memories/ann"]
    assert "pizza" in terminal("items", "search", "memories", "--query", "food", *WHO).out
    assert "pizza" not in terminal("items", "search", "mem", *WHO).out
    asked = terminal.json("items", "delete", "memories/ann", "food", *WHO)
    assert asked["status"] == "pending"
    assert "delete" in terminal("items", "status", *WHO).out
    assert "pizza" in terminal("items", "get", "memories/ann", "food", *WHO).out


def test_a_value_that_is_no_json_is_refused(terminal: Terminal) -> None:
    ran = terminal("items", "put", "a", "k", "{", *WHO)
    assert ran.code != 0
    assert "value" in ran.err
