"""What went through: captures, the gate, recalls, erasures; and what end users told twice (MET-9, RED-4)."""

from muniment.database.storage import Named
from muniment.metrics.window import Answers, Window
from muniment.model.metrics import (
    CaptureMetrics,
    ErasureMetrics,
    FlowMetrics,
    PromotionTally,
    RecallMetrics,
    RedactionTally,
    RefusalTally,
    Spread,
    Tally,
    TellingMetrics,
)


def questions(window: Window) -> list[Named]:
    """What has to be asked."""
    return [
        window.ask("metrics.captures"),
        window.ask("metrics.waiting"),
        window.ask("metrics.refusals"),
        window.ask("metrics.redactions"),
        window.ask("metrics.proposals"),
        window.ask("metrics.duplicates"),
        window.ask("metrics.promotions"),
        window.ask("metrics.retractions"),
        window.ask("metrics.recalled"),
        window.ask("metrics.erasures"),
        window.ask("metrics.told"),
    ]


def captures(window: Window, found: Answers) -> CaptureMetrics:
    """Captures by kind, and what waits."""
    waits = found["metrics.waiting"][0]
    oldest = waits["oldest"]
    return CaptureMetrics(
        by_kind={row["kind"]: row["n"] for row in found["metrics.captures"]},
        waiting=waits["behind"],
        oldest_waiting=max((window.until - oldest).total_seconds(), 0.0) if oldest is not None else None,
        retrying=waits["again"],
        parked=waits["parked"],
    )


def flow(found: Answers) -> FlowMetrics:
    """Refused, masked, proposed, repeated, promoted, withdrawn."""
    return FlowMetrics(
        refusals=tuple(
            RefusalTally(gate=row["gate"], reason=row["reason"], count=row["n"]) for row in found["metrics.refusals"]
        ),
        redactions=tuple(
            RedactionTally(kind=row["kind"], write_class=row["class"], count=row["n"])
            for row in found["metrics.redactions"]
        ),
        proposals={row["class"]: row["n"] for row in found["metrics.proposals"]},
        duplicates={row["class"]: row["n"] for row in found["metrics.duplicates"]},
        promotions=tuple(
            PromotionTally(tier=row["tier"], write_class=row["class"], auto=row["auto"], count=row["n"])
            for row in found["metrics.promotions"]
        ),
        retractions=tuple(Tally(name=row["reason"], count=row["n"]) for row in found["metrics.retractions"]),
    )


def recalls(found: Answers) -> RecallMetrics:
    """How many recalls, and of how many memories."""
    row = found["metrics.recalled"][0]
    return RecallMetrics(recalls=row["n"], degraded=row["degraded"], median_results=row["median"])


def erasures(found: Answers) -> ErasureMetrics:
    """How many erasures, and how long until the last of it was gone."""
    row = found["metrics.erasures"][0]
    purged = Spread(count=row["purged"], median=row["median"], ninetieth=row["ninetieth"], longest=row["longest"])
    return ErasureMetrics(erasures=row["n"], purged=purged)


def telling(found: Answers) -> TellingMetrics:
    """What end users had to say again."""
    row = found["metrics.told"][0]
    return TellingMetrics(messages=row["messages"], with_candidates=row["gave"], repeated=row["again"])
