"""The search for a name over HTTP and on the command line."""

from typing import Any

import pytest

from muniment.testing import People, TestServer
from tests.interfaces.command import Terminal
from tests.interfaces.http import RunningServer
from tests.stories import promoted

NAME = "Anna Lindqvist"


@pytest.fixture(scope="module")
def http_server(server: TestServer, database: str) -> Any:
    with RunningServer(server, database) as opened:
        yield opened


@pytest.fixture
def memory_id(http_server: RunningServer, people: People) -> str:
    return promoted(http_server.local, people, f"a garden with {NAME}", predicate="shares")


@pytest.mark.rule("ERA-5")
def test_over_http_an_officer_searches_and_takes_a_memory_away(
    http_server: RunningServer, people: People, memory_id: str
) -> None:
    officer, reviewer = http_server.key(people.officer), http_server.key(people.reviewer)
    erased = http_server.local.erase(people.officer, subject="customer:anna_17")
    body = {"name": NAME, "erasure_id": erased.erasure_id}
    assert http_server.ask("POST", "/v1/erasures/search", body, key=reviewer).status_code == 403
    answer = http_server.ask("POST", "/v1/erasures/search", body, key=officer)
    assert answer.status_code == 200
    found = answer.json()
    assert found["finished"]
    assert memory_id in {hit["memory_id"] for hit in found["hits"]}
    assert http_server.ask("POST", "/v1/erasures/search", {"name": "x"}, key=officer).status_code == 422
    listed = http_server.ask("GET", "/v1/erasures", key=officer).json()["items"]
    assert [one["name_search"] is not None for one in listed] == [True]
    retract = f"/v1/memories/{memory_id}/retract"
    assert http_server.ask("POST", retract, {"reason": "wrong"}, key=officer).status_code == 403
    assert http_server.ask("POST", retract, {"reason": "erased"}, key=officer).json()["reason"] == "erased"
    assert http_server.local.get(people.auditor, memory_id).text == ""


@pytest.mark.rule("ERA-5")
def test_the_command_goes_through_all_pages_and_erases_nothing(terminal: Terminal) -> None:
    terminal.json("capture", f"Bert knows {NAME} well", "-c", "INTERNAL")
    whole = terminal.json("erase", "--search", NAME)
    assert (whole["finished"], [hit["place"] for hit in whole["hits"]]) == (True, ["capture"])
    assert "1 of 1 texts contain the name" in terminal("erase", "--search", NAME).out
    assert terminal.json("erasures") == []
    for wrong in (("customer:c", "--search", NAME), ("--erasure", "era_1")):
        assert terminal("erase", *wrong, "--json").error["code"] == "invalid_input"
    receipt = terminal.json("erase", "customer:anna_17", "--yes")
    assert "name search  not done" in terminal("erasures").out
    terminal.json("erase", "--search", NAME, "--erasure", receipt["erasure_id"])
    assert "name search  not done" not in terminal("erasures").out
