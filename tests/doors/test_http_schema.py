"""The server against its own document: made-up requests, good and bad, and bodies of any bytes at all."""

from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import Case
from schemathesis.config import SchemathesisConfig
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.schemas import OpenApiSchema

from muniment.model.context import Principal
from muniment.testing import People, TestServer
from tests.doors.http import HttpDoor, Story, body_of
from tests.soak import SOAKING, examples

CHECKED = SchemathesisConfig.from_dict(
    {
        "generation": {"allow-x00": True, "deterministic": True},
        "phases": {"coverage": {"enabled": SOAKING}, "examples": {"enabled": False}},
        "checks": {
            # Rules beyond the schema: what hangs together, what is there, what was done before.
            "positive_data_acceptance": {"expected-statuses": ["2xx", "403", "404", "409", "410", "412", "413", "422"]},
            "negative_data_rejection": {"expected-statuses": ["401", "403", "404", "405", "409", "412", "413", "415", "422"]},
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

    def holds(case: Case) -> None:
        asked.add(case.operation.label)
        # One of the checks comes with wrong credentials, and who guesses is made to wait.
        headers = {"X-Forwarded-For": f"address {next(addresses)}"}
        headers["Authorization"] = f"Bearer {_key(keys, case.operation.definition.raw)}"
        case.call_and_validate(base_url=door.url, headers=headers)

    for found in api.get_all_operations():
        operation = found.ok()
        try:
            settings(FEW, max_examples=examples(10))(given(operation.as_strategy(generation_mode=mode))(holds))()
        except BaseException as e:
            es = getattr(e, "exceptions", [e])
            for e in es:
                print("FAILED", operation.label, type(e), str(e)[:1500])
    print(len(asked))
    assert 0
