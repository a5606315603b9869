"""An assistant that signs in by OAuth: it is told which issuer to ask, and comes in with that issuer's token."""

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest

from muniment.http.oidc import OidcSettings
from muniment.testing import People, TestServer
from tests.interfaces.assistant import over_http
from tests.interfaces.http import RunningServer
from tests.interfaces.oidc_issuer import ISSUER, SAID, Issuer, TokenChecks
from tests.server_thread import NO_LIMITS
from tests.stories import promoted

HELLO = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.fixture
def http_server(server: TestServer, database: str, issuer: Issuer) -> Iterator[RunningServer]:
    claims = {"kind_claim": "kind", "user_claim": "on_behalf_of"}
    oidc = OidcSettings(**SAID | claims | {"keys": issuer.url, "allow_private": True})
    with RunningServer(server, database, settings=replace(NO_LIMITS, oidc=oidc)) as running:
        yield running


def test_an_assistant_without_a_token_finds_the_issuer(http_server: RunningServer) -> None:
    refused = http_server.http.post("/mcp", json=HELLO)
    assert refused.status_code == 401
    found = re.search(r'resource_metadata="([^"]+)"', refused.headers["www-authenticate"])
    assert found is not None and found[1] == f"{http_server.url}/.well-known/oauth-protected-resource/mcp"
    for place in (found[1], "/.well-known/oauth-protected-resource"):
        said = http_server.http.get(place).json()
        assert (said["resource"], said["authorization_servers"]) == (f"{http_server.url}/mcp", [ISSUER])
    other = http_server.http.get("/v1/whoami")
    assert other.status_code == 401 and "resource_metadata" not in other.headers["www-authenticate"]


@pytest.mark.rule("ISO-2", "ISO-5")
def test_with_a_token_for_an_agent_it_sees_what_its_user_may_see(
    http_server: RunningServer, people: People, issuer: Issuer
) -> None:
    mine = promoted(http_server.local, people)
    promoted(http_server.local, people, "fax", user_id="cust_2")
    checks = TokenChecks(issuer.url, http_server.clock)
    token = checks.token(org=people.tenant_id, kind="agent", groups=["bots"], on_behalf_of="cust_1")
    with over_http(http_server.url, token) as assistant:
        assert "my_memory" in assistant.tools()
        assert [one["id"] for one in assistant.ask("recall")["records"]] == [mine]


def test_a_server_that_accepts_no_issuer_names_none(server: TestServer, database: str) -> None:
    with RunningServer(server, database) as running:
        assert running.http.get("/.well-known/oauth-protected-resource/mcp").status_code == 404
        assert "resource_metadata" not in running.http.post("/mcp", json=HELLO).headers["www-authenticate"]
