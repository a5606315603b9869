"""Where a read was answered is told by every interface: HTTP, client, command line, console, Prometheus (SCL-4)."""

import base64
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from muniment.client import Client
from muniment.model.reads import noting_reads, parse_header
from muniment.testing import People
from muniment.testing.database import MASTER_KEYS
from tests.console.browser import words
from tests.faults.replicas import Servers, history, opened, primary_and_standby
from tests.faults.servers import eventually
from tests.interfaces.command import CommandResult, run
from tests.server_thread import RemoteFabric, ServerThread

HEADER = "Muniment-Read-From"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with primary_and_standby(tmp_path_factory.mktemp("replica")) as found:
        yield found


@pytest.fixture(scope="module")
def remote(servers: Servers) -> Iterator[RemoteFabric]:
    """A server whose auditors read the standby."""
    with ServerThread.on(servers.url, replica_url=servers.standby) as served, opened(servers) as local:
        yield RemoteFabric(local, served.url, served=None)


@pytest.mark.rule("SCL-4")
def test_a_header_says_where_a_read_was_answered_and_other_calls_have_none(
    servers: Servers, remote: RemoteFabric, tenant: str
) -> None:
    people = People(tenant)
    history(remote.local, people)
    key = remote.token(people.auditor)
    servers.caught_up()
    with httpx2.Client(base_url=remote.url, headers={"Authorization": f"Bearer {key}"}, timeout=30) as http:
        for path in ("events", "recalls", "archives", "refusals", "refusals/counts", "metrics"):
            answer = http.get(f"/v1/{path}")
            found = parse_header(answer.headers[HEADER])
            assert answer.status_code == 200 and found is not None and found.source == "standby", answer.headers
            assert found.lag_s is not None and found.lag_s < 5
        answer = http.post("/v1/verify")
        assert answer.json()["ok"] and answer.json()["read_from"]["source"] == "standby"
        text = http.get("/v1/metrics", headers={"Accept": "text/plain"}).text
        assert f'muniment_read_lag_seconds{{tenant="{tenant}"}} 0.' in text
        for path in ("memories", "erasures", "chain/head", "captures"):
            assert HEADER not in http.get(f"/v1/{path}").headers, path
        # What the caller names is newer than what the standby has.
        with servers.paused():
            remote.local.capture(people.service, kind="message", text="hello", classification="INTERNAL")
            last = remote.local.events(people.auditor, latest=True, limit=1)[0].seq
            answer = http.get("/v1/events", params={"after": last})
            assert answer.headers[HEADER] == "primary; why=behind"
        shown = httpx2.get(f"{remote.url}/metrics").text
        assert "muniment_replica_lag_seconds 0." in shown
        assert 'muniment_replica_reads_total{answered="behind"} 1.0' in shown
        assert 'muniment_replica_reads_total{answered="standby"}' in shown


@pytest.mark.rule("SCL-4")
def test_a_client_learns_it_too_and_who_follows_the_log_reads_the_primary(
    servers: Servers, remote: RemoteFabric, tenant: str
) -> None:
    people = People(tenant)
    history(remote.local, people)
    key = remote.token(people.auditor)
    servers.caught_up()
    with Client.open(remote.url, key) as client, noting_reads() as noted:
        assert client.events(people.auditor)
    assert [one.source for one in noted] == ["standby"]
    headers = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream"}
    with servers.paused():
        remote.local.capture(people.service, kind="message", text="hello", classification="INTERNAL")
        last = remote.local.events(people.auditor, latest=True, limit=1)[0]
        with httpx2.stream("GET", f"{remote.url}/v1/events", headers=headers, timeout=30) as stream:
            assert any(last.event_id in line for line in stream.iter_lines())


@pytest.mark.rule("SCL-4")
def test_the_console_says_it_on_the_pages_of_audit_and_metrics(
    servers: Servers, remote: RemoteFabric, tenant: str
) -> None:
    people = People(tenant)
    history(remote.local, people)
    key = remote.token(people.auditor)
    servers.caught_up()
    with httpx2.Client(base_url=remote.url, headers={"Accept": "text/html"}, timeout=30) as http:
        http.post("/console/signin", data={"key": key})

        def told(path: str) -> bool:
            return "Read from a standby, at most 0." in words(http.get(f"/console/{path}").text)

        for path in ("audit", "audit/security", "metrics"):
            # Signing in wrote: until the standby has that, the primary is read.
            eventually(lambda path=path: told(path), 20)
        assert "data-read-from" not in http.get("/console/audit/chain").text
        with servers.paused():
            remote.local.capture(people.service, kind="message", text="hello", classification="INTERNAL")
            last = remote.local.events(people.auditor, latest=True, limit=1)[0].seq
            page = words(http.get("/console/audit", params={"before": last + 1}).text)
            assert "Read from the primary: the standby has not replayed what this read depends on." in page


@pytest.mark.rule("SCL-4")
def test_the_command_line_says_it_beside_the_result_and_in_the_status_of_the_database(
    servers: Servers, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = People(tenant)
    with opened(servers) as fabric:
        history(fabric, people)
    servers.caught_up()
    secret = base64.b64encode(b"a master key for tests, 32 bytes").decode()
    assert MASTER_KEYS.login_secret()
    for name, value in {"MASTER_KEY": secret, "DATABASE_URL": servers.url, "REPLICA_URL": servers.standby}.items():
        monkeypatch.setenv(f"MUNIMENT_{name}", value)

    def command(*words: str) -> CommandResult:
        done = run(*words)
        assert done.code == 0, done.err
        return done

    for name in ("events", "metrics", "verify", "refusals"):
        assert "read from a standby, at most 0." in command(name, "--tenant", tenant).err
    found: Any = command("metrics", "--json", "--tenant", tenant)
    assert found.err == "" and found.json["read_from"]["source"] == "standby"
    assert "s behind" in command("db", "status").out
    assert command("db", "status", "--json").json["replica"]["lag_s"] < 5
    monkeypatch.setenv("MUNIMENT_REPLICA_URL", servers.primary)
    assert "not read: leads to a primary" in command("db", "status").out
    assert "read from the primary: the standby has become a primary" in command("events", "--tenant", tenant).err
