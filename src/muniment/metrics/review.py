"""How people and policy decide: golden queries, contradictions, the queue, samples of what policy promoted alone."""

from collections.abc import Iterable
from statistics import fmean
from typing import Any

from muniment.database.storage import Named, Row
from muniment.metrics.intervals import wilson
from muniment.metrics.window import Answers, Window
from muniment.model.metrics import (
    AutoAccuracy,
    ClassQueue,
    ContradictionMetrics,
    GoldenMetrics,
    OperatorDay,
    QueueMetrics,
    Spread,
    Tally,
)

# Rows of who decided how many on which day, the latest first.
MOST_OPERATOR_DAYS = 2000


def questions(window: Window) -> list[Named]:
    """What has to be asked; of auto-promotion, `metrics.promotions` too."""
    return [
        window.ask("metrics.golden"),
        window.ask("metrics.resolved"),
        window.ask("metrics.unresolved"),
        window.ask("metrics.decided", count=MOST_OPERATOR_DAYS),
        window.ask("metrics.kept"),
        window.ask("metrics.queued"),
        window.ask("metrics.audits"),
        window.ask("metrics.breakers"),
    ]


def golden(found: Answers) -> GoldenMetrics | None:
    """The last asking of golden queries; none if there was none (MET-1)."""
    rows = found["metrics.golden"]
    if not rows:
        return None
    again = [row for row in rows if row["once_failed"]]
    return GoldenMetrics(
        at=rows[0]["at"],
        queries=len(rows),
        passed=sum(row["passed"] for row in rows),
        precision=_mean(row["precision"] for row in rows),
        recall=_mean(row["recall"] for row in rows),
        regression=len(again),
        regression_passed=sum(row["passed"] for row in again),
    )


def contradictions(found: Answers) -> ContradictionMetrics:
    """How long they took, and those open (MET-5)."""
    whole = next((row for row in found["metrics.resolved"] if row["outcome"] is None), None)
    still = found["metrics.unresolved"][0]
    return ContradictionMetrics(
        resolved=_spread(whole),
        outcomes=tuple(
            Tally(name=row["outcome"], count=row["n"])
            for row in found["metrics.resolved"]
            if row["outcome"] is not None
        ),
        open=_spread(still),
    )


def queue(found: Answers) -> QueueMetrics:
    """Who decided how much, how much in time, and what waits (MET-7)."""
    kept = {row["class"]: row for row in found["metrics.kept"]}
    waiting = {row["class"]: row for row in found["metrics.queued"]}
    whole = waiting.pop(None, None)
    days = tuple(OperatorDay(operator=row["by"], day=row["day"], decided=row["n"]) for row in found["metrics.decided"])
    return QueueMetrics(
        decided=sum(row["n"] for row in kept.values()),
        in_time=sum(row["kept"] for row in kept.values()),
        operators=len({one.operator for one in days}),
        by_operator=days,
        waiting=_spread(whole),
        past_due=whole["past_due"] if whole is not None else 0,
        by_class=tuple(_of_class(name, kept.get(name), waiting.get(name)) for name in sorted({*kept, *waiting})),
    )


def auto(found: Answers) -> tuple[AutoAccuracy, ...]:
    """By class, how right policy was where it promoted alone (MET-8)."""
    promoted: dict[str, int] = {}
    for row in found["metrics.promotions"]:
        if row["auto"]:
            promoted[row["class"]] = promoted.get(row["class"], 0) + row["n"]
    audits = {row["class"]: row for row in found["metrics.audits"]}
    suspended = {row["write_class"]: row["open"] for row in found["metrics.breakers"]}
    return tuple(
        _accuracy(name, promoted.get(name, 0), audits.get(name), suspended.get(name, False))
        for name in sorted({*promoted, *audits, *suspended})
    )


def _accuracy(name: Any, promoted: int, sampled: Row | None, suspended: bool) -> AutoAccuracy:
    confirmed, refuted, waiting = (sampled[one] if sampled else 0 for one in ("confirmed", "refuted", "waiting"))
    low, high = wilson(confirmed, confirmed + refuted)
    return AutoAccuracy(
        write_class=name,
        promoted=promoted,
        confirmed=confirmed,
        refuted=refuted,
        waiting=waiting,
        low=low,
        high=high,
        suspended=suspended,
    )


def _of_class(name: Any, kept: Row | None, waiting: Row | None) -> ClassQueue:
    return ClassQueue(
        write_class=name,
        decided=kept["n"] if kept is not None else 0,
        in_time=kept["kept"] if kept is not None else 0,
        waiting=_spread(waiting),
        past_due=waiting["past_due"] if waiting is not None else 0,
    )


def _spread(row: Row | None) -> Spread:
    if row is None:
        return Spread()
    return Spread(count=row["n"], median=row["median"], ninetieth=row["ninetieth"], longest=row["oldest"])


def _mean(values: Iterable[float | None]) -> float | None:
    given = [one for one in values if one is not None]
    return fmean(given) if given else None
