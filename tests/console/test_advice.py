"""What the charts say to do, in plain words."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from muniment.console import advice
from muniment.console.figures import figures
from muniment.model.metrics import (
    AutoAccuracy,
    CalibrationCurve,
    ClassQueue,
    ContradictionMetrics,
    CurvePoint,
    FlowMetrics,
    Metrics,
    OwnerQueue,
    PromotionTally,
    QueueMetrics,
    RefusalTally,
    Spread,
    TokenMetrics,
    WorkflowHits,
)
from muniment.testing import People
from tests.console.browser import words
from tests.console.conftest import SignIn
from tests.interfaces.http import RunningServer
from tests.stories import proposed

UNTIL = datetime(2026, 1, 31, 12, tzinfo=UTC)


def measured(**parts: Any) -> Metrics:
    return Metrics(tenant_id="t", since=UNTIL - timedelta(days=30), until=UNTIL, at=UNTIL, pack="p@1.0.0", **parts)


def _auto(**parts: Any) -> AutoAccuracy:
    given = {"promoted": 9, "confirmed": 8, "refuted": 2, "waiting": 0, "low": 0.5, "high": 0.9, "suspended": False}
    return AutoAccuracy(write_class="preference", **given | parts)


def test_overdue_names_who_has_to_act() -> None:
    assert advice.overdue(measured()) == "Nothing is overdue: nothing to do."
    owners = (OwnerQueue(past_due=1), OwnerQueue(owner="boris", past_due=7), OwnerQueue(owner="clara", past_due=2))
    said = advice.overdue(measured(queue=QueueMetrics(by_owner=owners)))
    assert "1 overdue fact is assigned to nobody" in said and "boris has the most overdue, 7" in said
    (shown,) = [one for one in figures(measured(queue=QueueMetrics(by_owner=owners)), None) if one.name == "overdue"]
    assert shown.advice == said
    assert shown.rows == (("nobody", "1"), ("boris", "7"), ("clara", "2"))


@pytest.mark.parametrize(
    ("auto", "floor", "said"),
    [
        ((), 0.9, ""),
        ((_auto(suspended=True),), 0.9, "suspended. Look at what was wrong"),
        ((_auto(),), 0.9, "right in 80 % of its samples, below the floor"),
        ((_auto(waiting=3),), 0.5, "3 samples wait in the queue"),
        ((_auto(),), 0.5, "nothing to do"),
    ],
)
def test_audit_accuracy_says_which_class_needs_somebody(auto: Any, floor: float, said: str) -> None:
    assert said in advice.accuracy(measured(auto=auto), floor)
    assert bool(advice.accuracy(measured(auto=auto), floor)) == bool(said)


def test_refusals_name_the_gate_that_refuses_most() -> None:
    counts = (("consent", "missing", 2), ("consent", "ended", 2), ("redaction", "email", 1))
    tallies = tuple(RefusalTally(gate=gate, reason=reason, count=count) for gate, reason, count in counts)
    said = advice.refusals(measured(flow=FlowMetrics(refusals=tallies)))
    assert said.startswith("Consent refuses most, 4 of 5 (80 %)") and "ask for consent" in said
    assert advice.refusals(measured()) == ""


def test_tokens_and_calibration_say_what_to_do() -> None:
    assert "saves 75 %" in advice.tokens(measured(tokens=TokenMetrics(prompts=1, compiled=25, captures=100)))
    assert "lower max_recalls" in advice.tokens(measured(tokens=TokenMetrics(prompts=1, compiled=200, captures=100)))

    def curve(verdicts: int, approved: int) -> CalibrationCurve:
        point = CurvePoint(raw=0.7, estimate=0.5, verdicts=verdicts, approved=approved)
        return CalibrationCurve(source="bot", at=UNTIL, verdicts=verdicts, approved=approved, points=(point,))

    assert "say little yet" in advice.calibration(curve(5, 5))
    assert "claims more than people confirm" in advice.calibration(curve(40, 10))
    assert "confirm more than it claims" in advice.calibration(curve(40, 40))
    assert "nothing to do" in advice.calibration(curve(40, 28))


@pytest.mark.rule("MET-5", "MET-7")
def test_charts_of_the_queue_say_how_much_work_waits_and_where_to_begin() -> None:
    none = measured()
    tellers = (advice.throughput, advice.queue_age, advice.contradictions, advice.hits, advice.promotions)
    assert [tell(none) for tell in tellers] == [""] * 5
    late = ClassQueue(write_class="preference", past_due=2, waiting=Spread(count=4, longest=2 * 86400.0))
    fresh = ClassQueue(write_class="statement", waiting=Spread(count=2, longest=3600.0))
    queue = QueueMetrics(decided=60, waiting=Spread(count=6), by_class=(fresh, late))
    assert advice.throughput(measured(queue=queue)) == (
        "People decide 2 facts a day: what waits now, 6, is 3 d of work."
    )
    assert "nothing waits" in advice.throughput(measured(queue=QueueMetrics(decided=60)))
    assert advice.queue_age(measured(queue=queue)) == (
        "Preference waits longest, 2 d, and 2 of it is overdue: begin there."
    )
    assert "none of it is overdue" in advice.queue_age(measured(queue=QueueMetrics(by_class=(fresh,))))
    both = ContradictionMetrics(open=Spread(count=2, longest=86400.0), resolved=Spread(count=1))
    assert advice.contradictions(measured(contradictions=both)) == "2 are open, the oldest for 1 d: settle that first."
    settled = ContradictionMetrics(resolved=Spread(count=1))
    assert advice.contradictions(measured(contradictions=settled)) == "None is open: nothing to do."
    told = {one.name: one.advice for one in figures(measured(queue=queue, contradictions=both), None)}
    assert told["throughput"] and told["queue-age"] and told["contradictions"]


@pytest.mark.rule("MET-2")
def test_charts_of_use_say_whether_recall_is_cited_and_what_was_promoted_without_a_person() -> None:
    unused = WorkflowHits(workflow_id=None, recalls=4, looked_at=4, found=4, cited=0)
    assert "No capture cites" in advice.hits(measured(hits=(unused,)))
    used = unused.model_copy(update={"cited": 4})
    assert "cite something of 50 %" in advice.hits(measured(hits=(unused, used)))
    tallies = (PromotionTally(tier="semantic", write_class="preference", auto=False, count=3),)
    assert advice.promotions(measured(flow=FlowMetrics(promotions=tallies))) == (
        "3 facts became memory, none of them without a person."
    )


@pytest.mark.rule("MET-7")
def test_the_page_shows_who_is_late(signed_in: SignIn, http_server: RunningServer, people: People) -> None:
    first = proposed(http_server.local, people.run(), entity="customer:c", predicate="drinks", value="tea")
    proposed(http_server.local, people.run(), entity="customer:c", predicate="eats", value="rye")
    http_server.local.queue.assign(people.reviewer, first.proposal_id)
    assert "Nothing is overdue: nothing to do." in words(signed_in(people.reviewer).get("metrics"))
    http_server.clock.advance(days=60)
    queue = http_server.local.metrics(people.auditor).queue
    assert {one.owner: one.past_due for one in queue.by_owner} == {None: 1, people.reviewer.id: 1}
    shown = words(signed_in(people.reviewer).get("metrics", window="90d"))
    assert "1 overdue fact is assigned to nobody" in shown and f"{people.reviewer.id} has the most overdue, 1" in shown
