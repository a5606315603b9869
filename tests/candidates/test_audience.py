"""Who sees a fact, as a reviewer is told before it is promoted: the same as recall decides afterwards."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from muniment import Fabric, RunContext
from muniment.model.audience import Audience
from muniment.testing import FakeClock, People
from tests.pack_activation import acme, put_in_force
from tests.stories import CONSENT, KEY, proposed

LABELS = frozenset({"PUBLIC", "INTERNAL", "CONFIDENTIAL", "PII"})
PACK = """
roles: {support: {classifications_allowed: [PUBLIC, INTERNAL]}, agent: {}}
memory_layer: {recall_policy: {freshness: {episodic: 2d}}}
"""
FACTS: dict[str, dict[str, Any]] = {
    "of a user": {},
    "of everybody": {"user_id": None},
    "working": {"tier": "working", "session_id": "s"},
    "of a workflow": {"tier": "episodic", "workflow_id": "w", "user_id": None},
    "episodic of a user, in a workflow": {"tier": "episodic", "workflow_id": "w"},
    "durable in a session": {"tier": "durable", "session_id": "s"},
    "of an intent": {"intent_id": "support.refund"},
    "of all under an intent": {"intent_id": "support.*"},
    "with qualifiers": {"qualifiers": {"region": "de", "channel": "app"}},
    "confidential": {"classification": "CONFIDENTIAL"},
    "personal": {"classification": "PII", "subject": "customer:cust_1"},
    "until a day": {"valid_until": datetime(2026, 1, 6, tzinfo=UTC)},
    "from a day": {"valid_from": datetime(2026, 1, 6, tzinfo=UTC)},
}
# Each differs from the first in one way, or in two that meet.
RUNS: tuple[dict[str, Any], ...] = (
    {},
    {"user_id": None},
    {"user_id": "cust_2"},
    {"session_id": "s"},
    {"session_id": "t", "user_id": "cust_2"},
    {"workflow_id": "w"},
    {"workflow_id": "w", "user_id": None},
    {"intent_id": "support"},
    {"intent_id": "support.refund"},
    {"intent_id": "support.refund.execute"},
    {"intent_id": "sales.lead"},
    {"qualifiers": {"region": "de"}},
    {"qualifiers": {"region": "fr"}},
    {"qualifiers": {"region": "de", "channel": "web"}},
    {"qualifiers": {"region": "de", "channel": "app", "language": "de"}},
    {"classification_allowed": {"PUBLIC", "INTERNAL"}},
    {"role": "support", "roles": {"support"}},
)


def hidden_by(audience: Audience, run: RunContext, now: datetime, promoted_at: datetime) -> set[str]:
    """What the list says hides the fact from a run; a filter that is not on it hides it from none."""
    under = audience.intent_id is not None and audience.intent_id.endswith(".*")
    above = (audience.intent_id or "").removesuffix("*")
    named = {**audience.qualifiers, **run.qualifiers}
    met: dict[str, bool] = {
        "user": run.user_id == audience.user_id,
        "session": run.session_id == audience.session_id,
        "session_end": True,
        "workflow": run.workflow_id == audience.workflow_id,
        "intent": (run.intent_id or "").startswith(above) if under else run.intent_id == audience.intent_id,
        "classification": audience.classification in run.classification_allowed
        and (audience.roles is None or run.role in audience.roles),
        "qualifiers": all(named[name] == value for name, value in audience.qualifiers.items())
        and audience.required.items() <= run.qualifiers.items(),
        "consent": True,
        "expired": now < promoted_at + timedelta(seconds=audience.lifetime or 0),
        "freshness": now <= promoted_at + timedelta(seconds=audience.fresh_for or 0),
        "validity": (audience.valid_from or now) <= now
        and (audience.valid_until is None or now < audience.valid_until),
    }
    return {name for name in audience.filters if not met[name]}


@pytest.mark.rule("REC-1", "REC-10", "REV-14")
@pytest.mark.parametrize("name", FACTS)
def test_what_a_reviewer_is_told_hides_a_fact_is_what_hides_it_from_recalls(
    fabric: Fabric, people: People, clock: FakeClock, name: str
) -> None:
    put_in_force(fabric, people.tenant_id, acme("1.0.0", PACK))
    consent = fabric.consent.grant(people.officer, subject="customer:cust_1", **CONSENT)
    fact = {"user_id": "cust_1", **KEY, "value": "email", **FACTS[name]}
    tier = fact.pop("tier", None)
    item = proposed(fabric, people.run(None), **fact).proposal_id
    if tier is not None:
        fabric.queue.override(people.reviewer, item, tier=tier)
    audience = fabric.queue.evidence(people.reviewer, item).audience
    promoted_at = clock.now
    memory = fabric.queue.approve(people.reviewer, item).memory_id
    assert memory is not None
    assert fabric.queue.evidence(people.reviewer, item).audience == audience
    # An hour, a day and a half, five days, a month and a year on.
    for later in (timedelta(0), timedelta(hours=2), timedelta(hours=36), timedelta(days=5), timedelta(days=40)):
        clock.now = promoted_at + later
        for differing in RUNS:
            run = people.run(**{"classification_allowed": LABELS} | differing)
            explained = fabric.explain(people.auditor, memory_id=memory, run=run)
            told = hidden_by(audience, run, clock.now, promoted_at)
            assert set(explained.hidden_by) == told, (later, differing)
            returned = {one.id for one in fabric.recall(run).all_records}
            assert (memory in returned) == (not told), (later, differing)
    clock.now = promoted_at
    if "consent" in audience.filters:
        assert audience.consent_id == consent.consent_id
    fabric.consent.revoke(people.officer, consent.consent_id)
    explained = fabric.explain(people.auditor, memory_id=memory)
    assert ("consent" in explained.hidden_by) == ("consent" in audience.filters)


@pytest.mark.rule("REC-1", "TIR-6")
def test_a_session_that_ends_is_told_where_it_ends_a_fact(fabric: Fabric, people: People) -> None:
    given = {"user_id": "cust_1", **KEY, "value": "email", "session_id": "s"}
    item = proposed(fabric, people.run(None), **given).proposal_id
    fabric.queue.override(people.reviewer, item, tier="working")
    audience = fabric.queue.evidence(people.reviewer, item).audience
    memory = fabric.queue.approve(people.reviewer, item).memory_id
    assert memory is not None
    run = people.run(session_id="s")
    assert fabric.explain(people.auditor, memory_id=memory, run=run).visible
    fabric.sessions.end(run, "s")
    assert fabric.explain(people.auditor, memory_id=memory, run=run).hidden_by == ("session_end",)
    assert "session_end" in audience.filters


@pytest.mark.rule("REC-1", "CTR-5")
def test_what_a_settled_contradiction_asks_a_run_to_name_is_told_of_the_memory(fabric: Fabric, people: People) -> None:
    first, second = (proposed(fabric, people.run(), **KEY, value=value).proposal_id for value in ("email", "phone"))
    memory = fabric.queue.approve(people.reviewer, first).memory_id
    assert memory is not None
    fabric.queue.approve(people.reviewer, second)
    assert "qualifiers" not in fabric.queue.evidence(people.reviewer, first).audience.filters
    (found,) = fabric.contradictions.list(people.reviewer)
    sides: dict[str, dict[str, str]] = {"existing": {"region": "de"}, "incoming": {"region": "fr"}}
    fabric.contradictions.resolve(people.reviewer, found.contradiction_id, "coexist", **sides)
    audience = fabric.queue.evidence(people.reviewer, first).audience
    assert ("qualifiers" in audience.filters, audience.required) == (True, {"region": "de"})
    assert fabric.explain(people.auditor, memory_id=memory, run=people.run()).hidden_by == ("qualifiers",)
