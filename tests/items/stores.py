"""Fabrics and stores for the tests of items: a tenant of its own under a pack for a tool, and the real clock."""

from collections.abc import Iterator
from typing import Any

import pytest

from muniment import Fabric
from muniment.adapters.packs import pack_for_tool
from muniment.model.context import Principal, RunContext
from muniment.testing import People
from tests.connections import Connections
from tests.pack_activation import put_in_force


def run_of(people: People, user_id: str | None = "ann", tool: str = "langgraph", **fields: Any) -> RunContext:
    """A run of the agent `bot` that may speak for one tool and sees what is not sensitive."""
    given: dict[str, Any] = {"agent_id": "bot", "run_id": "run_1", "speaks_for": {"tools": [tool]}} | fields
    return RunContext(tenant_id=people.tenant_id, user_id=user_id, **given)


def person_of(people: People, user_id: str = "ann") -> Principal:
    """The user in person."""
    return Principal(tenant_id=people.tenant_id, id=user_id, kind="end_user", roles={"subject"})


@pytest.fixture
def plain(connections: Connections) -> Iterator[Fabric]:
    """A fabric with the real clock, under the profile strict."""
    with connections.fabric() as opened:
        yield opened


@pytest.fixture
def personal(plain: Fabric, tenant: str) -> Fabric:
    """The same, under the profile personal for LangGraph's items."""
    put_in_force(plain, tenant, pack_for_tool("personal", "langgraph"))
    return plain
