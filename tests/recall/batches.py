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


TEXTS = (
    "The office in Lisbon opens at nine.",
    "Invoices are sent as PDF files.",
    "Maria repairs the coffee machine.",
    "Parking behind building four is free.",
    "The quarterly report needs two signatures.",
    "Dogs are welcome on the ground floor.",
    "Backups run every night before midnight.",
    "Spare keys hang in the porter's lodge.",
)


def promoted_together(fabric: Fabric, people: People, count: int = len(TEXTS)) -> list[str]:
    """Statements captured, consolidated and approved, each in one transaction; the ids of their memories."""
    items = [{"kind": "statement", "classification": "INTERNAL", "text": text} for text in TEXTS[:count]]
    fabric.capture_many(people.service, items)
    proposals = fabric.consolidate(people.tenant_id).proposals
    done = fabric.queue.approve_many(people.reviewer, proposals)
    return [one.memory_id for one in done if one.memory_id is not None]


def approve_all(fabric: Fabric, reviewer: Principal, ids: Sequence[str], note: str | None = None) -> Sequence[Outcome]:
    """Approve all of them, also what is not ordinary."""
    acknowledge = dict.fromkeys(ids, "looked at")
    return fabric.queue.approve_many(reviewer, ids, note=note, acknowledge=acknowledge)


def statuses_of(outcomes: Sequence[Outcome]) -> list[str | None]:
    """What became of each: its status, or what stopped it."""
    return [one.error or one.status for one in outcomes]


def shown(fabric: Fabric, people: People, **run: Any) -> set[Any]:
    return {record.value for record in fabric.recall(people.run(**run)).records}
