"""Proposals to be approved together, and what became of them."""

from collections.abc import Sequence
from typing import Any

from muniment import Fabric, Principal
from muniment.model.proposal import Outcome
from muniment.testing import People
from tests.stories import proposed

SUBJECT = "customer:cust_1"
PII: dict[str, Any] = {"subject": SUBJECT, "classification": "PII"}


def waiting(fabric: Fabric, people: People, *facts: dict[str, Any]) -> list[str]:
    """Proposals in the queue, by an agent for cust_1 unless told otherwise."""
    ids: list[str] = []
    for fact in facts:
        given = {"entity": SUBJECT, **fact}
        ids.append(proposed(fabric, given.pop("by", people.run()), **given).proposal_id)
    return ids


def approve_all(fabric: Fabric, reviewer: Principal, ids: Sequence[str], note: str | None = None) -> Sequence[Outcome]:
    """Approve all of them, also what is not ordinary."""
    acknowledge = dict.fromkeys(ids, "looked at")
    return fabric.queue.approve_many(reviewer, ids, note=note, acknowledge=acknowledge)


def statuses_of(outcomes: Sequence[Outcome]) -> list[str | None]:
    """What became of each: its status, or what stopped it."""
    return [one.error or one.status for one in outcomes]


def shown(fabric: Fabric, people: People, **run: Any) -> set[Any]:
    return {record.value for record in fabric.recall(people.run(**run)).records}
