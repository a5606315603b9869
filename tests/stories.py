"""Short ways to the states that tests begin from."""

from typing import Any

from muniment import Fabric, Refusal, Submission
from muniment.job import JobResult
from muniment.model.context import Asker
from muniment.model.proposal import Proposal
from muniment.testing import People
from muniment.worker.registry import JOBS
from muniment.worker.worker import Worker

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


def submitted(outcome: Submission | Proposal | Refusal) -> str:
    """The id of the proposal that a call put into the queue; fails if a gate refused it."""
    assert not isinstance(outcome, Refusal), outcome
    return outcome.proposal_id


def promoted(fabric: Fabric, people: People, value: Any = "email", **fields: Any) -> str:
    """The id of a promoted preference of customer:cust_1, seen by runs for user cust_1."""
    given = {"entity": "customer:cust_1", "predicate": "prefers_channel", "value": value, **fields}
    run = people.run(given.pop("user_id", "cust_1"))
    proposal = proposed(fabric, run, **given)
    done = fabric.queue.approve(people.reviewer, proposal.proposal_id, note="known to be right")
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
    done = fabric.queue.approve(people.reviewer, item.proposal_id, note="known to be right")
    assert done.memory_id is not None, done.status
    return done.memory_id


def run_job(fabric: Fabric, job: str, tenant_id: str) -> JobResult:
    """One run of a job, as the worker would, in the fabric's own loop."""
    return fabric._portal.call(JOBS[job].run, fabric._fabric._opened, tenant_id)


def run_worker(fabric: Fabric, tenant_id: str) -> int:
    """Run the worker until nothing is due in the tenant; return how many jobs ran."""
    return fabric._portal.call(Worker(fabric._fabric._opened).until_idle, [tenant_id])


def event_data(fabric: Fabric, people: People, kind: str) -> list[dict[str, Any]]:
    """Return the items of the events of that type, in their order."""
    found: list[dict[str, Any]] = []
    after = 0
    while page := fabric.events(people.auditor, after=after, limit=200):
        found += [item for event in page if event.type == f"memory.{kind}" for item in event.items]
        after = page[-1].seq
    return found
