"""What a call costs: how often the database is asked."""

from typing import Any

import pytest

from muniment import Fabric
from muniment.storage.session import Transaction
from muniment.testing import People
from tests.pipeline.stories import CONSENT, proposed


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The round trips of each transaction that ends from here on."""
    counted: list[int] = []
    complete = Transaction.complete

    async def counting(self: Transaction) -> None:
        await complete(self)
        counted.append(self.round_trips)

    monkeypatch.setattr(Transaction, "complete", counting)
    return counted


@pytest.mark.parametrize(
    "fact",
    [
        {"write_class": "statement", "text": "Parcels leave at noon."},
        {"write_class": "preference", "entity": "customer:cust_1", "predicate": "likes", "value": "tea"},
        {
            "write_class": "preference",
            "entity": "customer:cust_1",
            "predicate": "mail",
            "value": "ann.lee@example.com",
            "subject": "customer:cust_1",
        },
    ],
)
def test_one_candidate_through_all_gates_and_checks_takes_four_round_trips(
    fabric: Fabric, people: People, trips: list[int], fact: dict[str, Any]
) -> None:
    fabric.consent.grant(people.officer, subject="customer:cust_1", **CONSENT)
    proposed(
        fabric,
        people.run(),
        write_class="statement",
        text="The first one opens the tenant.",
        subject=fact.get("subject"),
    )
    trips.clear()
    fabric.propose(people.run(), classification="INTERNAL", **fact)
    assert trips == [4]
