"""The server against its own document: made-up requests, good and bad, and bodies of any bytes at all."""

import json
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from itertools import count
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Unsatisfiable
from schemathesis import Case
from schemathesis.config import SchemathesisConfig
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.schemas import OpenApiSchema

from muniment.model.context import Principal
from muniment.testing import People, TestServer
from tests.interfaces.http import PROBLEM, RunningServer, Story, body_of
from tests.soak import examples

CHECKED = SchemathesisConfig.from_dict(
    {
        "generation": {"allow-x00": True, "deterministic": True, "allow-extra-parameters": False},
        "checks": {
            # Rules beyond the schema: what hangs together, what is there, what was done before.
            "positive_data_acceptance": {"expected-statuses": ["2xx", "403", "404", "409", "410", "412", "413", "422"]},
            "negative_data_rejection": {
                "expected-statuses": ["401", "403", "404", "405", "409", "412", "413", "415", "422"]
            },
        },
    }
)
FEW = settings(
    derandomize=True,
    deadline=None,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)


# Written by hand, and not taken from the declarations: what programs rely on.
ROUTES = """
    GET    /adoption
    GET    /archives
    POST   /archives/verify
    GET    /captures
    POST   /captures
    GET    /captures/{capture_id}
    POST   /captures/{capture_id}/rerun
    GET    /chain/head
    POST   /codes
    POST   /compile
    GET    /consents
    POST   /consents
    POST   /consents/documents
    GET    /consents/reach
    GET    /consents/terms
    GET    /consents/{consent_id}/document
    POST   /consents/{consent_id}/revoke
    GET    /contradictions
    GET    /contradictions/{contradiction_id}
    POST   /contradictions/{contradiction_id}/resolve
    POST   /corrections
    GET    /erasure-requests
    POST   /erasure-requests/{request_id}/refuse
    POST   /erasure-requests/{request_id}/release
    GET    /erasures
    POST   /erasures
    POST   /erasures/facts
    GET    /erasures/facts/{fact_id}
    POST   /erasures/search
    GET    /events
    POST   /explain
    POST   /exports
    POST   /golden
    POST   /imports
    POST   /imports/outcomes
    POST   /imports/preview
    GET    /imports/{import_id}
    POST   /imports/{import_id}/approve
    POST   /items
    POST   /items/delete
    POST   /items/get
    POST   /items/namespaces
    POST   /items/search
    POST   /items/status
    GET    /me/captures
    GET    /me/consent-requests
    POST   /me/consent-requests/{request_id}/answer
    GET    /me/consents
    POST   /me/consents
    POST   /me/consents/{consent_id}/revoke
    POST   /me/erasure
    GET    /me/export
    GET    /me/memories
    GET    /me/memories/{memory_id}
    POST   /me/memories/{memory_id}/allow-again
    POST   /me/memories/{memory_id}/undo
    POST   /me/memories/{memory_id}/correct
    POST   /me/memories/{memory_id}/forget
    POST   /me/outcomes
    GET    /me/proposals
    POST   /me/proposals/{proposal_id}/confirm
    POST   /me/proposals/{proposal_id}/decline
    GET    /me/recalls
    GET    /me/view
    GET    /memories
    GET    /memories/changes
    GET    /memories/graph
    GET    /memories/moments
    GET    /memories/{memory_id}
    POST   /memories/{memory_id}/retract
    GET    /memories/{memory_id}/trail
    POST   /memories/{memory_id}/undo
    GET    /metrics
    GET    /packs
    POST   /packs
    GET    /packs/activations
    GET    /packs/backfills
    POST   /packs/backfills
    POST   /packs/backtest
    POST   /packs/compare
    POST   /packs/exceptions
    GET    /packs/in-force
    GET    /packs/{ref}
    POST   /packs/{ref}/activate
    GET    /packs/{ref}/activation
    POST   /packs/{ref}/retire
    GET    /people/held
    GET    /people/memories
    GET    /people/reads
    GET    /people/view
    GET    /profiles
    POST   /proposals
    GET    /queue
    POST   /queue/approve
    POST   /queue/assign
    GET    /queue/counts
    GET    /queue/groups
    GET    /queue/overview
    POST   /queue/plan
    POST   /queue/reject
    GET    /queue/progress
    POST   /queue/search
    GET    /queue/second-look
    POST   /queue/{proposal_id}/comments
    POST   /queue/{proposal_id}/second-look
    POST   /statements/check
    GET    /subjects/name
    POST   /subjects/name
    GET    /views
    POST   /views
    POST   /views/remove
    GET    /queue/{proposal_id}
    POST   /queue/{proposal_id}/approve
    POST   /queue/{proposal_id}/assign
    POST   /queue/{proposal_id}/attend
    POST   /queue/{proposal_id}/check
    GET    /queue/{proposal_id}/document
    POST   /queue/{proposal_id}/edit
    GET    /queue/{proposal_id}/evidence
    POST   /queue/{proposal_id}/hold
    POST   /queue/{proposal_id}/lift
    POST   /queue/{proposal_id}/override
    POST   /queue/{proposal_id}/preview
    POST   /queue/{proposal_id}/reject
    POST   /queue/{proposal_id}/release
    POST   /recall
    GET    /recalls
    GET    /recalls/{recall_id}
    POST   /recalls/{recall_id}/replay
    GET    /notices
    POST   /notices
    GET    /notices/alerts
    DELETE /notices/{notice_id}
    POST   /notices/{notice_id}/test
    GET    /refusals
    GET    /refusals/counts
    POST   /sessions/{session_id}/end
    GET    /statements
    POST   /verify
    GET    /webhooks
    POST   /webhooks
    DELETE /webhooks/{webhook_id}
    GET    /webhooks/{webhook_id}
    POST   /webhooks/{webhook_id}/replay
    POST   /webhooks/{webhook_id}/resume
    POST   /webhooks/{webhook_id}/rotate
    GET    /whoami
    POST   /work/backfill
    POST   /work/notify
    GET    /work/backlog
    GET    /work/breakers
    POST   /work/breakers/{write_class}/resume
    POST   /work/clock/reset
    POST   /work/consolidate
    POST   /work/deliver
    GET    /work/jobs
    GET    /work/parked
    POST   /work/reindex
    POST   /work/requeue
    POST   /work/scan
    POST   /work/seal
    POST   /work/sweep
"""


@pytest.fixture(scope="module")
def http_server(server: TestServer) -> Iterator[RunningServer]:
    name = server.clone()
    with RunningServer(server, name) as opened:
        yield opened
    server.drop(name)


@pytest.fixture(scope="module")
def story(http_server: RunningServer) -> Story:
    return Story(http_server, People("tenant_of_schemas"))


@pytest.fixture(scope="module")
def keys(http_server: RunningServer, story: Story) -> dict[str, str]:
    """Two that may do everything between them."""
    roles = {"reviewer", "correction_writer", "privacy_officer", "auditor", "admin"}
    everybody = Principal(tenant_id=story.people.tenant_id, id="everybody", kind="operator", roles=roles)  # type: ignore[arg-type]
    return {"agent": http_server.key(story.people.run()), "operator": http_server.key(everybody)}


def _key(keys: dict[str, str], operation: dict[str, Any]) -> str:
    return keys["agent" if "agent" in operation.get("x-roles", ()) else "operator"]


@pytest.fixture(scope="module")
def api(http_server: RunningServer) -> OpenApiSchema:
    return schemathesis.openapi.from_dict(http_server.document, config=CHECKED)


def test_every_route_that_programs_rely_on_is_served_and_no_other(http_server: RunningServer) -> None:
    served = {(method, path.removeprefix("/v1")) for method, path, _ in http_server.routes()}
    assert served == {(method, path) for method, path in (line.split() for line in ROUTES.strip().splitlines())}


@pytest.mark.parametrize("mode", GenerationMode)
def test_every_operation_answers_as_the_document_says(
    api: OpenApiSchema, http_server: RunningServer, keys: dict[str, str], mode: GenerationMode
) -> None:
    asked: set[str] = set()
    addresses = count()

    def holds(case: Case[Any]) -> None:
        asked.add(case.operation.label)
        # One of the checks comes with wrong credentials, and who guesses is made to wait.
        headers = {"X-Forwarded-For": f"address {next(addresses)}"}
        headers["Authorization"] = f"Bearer {_key(keys, case.operation.definition.raw)}"
        case.call_and_validate(base_url=http_server.url, headers=headers)

    for found in api.get_all_operations():
        assert isinstance(found, Ok), "the document is whole"
        strategy = found.ok().as_strategy(generation_mode=mode)
        # Where nothing can be sent, nothing wrong can be.
        with suppress(Unsatisfiable) if mode is GenerationMode.NEGATIVE else nullcontext():
            settings(FEW, max_examples=examples(2))(given(strategy)(holds))()
    output = {f"{method} {path}" for method, path, _ in http_server.routes()}
    assert asked >= output, "every one was asked"


@st.composite
def _bodies(draw: st.DrawFn) -> tuple[int, bytes]:
    """Which route, and for it anything at all: bytes, JSON of any kind, or a good body with a piece of it replaced."""
    place = draw(st.integers(0, 10_000))
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3),
        max_leaves=8,
    )
    match draw(st.sampled_from(("bytes", "json", "spoilt", "renamed"))):
        case "bytes":
            return place, draw(st.binary(max_size=300))
        case "json":
            return place, json.dumps(draw(values)).encode()
        case kind:
            return place, json.dumps({"spoil": kind, "from": draw(st.integers(0, 200)), "with": draw(values)}).encode()


def _spoilt(good: Any, how: dict[str, Any]) -> bytes:
    """A good body, of which one value is another, or a few bytes are."""
    names = sorted(good)
    if how["spoil"] == "renamed" and names:
        return json.dumps({**good, names[how["from"] % len(names)]: how["with"]}).encode()
    whole = json.dumps(good).encode()
    start = how["from"] % (len(whole) + 1)
    return whole[:start] + json.dumps(how["with"]).encode() + whole[start + 3 :]


def test_no_body_of_any_bytes_is_too_much_for_a_route(
    http_server: RunningServer, story: Story, keys: dict[str, str]
) -> None:
    routes = [one for one in http_server.routes() if one[0] != "GET"]

    @settings(FEW, max_examples=examples(80))
    @given(_bodies())
    def holds(made: tuple[int, bytes]) -> None:
        method, path, operation = routes[made[0] % len(routes)]
        content = made[1]
        if content.startswith(b'{"spoil"'):
            content = _spoilt(body_of(method, path, story.ids) or {}, json.loads(content))
        answer = http_server.ask(
            method,
            path.format(**story.ids),
            key=_key(keys, operation),
            content=content,
            headers={"Content-Type": "application/json"},
        )
        assert answer.status_code < 500, (method, path, content)
        if answer.status_code >= 400:
            assert answer.headers["content-type"] == PROBLEM and answer.json()["detail"]

    holds()
