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
from tests.interfaces.http import PROBLEM, HttpDoor, Story, body_of
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


@pytest.fixture(scope="module")
def door(server: TestServer) -> Iterator[HttpDoor]:
    name = server.clone()
    with HttpDoor(server, name) as opened:
        yield opened
    server.drop(name)


@pytest.fixture(scope="module")
def story(door: HttpDoor) -> Story:
    return Story(door, People("tenant_of_schemas"))


@pytest.fixture(scope="module")
def keys(door: HttpDoor, story: Story) -> dict[str, str]:
    """Two that may do everything between them."""
    roles = {"reviewer", "correction_writer", "privacy_officer", "auditor", "admin"}
    everybody = Principal(tenant_id=story.people.tenant_id, id="everybody", kind="operator", roles=roles)  # type: ignore[arg-type]
    return {"agent": door.key(story.people.run()), "operator": door.key(everybody)}


def _key(keys: dict[str, str], operation: dict[str, Any]) -> str:
    return keys["agent" if "agent" in operation.get("x-roles", ()) else "operator"]


@pytest.fixture(scope="module")
def api(door: HttpDoor) -> OpenApiSchema:
    return schemathesis.openapi.from_dict(door.document, config=CHECKED)


@pytest.mark.parametrize("mode", GenerationMode)
def test_every_operation_answers_as_the_document_says(
    api: OpenApiSchema, door: HttpDoor, keys: dict[str, str], mode: GenerationMode
) -> None:
    asked: set[str] = set()
    addresses = count()

    def holds(case: Case[Any]) -> None:
        asked.add(case.operation.label)
        # One of the checks comes with wrong credentials, and who guesses is made to wait.
        headers = {"X-Forwarded-For": f"address {next(addresses)}"}
        headers["Authorization"] = f"Bearer {_key(keys, case.operation.definition.raw)}"
        case.call_and_validate(base_url=door.url, headers=headers)

    for found in api.get_all_operations():
        assert isinstance(found, Ok), "the document is whole"
        strategy = found.ok().as_strategy(generation_mode=mode)
        # Where nothing can be sent, nothing wrong can be.
        with suppress(Unsatisfiable) if mode is GenerationMode.NEGATIVE else nullcontext():
            settings(FEW, max_examples=examples(2))(given(strategy)(holds))()
    told = {f"{method} {path}" for method, path, _ in door.routes()}
    assert asked >= told, "every one was asked"


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


def test_no_body_of_any_bytes_is_too_much_for_a_route(door: HttpDoor, story: Story, keys: dict[str, str]) -> None:
    routes = [one for one in door.routes() if one[0] != "GET"]

    @settings(FEW, max_examples=examples(80))
    @given(_bodies())
    def holds(made: tuple[int, bytes]) -> None:
        method, path, operation = routes[made[0] % len(routes)]
        content = made[1]
        if content.startswith(b'{"spoil"'):
            content = _spoilt(body_of(method, path, story.ids) or {}, json.loads(content))
        answer = door.ask(
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
