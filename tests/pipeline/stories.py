"""Short ways to the states that tests begin from."""

from typing import Any

from muniment import Fabric, Refusal, Submission
from muniment.model.context import Asker
from muniment.model.proposal import Proposal
from muniment.testing import People

KEY: dict[str, Any] = {"entity": "customer:cust_1", "predicate": "prefers_channel"}
CONSENT: dict[str, Any] = {
    "purpose": "support",
    "predicates_allowed": ["*"],
    "data_classifications_allowed": ["PII"],
    "basis": "opt_in",
}


def proposed(fabric: Fabric, asker: Asker, **fields: Any) -> Proposal:
    """A proposal in the queue."""
    given = {"classification": "INTERNAL", "write_class": "preference", "confidence": 0.7, **fields}
    outcome = fabric.propose(asker, **given)  # type: ignore[arg-type]  # the fields are the test's subject
    assert isinstance(outcome, Submission), outcome
    return fabric.queue.get(People(asker.tenant_id).reviewer, outcome.proposal_id)


def refused(fabric: Fabric, asker: Asker, **fields: Any) -> Refusal:
    """A refusal at a gate."""
    given = {"classification": "INTERNAL", "write_class": "preference", "confidence": 0.7, **fields}
    outcome = fabric.propose(asker, **given)  # type: ignore[arg-type]  # the fields are the test's subject
    assert isinstance(outcome, Refusal), outcome
    return outcome


def promoted(fabric: Fabric, people: People, value: Any = "email", **fields: Any) -> str:
    """The id of a promoted preference of customer:cust_1, seen by runs for user cust_1."""
    given = {"entity": "customer:cust_1", "predicate": "prefers_channel", "value": value, **fields}
    run = people.run(given.pop("user_id", "cust_1"))
    proposal = proposed(fabric, run, **given)
    done = fabric.queue.approve(people.reviewer, proposal.proposal_id)
    assert done.memory_id is not None, done.status
    return done.memory_id


def texts(fabric: Fabric, run: Any, **narrowed: Any) -> list[str]:
    """What a run recalls as plain records."""
    return [record.text for record in fabric.recall(run, **narrowed).records]


def values(fabric: Fabric, people: People, **narrowed: Any) -> list[Any]:
    """What a run for cust_1 recalls as plain records, by value."""
    return [record.value for record in fabric.recall(people.run(), **narrowed).records]


def remembered(fabric: Fabric, people: People, value: Any = "email", *, by: Asker | None = None, **fields: Any) -> str:
    """The id of a promoted memory; `tier` and `priority` are set by the reviewer."""
    placed = {name: fields.pop(name) for name in ("tier", "priority") if name in fields}
    given: dict[str, Any] = {"user_id": "cust_1", **KEY, "value": value, **fields}
    item = proposed(fabric, by or people.run(None), **given)
    if placed:
        fabric.queue.override(people.reviewer, item.proposal_id, **placed)
    done = fabric.queue.approve(people.reviewer, item.proposal_id)
    assert done.memory_id is not None, done.status
    return done.memory_id
