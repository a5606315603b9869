"""Proposals that say the same, and what became of them."""

from typing import Any

from muniment import Fabric
from muniment.testing import People
from tests.stories import KEY, proposed


def several(fabric: Fabric, people: People, count: int = 3, **fields: Any) -> list[str]:
    """Proposals that say the same, in the order they came."""
    given = {**KEY, "value": "email", **fields}
    return [proposed(fabric, people.run(), **given).proposal_id for _ in range(count)]


def status(fabric: Fabric, people: People, ids: list[str]) -> list[str]:
    return [fabric.queue.get(people.reviewer, one).status for one in ids]
