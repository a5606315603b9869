"""A year of a tenant in seconds: tiers end, overdue reviews are reported, limits hold, the chain verifies."""

from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from muniment import Fabric
from muniment.errors import HistoryCollected
from muniment.pack import load_pack
from muniment.testing import FakeClock, People, TestServer
from muniment.testing.database import MASTER_KEYS
from tests.stories import CONSENT, event_data, proposed, remembered, run_worker

PACK = """
pack_meta: {id: acme.year, version: "1.0.0", ontology_version: "1.0.0"}
memory_layer:
  memory_policy: {ttl: {semantic: 120d}}
  budgets: [{tier: semantic, write_class: preference, records: 2}]
  consent: {revocation_note_limit: 1}
"""
STEP, STEPS = timedelta(days=31), 12
HORIZON = timedelta(days=90)


@pytest.mark.rule("JOB-1", "JOB-2", "JOB-3", "JOB-7", "JOB-9", "JOB-10", "TIR-2")
def test_a_year_passes_and_every_promise_is_kept(
    server: TestServer, fresh_database: str, people: People, clock: FakeClock
) -> None:
    start, born, seen = clock.now, {}, {}
    with Fabric.open(server.url(fresh_database), clock=clock, master_keys=MASTER_KEYS, pack=load_pack(PACK)) as fabric:
        fabric.consent.grant(people.officer, subject="customer:s", valid_until=start + timedelta(days=200), **CONSENT)
        sensitive = remembered(fabric, people, "noon", entity="customer:s", predicate="hour", subject="customer:s",
                               classification="PII", user_id=None, tier="durable")  # fmt: skip
        held = 0
        for step in range(STEPS):
            about: dict[str, Any] = {
                "entity": f"customer:c_{step}",
                "predicate": "prefers_channel",
                "value": f"v{step}",
            }
            item = proposed(fabric, people.run(), **about)
            if step % 5 == 4:
                pass  # nobody looks at it
            else:
                if step % 3 == 0:
                    fabric.queue.override(people.reviewer, item.proposal_id, tier="episodic")
                done = fabric.queue.approve(people.reviewer, item.proposal_id)
                held += done.status == "held"
                if done.memory_id is not None:
                    born[done.memory_id] = clock.now
            # A right withdrawn is withdrawn for the past too: what rests on consent is looked at apart.
            seen[clock.now] = {record.id for record in fabric.recall(people.run(), limit=8).records} - {sensitive}
            if step % 4 == 3:
                live = [one for one in fabric.metrics(people.auditor).storage if one.tier == "semantic"]
                assert sum(one.records for one in live) <= 2
            clock.advance(days=STEP.days)
            run_worker(fabric, people.tenant_id)
            looks_back(fabric, people, clock, seen, sensitive)
        assert clock.now - start > timedelta(days=365)

        assert held > 0, "the budget was reached"
        assert len(event_data(fabric, people, "sla_breached")) >= STEPS // 5
        assert Counter(one["tier"] for one in event_data(fabric, people, "expired")).keys() == {"episodic", "semantic"}
        assert {one["tier"] for one in event_data(fabric, people, "expiring")} >= {"semantic"}
        for memory_id, at in born.items():
            memory = fabric.get(people.auditor, memory_id)
            assert memory.expires_at is not None
            ended = memory.expires_at < clock.now
            collected = memory.expires_at + HORIZON < clock.now - STEP
            assert not collected or memory.value is None
            assert memory.value is not None or memory.expires_at + HORIZON <= clock.now
            assert ended or memory.value is not None, at
        assert fabric.get(people.auditor, sensitive).retraction_reason == "consent_revoked"
        assert [one["memories"] for one in event_data(fabric, people, "consent_expired")] == [1]
        proof = fabric.verify(people.auditor)
        assert (proof.ok, proof.unsealed) == (True, 0)
        assert all(run.failures == 0 for run in fabric.work.jobs(people.admin))


def looks_back(fabric: Fabric, people: People, clock: FakeClock, seen: dict[Any, set[str]], sensitive: str) -> None:
    """Inside the horizon a recall as of then shows what it showed; beyond it the past is gone, and said to be."""
    moments = sorted(seen)
    near = next(at for at in moments if clock.now - at < HORIZON)
    shown = {record.id for record in fabric.recall(people.run(), as_of=near, limit=8).records}
    assert shown - {sensitive} == seen[near]
    if clock.now - moments[0] > HORIZON:
        with pytest.raises(HistoryCollected):
            fabric.recall(people.run(), as_of=moments[0])
