"""Every route of the server, from its own OpenAPI document: who may use it, and what others get."""

from collections.abc import Iterator
from itertools import count
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from fastapi import APIRouter, FastAPI
from fastapi.routing import iter_route_contexts

from muniment.access.roles import ALLOWED, PERSONS_ONLY
from muniment.console.app import PREFIX as CONSOLE
from muniment.http import openapi as documentation
from muniment.http.app import PARTS, create_app
from muniment.http.caller import May
from muniment.model.context import Role
from muniment.testing import People, TestServer
from tests.interfaces.http import OPEN, RunningServer, Story, body_of, holder, tenant_state, without_number

ROLES: tuple[Role, ...] = get_args(Role)
NEVER = "0" * 28
# Ids in bodies and queries, of routes that have none in their path or more than that one.
_ANY: dict[str, Any] = {
    "purpose": "p",
    "predicates_allowed": ["*"],
    "data_classifications_allowed": ["PII"],
    "basis": "b",
}
ALSO = [
    ("correction_writer", "POST", "/v1/corrections", {"memory_id": "{memory_id}", "value": "x"}),
    ("reviewer", "POST", "/v1/explain", {"memory_id": "{memory_id}"}),
    ("agent", "POST", "/v1/explain", {"memory_id": "{memory_id}", "run": {"run_id": "r"}}),
    ("reviewer", "POST", "/v1/explain", {"memory_id": "{own_memory}", "recall_id": "{recall_id}"}),
    ("agent", "POST", "/v1/recall", {"run": {"run_id": "r", "pack": "{ref}"}}),
    ("agent", "POST", "/v1/compile", {"run": {"run_id": "r", "pack": "{ref}"}}),
    ("reviewer", "POST", "/v1/queue/approve", {"proposal_ids": ["{proposal_id}"]}),
    ("reviewer", "POST", "/v1/queue/{own_proposal}/approve", {"supersedes": "{memory_id}"}),
    ("privacy_officer", "POST", "/v1/consents", {"subject": "customer:a", **_ANY, "supersedes": "{consent_id}"}),
    ("auditor", "POST", "/v1/packs/compare", {"one": "{ref}", "other": "{ref}"}),
    ("auditor", "POST", "/v1/packs/backtest", {"pack": "{ref}"}),
    ("auditor", "POST", "/v1/packs/backtest", {"pack": "{own_ref}", "against": "{ref}"}),
    ("reviewer", "POST", "/v1/packs/backfills", {"ref": "{ref}"}),
    ("admin", "POST", "/v1/packs/{own_ref}/activate", {"reason": "r", "expected": "{ref}"}),
    ("admin", "POST", "/v1/work/requeue", {"capture_ids": ["{capture_id}"]}),
    ("reviewer", "GET", "/v1/queue?after={proposal_id}", None),
    ("reviewer", "GET", "/v1/recalls?after={recall_id}", None),
    ("reviewer", "GET", "/v1/recalls?memory_id={memory_id}", None),
    ("reviewer", "GET", "/v1/contradictions?proposal_id={proposal_id}", None),
    ("reviewer", "GET", "/v1/contradictions?after={contradiction_id}", None),
    ("privacy_officer", "GET", "/v1/consents?after={consent_id}", None),
    ("auditor", "GET", "/v1/archives?after={capture_id}", None),
    ("auditor", "GET", "/v1/erasures?after={capture_id}", None),
    ("admin", "GET", "/v1/packs?after={ref}", None),
    ("admin", "GET", "/v1/webhooks?after={webhook_id}", None),
    ("admin", "GET", "/v1/work/parked?after={capture_id}", None),
    ("auditor", "GET", "/v1/captures?after={capture_id}", None),
    ("reviewer", "GET", "/v1/refusals?capture_id={capture_id}", None),
    ("reviewer", "GET", "/v1/refusals?after={capture_id}.1.0", None),
    ("correction_writer", "GET", "/v1/statements?after={capture_id}", None),
]  # fmt: skip


@pytest.fixture(scope="module")
def http_server(server: TestServer, database: str) -> Iterator[RunningServer]:
    with RunningServer(server, database) as opened:
        yield opened


@pytest.fixture(scope="module")
def story(http_server: RunningServer) -> Story:
    return Story(http_server, People("tenant_of_routes"))


@pytest.fixture(scope="module")
def app(http_server: RunningServer) -> FastAPI:
    return create_app(http_server.local._fabric)


def test_every_route_is_in_the_document_with_what_it_asks_for(app: FastAPI, http_server: RunningServer) -> None:
    served = {
        (method, str(route.path)): route
        for route in iter_route_contexts(app.routes)
        for method in getattr(route, "methods", None) or ()
    }
    outside = {path for _, path in served if not path.startswith(("/v1/", CONSOLE))}
    assert outside == {*OPEN, "/mcp", "/"}
    documented = {(method, path): operation for method, path, operation in http_server.routes()}
    assert documented.keys() == {place for place in served if place[1].startswith("/v1/")}
    for place, operation in documented.items():
        verbs = operation["x-verbs"]
        assert verbs or place == ("GET", "/v1/whoami"), f"{place} lets anybody in"
        assert set(operation["x-roles"]) == {role for verb in verbs for role in ALLOWED[verb]}
        assert operation["x-persons-only"] == (bool(verbs) and PERSONS_ONLY.issuperset(verbs))
        assert operation["security"] == [{"HTTPBearer": []}]
        assert operation["description"], place


def test_a_route_that_says_nothing_of_its_verb_cannot_be_served(http_server: RunningServer) -> None:
    app, router = create_app(http_server.local._fabric), APIRouter(prefix="/v1")
    router.add_api_route("/backdoor", lambda: "come in")
    app.include_router(router)
    with pytest.raises(ValueError, match="unpack"):
        documentation.openapi(app, (*PARTS, SimpleNamespace(router=router)))


@pytest.mark.rule("ISO-2")
def test_only_what_holds_nothing_of_a_tenant_answers_without_a_credential(
    http_server: RunningServer, story: Story
) -> None:
    for path in OPEN:
        answer = http_server.ask("GET", path)
        assert answer.status_code == 200, path
        for secret in (story.people.tenant_id, *story.ids.values()):
            assert secret == "preference" or secret not in answer.text, path
    assert http_server.ask("POST", "/mcp", {}).status_code == http_server.ask("GET", "/mcp").status_code == 401
    for path in ("/v1", "/redoc", "/docs/oauth2-redirect", "/openapi.yaml", "/static"):
        assert http_server.ask("GET", path).status_code == 404, path


@pytest.mark.rule("ISO-2", "ERR-1")
def test_no_route_answers_who_brings_no_credential_or_none_that_holds(
    http_server: RunningServer, story: Story, others: People
) -> None:
    good, wrong = story.token("admin"), count()
    revoked, key_id = http_server.made(story.people.admin)
    http_server.local.keys.revoke(story.people.admin, key_id)
    expired = http_server.key(story.people.admin, expires_in="1d")
    unknown = http_server.key(others.admin).rpartition("_")[0] + "_" + good.rpartition("_")[2]
    refused = {"unknown": unknown, "cut off": good[:-1], "revoked": revoked, "expired": expired, "nonsense": "mun_x"}
    http_server.clock.advance(days=2)
    result: list[Any] = []
    for method, path, _ in http_server.routes():
        place = path.format(**story.ids)
        answer = http_server.ask(method, place, body_of(method, path, story.ids))
        assert (answer.status_code, answer.json()["code"]) == (401, "unauthenticated"), path
        for scheme in (f"Basic {good}", good, "Bearer", f"Bearer {good} x", f"Token {good}"):
            assert (
                http_server.ask(method, place, headers={"Authorization": scheme}).json()["detail"]
                == answer.json()["detail"]
            )
        for what, key in refused.items():
            # Each from another address: whoever guesses is made to wait.
            address = {"X-Forwarded-For": f"192.0.2.{next(wrong)}"}
            answer = http_server.ask(method, place, body_of(method, path, story.ids), key=key, headers=address)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer realm="muniment"'), what
            result.append(without_number(answer))
    assert all(one == result[0] for one in result), "which of these it was is nobody's business"
    assert result[0]["detail"] == "the credential is not valid, has expired or was revoked"


@pytest.mark.rule("AUD-3", "ISO-5", "REV-4")
def test_every_role_that_a_route_does_not_name_is_refused_and_that_is_written_down(
    http_server: RunningServer, story: Story
) -> None:
    expected: list[tuple[str, str]] = []
    before = len(http_server.denials(story.people))
    state = tenant_state(http_server, story.people)
    for method, path, operation in http_server.routes():
        for role in (role for role in ROLES if operation["x-verbs"] and role not in operation["x-roles"]):
            place = path.format(**story.ids)
            answer = http_server.ask(method, place, body_of(method, path, story.ids), key=story.token(role), once="k")
            assert (answer.status_code, answer.json()["code"]) == (403, "role_missing"), (role, method, path)
            expected.append((operation["x-verbs"][-1 if role == "agent" else 0], holder(story.people, role).kind))
    denied = http_server.denials(story.people)[before:]
    assert [(one["verb"], one["kind"]) for one in denied] == expected
    assert {one["code"] for one in denied} == {"role_missing"}
    assert tenant_state(http_server, story.people) == state


@pytest.mark.rule("REV-4", "ISO-5")
def test_no_role_makes_an_agent_or_a_service_a_person(app: FastAPI, http_server: RunningServer, story: Story) -> None:
    # No key of that kind can be had, so it is the verb that the route names which is asked.
    verbs = {
        (method, str(route.path)): dependency.call.verb
        for route in iter_route_contexts(app.routes)
        for method in getattr(route, "methods", None) or ()
        for dependency in getattr(getattr(route, "dependant", None), "dependencies", ())
        if isinstance(dependency.call, May)
    }
    personal = [place for place, verb in verbs.items() if verb is not None and verb.right in PERSONS_ONLY]
    assert {(m, p) for m, p, operation in http_server.routes() if operation["x-persons-only"]} == set(personal)
    assert len(personal) > 25
    for kind in ("agent", "system"):
        key = http_server.key(story.people.service.model_copy(update={"id": f"some_{kind}", "kind": kind}))
        for method, path in personal:
            answer = http_server.ask(method, path.format(**story.ids), body_of(method, path, story.ids), key=key)
            assert (answer.status_code, answer.json()["code"]) == (403, "role_missing"), (kind, path)
            assert "person_required, it needs an operator" in answer.json()["detail"]


@pytest.mark.rule("ISO-4", "ISO-1")
def test_another_tenants_ids_answer_as_ids_that_never_were(
    http_server: RunningServer, story: Story, people: People
) -> None:
    theirs = {**story.ids, "write_class": "preference"}
    never = {name: f"{value.split('_', 1)[0]}_{NEVER}" for name, value in theirs.items()}
    never |= {"ref": "acme@9.9.9", "write_class": "preference"}
    own = Story(http_server, people)
    ours = {"own_memory": own.ids["memory_id"], "own_proposal": own.ids["proposal_id"], "own_ref": own.ids["ref"]}
    by_path = [
        ((operation["x-roles"][-1], *operation["x-roles-also"]), method, path, body_of(method, path))
        for method, path, operation in http_server.routes()
        if "{" in path and "{write_class}" not in path and "{session_id}" not in path
    ]
    assert len(by_path) > 15
    state = tenant_state(http_server, story.people)
    for roles, method, path, body in [*by_path, *(((role,), how, where, what) for role, how, where, what in ALSO)]:
        their, none = (
            http_server.ask(method, path.format(**ids | ours), _filled(body, ids | ours), key=own.token(*roles))
            for ids in (theirs, never)
        )
        assert _blind(their, theirs) == _blind(none, never), (method, path)
        if "{" in path and "?" not in path and "own_" not in path:
            assert their.status_code == 404, (method, path, their.text)
    assert tenant_state(http_server, story.people) == state


def _filled(value: Any, ids: dict[str, str]) -> Any:
    match value:
        case str():
            return value.format(**ids) if value.startswith("{") else value
        case dict():
            return {name: _filled(one, ids) for name, one in value.items()}
        case list():
            return [_filled(one, ids) for one in value]
        case _:
            return value


def _blind(answer: Any, ids: dict[str, str]) -> tuple[int, str]:
    """Status and text, but for the id that was asked for, which is the caller's own word, and the request's number."""
    text = answer.text.replace(answer.headers["x-request-id"], "")
    for one in ids.values():
        text = text.replace(one, "")
    return answer.status_code, text
