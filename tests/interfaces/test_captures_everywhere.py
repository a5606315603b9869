"""Captures and refusals through HTTP, the client and the command line; every filter of the queue on the command line."""

from collections.abc import Iterator
from typing import Any

import pytest

from muniment.client import Client
from muniment.errors import Conflict, NotFound, RoleMissing
from muniment.testing import People, TestServer
from tests.interfaces.command import Terminal
from tests.interfaces.http import RunningServer

SECRET: dict[str, Any] = {
    "kind": "statement",
    "text": "keeps bees",
    "classification": "PII",
    "subject": "customer:cust_1",
}


@pytest.fixture(scope="module")
def http_server(server: TestServer, database: str) -> Iterator[RunningServer]:
    with RunningServer(server, database) as opened:
        yield opened


def refused(http_server: RunningServer, people: People) -> str:
    capture_id = http_server.local.capture(people.run(), **SECRET).capture_id
    http_server.local.consolidate(people.tenant_id)
    return capture_id


@pytest.mark.rule("CAP-11")
def test_captures_are_listed_read_and_run_again_over_http(http_server: RunningServer, people: People) -> None:
    capture_id = refused(http_server, people)
    auditor, reviewer = http_server.key(people.auditor), http_server.key(people.reviewer)
    (entry,) = http_server.ask("GET", "/v1/captures?state=refused&kind=statement", key=auditor).json()["items"]
    assert (entry["capture_id"], "content" in entry) == (capture_id, False)
    read = http_server.ask("GET", f"/v1/captures/{capture_id}", key=reviewer).json()
    assert read["capture"]["content"]["text"] == "keeps bees"
    (no,) = http_server.ask("GET", "/v1/refusals?gate=consent&latest=true", key=reviewer).json()["items"]
    assert (no["capture_id"], no["reason"]) == (capture_id, "consent_missing")
    path = f"/v1/captures/{capture_id}/rerun"
    once = {"Idempotency-Key": b"again"}
    first = http_server.ask("POST", path, {"reason": "consent_changed"}, key=reviewer, headers=once)
    assert (first.status_code, first.json()["number"]) == (200, 2)
    again = http_server.ask("POST", path, {"reason": "consent_changed"}, key=reviewer, headers=once)
    assert (again.status_code, again.json()) == (200, first.json()), "the same request is not carried out twice"
    other = http_server.ask("POST", path, {"reason": "requested"}, key=reviewer)
    assert (other.status_code, other.json()["code"]) == (409, "conflict")
    assert http_server.ask("POST", path, {"reason": "because"}, key=reviewer).status_code == 422
    assert http_server.ask("POST", path, {}, key=reviewer).status_code == 422
    assert http_server.ask("POST", path, {"reason": "requested"}, key=auditor).status_code == 403
    for wrong in ("state=new", "kind=x", "since=yesterday", "limit=0"):
        assert http_server.ask("GET", f"/v1/captures?{wrong}", key=auditor).status_code == 422


@pytest.mark.rule("CAP-11")
def test_a_client_has_the_same_verbs(http_server: RunningServer, people: People) -> None:
    capture_id = refused(http_server, people)
    with Client.open(http_server.url, http_server.key(people.reviewer)) as client:
        assert [one.capture_id for one in client.captures.list(people.reviewer, state="refused")] == [capture_id]
        assert client.captures.get(people.reviewer, capture_id).state == "refused"
        assert client.refusals.list(people.reviewer, latest=True)[0].gate == "consent"
        assert client.captures.rerun(people.reviewer, capture_id, "requested").number == 2
        with pytest.raises(Conflict):
            client.captures.rerun(people.reviewer, capture_id, "requested")
        with pytest.raises(NotFound):
            client.captures.get(people.reviewer, "cap_none")
    with Client.open(http_server.url, http_server.key(people.admin)) as client, pytest.raises(RoleMissing):
        client.captures.list(people.admin)


@pytest.mark.rule("CAP-11")
def test_captures_and_refusals_at_the_command_line(terminal: Terminal) -> None:
    capture = terminal.json("capture", "keeps bees", "-c", "PII", "--subject", "customer:cust_1")["capture_id"]
    assert [one["state"] for one in terminal.json("captures")] == ["waiting"]
    terminal("consolidate")
    assert [one["capture_id"] for one in terminal.json("captures", "--state", "refused")] == [capture]
    assert terminal.json("captures", "--capture-kind", "message") == []
    (no,) = terminal.json("refusals", "--gate", "consent", "--latest")
    assert (no["capture_id"], no["reason"]) == (capture, "consent_missing")
    assert "consent  consent_missing" in terminal("refusals").out
    read = terminal("captures", "get", capture)
    assert "keeps bees" in read.out
    assert "refused by consent: consent_missing" in read.out
    assert terminal.json("captures", "rerun", capture, "--reason", "consent_changed")["number"] == 2
    assert terminal("captures", "rerun", capture).code == 1
    assert terminal("captures", "get", "cap_none").code == 1
    assert "waiting" in terminal("captures", "list", "--subject", "customer:cust_1").out


@pytest.mark.rule("REV-5")
def test_the_queue_has_every_filter_on_the_command_line(terminal: Terminal) -> None:
    def propose(predicate: str, *more: str) -> str:
        where = ("--class", "preference", "--entity", "customer:c", "--predicate", predicate, "--value", '"v"')
        return terminal.json("propose", *where, "-c", "INTERNAL", *more)["proposal_id"]

    one = propose("likes")
    terminal("assign", one, "--to", "clara")

    def listed(*filters: str) -> list[str]:
        return [item["proposal_id"] for item in terminal.json("queue", *filters)]

    both = [
        (("--tier", "durable"), ("--tier", "working")),
        (("--risk", "low"), ("--risk", "high")),
        (("--reason", "operator_source"), ("--reason", "low_trust")),
        (("--entity", "customer:c"), ("--entity", "customer:d")),
        (("--assignee", "clara"), ("--assignee", "boris")),
        (("--status", "pending"), ("--status", "held")),
        (("--not-overdue",), ("--overdue",)),
    ]
    for fits, does_not in both:
        assert (listed(*fits), listed(*does_not)) == ([one], []), fits
    assert terminal("queue", "--reason", "nonsense").code == 2
