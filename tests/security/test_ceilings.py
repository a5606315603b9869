"""A credential sets ceilings and a run can only narrow them: declared roles, kind, users, packs (ISO-5)."""

import hmac
from collections.abc import Iterator
from datetime import UTC
from typing import Any

import psycopg
import pytest
from pydantic_core import to_json

from muniment import Fabric, Principal, RunContext, load_pack
from muniment.access import store as api_keys
from muniment.errors import InvalidInput
from muniment.model.api_key import Credential
from muniment.testing import People, TestServer
from tests.conftest import Connect
from tests.interfaces.http import RunningServer
from tests.security.catalogue import Connection
from tests.stories import promoted

# Juniors see less than an agent without a role of its own.
PACK = """
pack_meta: {id: ranks, version: "1.0.0"}
roles:
  agent: {classifications_allowed: [PUBLIC]}
  senior: {classifications_allowed: [PUBLIC, INTERNAL, CONFIDENTIAL]}
"""
RUN: dict[str, Any] = {"run_id": "r", "user_id": "cust_1"}


@pytest.fixture(scope="module")
def http_server(server: TestServer, database: str) -> Iterator[RunningServer]:
    with RunningServer(server, database, pack=load_pack(PACK)) as opened:
        yield opened


@pytest.fixture
def hidden(http_server: RunningServer, people: People) -> str:
    """The id of a memory that only seniors may recall."""
    return promoted(http_server.local, people, "post", classification="CONFIDENTIAL")


def recalled(http_server: RunningServer, key: str, **run: Any) -> Any:
    return http_server.ask("POST", "/v1/recall", {"run": {**RUN, **run}}, key=key)


@pytest.mark.rule("ISO-5")
def test_a_role_that_a_pack_declares_is_a_right_of_the_key_and_not_of_the_request(
    http_server: RunningServer, people: People, hidden: str
) -> None:
    labels = ["PUBLIC", "INTERNAL", "CONFIDENTIAL"]
    plain = http_server.key(people.run())
    refused = recalled(http_server, plain, role="senior", classification_allowed=labels)
    assert (refused.status_code, refused.json()["code"], refused.json()["field"]) == (403, "denied", "run.role")
    assert "senior" in refused.json()["detail"]
    assert http_server.denials(people)[-1]["code"] == "denied"
    senior = http_server.key(people.run(), roles=["agent", "senior"])
    seen = recalled(http_server, senior, role="senior", classification_allowed=labels)
    assert [one["id"] for one in seen.json()["records"]] == [hidden]
    assert recalled(http_server, senior, classification_allowed=labels).json()["records"] == [], (
        "a run may narrow its role"
    )
    for path in ("/v1/compile", "/v1/explain"):
        body = {"run": {**RUN, "role": "senior"}} | ({"memory_id": hidden} if path == "/v1/explain" else {})
        assert http_server.ask("POST", path, body, key=plain).status_code == 403


@pytest.mark.rule("ISO-5")
def test_a_role_that_a_pack_declares_does_no_verb(http_server: RunningServer, people: People) -> None:
    for roles in (["senior"], ["senior", "agent"]):
        key = http_server.key(people.person("jane"), roles=roles)
        for path in ("/v1/queue", "/v1/events", "/v1/consents", "/v1/packs", "/v1/webhooks"):
            assert http_server.ask("GET", path, key=key).json()["code"] == "role_missing"


@pytest.mark.rule("ISO-5")
def test_a_role_that_no_pack_of_the_tenant_declares_is_given_to_no_key(
    fabric: Fabric, http_server: RunningServer
) -> None:
    # The same database; this fabric's own pack declares no such role, as another tenant's does.
    people = People("tenant_without_seniors")
    for role in ("senior", "boss"):
        with pytest.raises(InvalidInput, match=f"declares no role {role}") as raised:
            fabric.keys.create(people.admin, principal_id="b", kind="agent", roles=["agent", role])
        assert raised.value.field == "roles"
    with pytest.raises(InvalidInput, match="declares no role senior"):
        fabric.recall(people.run(role="senior"))


@pytest.mark.rule("ISO-5")
@pytest.mark.parametrize("kind", ["agent", "end_user"])
@pytest.mark.parametrize("role", ["reviewer", "correction_writer", "privacy_officer", "auditor", "admin"])
def test_no_key_of_an_agent_or_an_end_user_has_a_persons_role(
    http_server: RunningServer, people: People, kind: Any, role: str
) -> None:
    for roles in ([role], ["agent", role], ["agent", "senior", role]):
        with pytest.raises(InvalidInput):
            http_server.local.keys.create(people.admin, principal_id="b", kind=kind, roles=roles, user_id="b")


@pytest.mark.rule("ISO-5")
@pytest.mark.parametrize(
    "changed",
    [
        {"kind": "agent", "roles": "{agent,auditor}"},
        {"kind": "agent", "roles": "{senior}"},
        {"kind": "end_user", "roles": "{agent,admin}", "user_id": "bot"},
        {"kind": "end_user", "roles": "{agent}", "user_id": "somebody_else"},
        {"kind": "operator", "roles": "{agent,auditor}", "user_id": "cust_1"},
        {"kind": "operator", "roles": "{}"},
    ],
)
def test_the_database_takes_no_key_that_reaches_further(
    furnished: dict[str, Any], as_role: Connect, tenant: str, changed: dict[str, Any]
) -> None:
    result = {"user_id": None, **changed}
    with as_role("writer", tenant) as writer, pytest.raises(psycopg.errors.CheckViolation):
        writer.execute(
            "INSERT INTO api_keys (tenant_id, key_id, digest, principal_id, kind, roles, user_id, clearance, created_at,"
            " created_by) VALUES (current_setting('muniment.tenant'), 'key_x', sha256('x'), 'bot', %(kind)s,"
            " %(roles)s, %(user_id)s, '{PUBLIC}', now(), 'ada')",
            result,
        )


@pytest.mark.rule("ISO-5", "ISO-8")
@pytest.mark.parametrize(
    "change",
    [
        "tools = '{*}'",
        "channels = '{*}'",
        "packs = NULL",
        "packs = '{a@1.0.0,b@1.0.0}'",
        "roles = '{agent,senior}'",
        "tools = '{}'",
    ],
)
def test_a_key_whose_ceilings_were_changed_in_the_database_opens_nothing(
    http_server: RunningServer, people: People, owner: Connection, change: str
) -> None:
    made = http_server.local.keys.create(
        people.admin,
        principal_id="b",
        kind="agent",
        roles=["agent"],
        speaks_for={"tools": ["crm"], "channels": ["chat"]},
        packs=["a@1.0.0"],
    )
    token = made.token or ""
    assert http_server.ask("GET", "/v1/whoami", key=token).status_code == 200
    owner.execute(f"UPDATE api_keys SET {change} WHERE tenant_id = %s AND key_id = %s", [people.tenant_id, made.key_id])  # type: ignore[arg-type]
    owner.commit()
    assert http_server.ask("GET", "/v1/whoami", key=token).status_code == 401


@pytest.mark.rule("ISO-5")
def test_a_key_from_before_there_were_such_ceilings_still_opens_and_reaches_no_further(
    fabric: Fabric, people: People
) -> None:
    made = fabric.keys.create(people.admin, principal_id="b", kind="agent", roles=["agent"])
    held = fabric.keys.check(made.token or "")
    assert (held.principal.speaks_for.tools, held.principal.speaks_for.channels, held.packs) == (set(), set(), None)

    async def digests() -> tuple[bytes, bytes]:
        context, parse_token = fabric._fabric._context, api_keys.parse_token(made.token)
        async with context.transaction(people.tenant_id, "writer") as tx:
            tenant_data_key, row = (
                await context.vault.tenant_data_key(tx),
                await tx.row("credential.find", key_id=made.key_id),
            )
        assert row is not None and parse_token is not None
        # The seven fields that a key of then stood for.
        names = ("key_id", "principal_id", "kind", "roles", "user_id", "clearance")
        stood_for = [*(row[name] for name in names), row["expires_at"].astimezone(UTC).isoformat()]
        under = tenant_data_key.derived("api-keys")
        return row["digest"], hmac.digest(under, parse_token.secret + to_json(stood_for), "sha256")

    stored, before = fabric._portal.call(digests)
    assert stored == before


@pytest.mark.rule("ISO-5")
def test_a_run_pins_only_what_its_key_may_pin(http_server: RunningServer, people: People) -> None:
    key = http_server.key(people.run(), packs=["ranks@1.0.0"], clearance=["PUBLIC"])
    refused = recalled(http_server, key, pack="muniment.builtin@1.3.0")
    assert (refused.status_code, refused.json()["field"]) == (403, "run.pack")
    assert recalled(http_server, key, pack="ranks@1.0.0").json().get("field") != "run.pack"
    none = http_server.key(people.run(), packs=[])
    assert recalled(http_server, none, pack="ranks@1.0.0").json()["field"] == "run.pack"


@pytest.mark.rule("ISO-5")
def test_in_a_program_of_ones_own_a_run_names_the_role_it_acts_in_among_those_it_holds() -> None:
    given: dict[str, Any] = {"tenant_id": "t", "run_id": "r", "agent_id": "bot"}
    with pytest.raises(InvalidInput) as raised:
        RunContext(**given, role="senior")
    assert raised.value.field == "role"
    run = RunContext(**given, role="senior", roles={"senior", "admin"})
    assert run.principal.roles == {"agent", "senior"}


@pytest.mark.rule("ISO-5")
def test_over_mcp_too_a_run_has_no_role_and_no_voice_beyond_its_keys(
    http_server: RunningServer, people: People
) -> None:
    key = http_server.key(people.run(), speaks_for={})
    for run in (
        '{"run_id": "r", "role": "senior"}',
        '{"run_id": "r", "speaks_for": {"channels": ["*"]}}',
        '{"run_id": "r", "roles": ["senior"], "role": "senior"}',
    ):
        answer = http_server.ask("POST", "/mcp", {}, key=key, headers={"Muniment-Run": run})
        assert answer.status_code in (403, 422), answer.text


@pytest.mark.rule("ISO-5", "ISO-8")
def test_an_end_users_key_is_for_that_user_alone(http_server: RunningServer, people: People) -> None:
    with pytest.raises(InvalidInput, match="only for that user"):
        http_server.local.keys.create(
            people.admin, principal_id="cust_1", kind="end_user", roles=["agent"], user_id="cust_2"
        )
    key = http_server.key(
        Principal(tenant_id=people.tenant_id, id="cust_1", kind="end_user", roles={"agent"}), user_id="cust_1"
    )
    body = {"kind": "message", "text": "I like tea.", "classification": "PUBLIC"}
    assert http_server.ask("POST", "/v1/captures", body, key=key).status_code == 201
    assert http_server.ask("POST", "/v1/captures", {**body, "user_id": "cust_2"}, key=key).status_code == 422
    assert http_server.ask("POST", "/v1/captures", {**body, "run": RUN}, key=key).status_code == 422
    assert http_server.ask("POST", "/v1/recall", {"run": RUN}, key=key).status_code == 422
    http_server.local.consolidate(people.tenant_id)
    (item, *_) = http_server.local.queue.list(people.reviewer)
    assert (item.candidate.source, item.candidate.scope.user_id) == ("end_user", "cust_1")


@pytest.mark.rule("ISO-5")
def test_a_credential_of_an_end_user_cannot_be_made_for_another() -> None:
    user = Principal(tenant_id="t", id="cust_1", kind="end_user", roles={"agent"})
    assert Credential(principal=user, user_id="cust_1").user_id == "cust_1"
    for other in (None, "cust_2"):
        with pytest.raises(ValueError, match="only for that user"):
            Credential(principal=user, user_id=other)
