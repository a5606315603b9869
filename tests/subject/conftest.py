"""Two end users and an assistant in a tenant whose pack lets them confirm, and asks them for consent."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from muniment import Fabric, Principal
from muniment.testing import FakeClock, People
from tests.conftest import Opener

PACK = """
memory_layer:
  consent: {ask: subject}
  subject: {confirms: true}
  memory_policy:
    tier_routing:
      - {when: {source: operator}, tier: durable}
      - {tier: semantic}
"""


def subject(people: People, user_id: str) -> Principal:
    """An end user who is signed in."""
    return Principal(tenant_id=people.tenant_id, id=user_id, kind="end_user", roles={"subject"})


@pytest.fixture
def home(under: Opener) -> Iterator[Fabric]:
    with under(PACK) as fabric:
        yield fabric


@pytest.fixture
def joanna(people: People) -> Principal:
    return subject(people, "joanna")


@pytest.fixture
def tom(people: People) -> Principal:
    return subject(people, "tom")


Say = Callable[..., str]


@pytest.fixture
def say(home: Fabric, people: People) -> Say:
    """Have a user's message proposed as a statement; returns the proposal."""

    def said(user_id: str | None, text: str, classification: str = "INTERNAL", **fields: Any) -> str:
        run = people.run(user_id)
        made = home.propose(run, write_class="statement", text=text, classification=classification, **fields)
        return getattr(made, "proposal_id", "")

    return said


__all__ = ["PACK", "FakeClock", "Say", "subject"]
