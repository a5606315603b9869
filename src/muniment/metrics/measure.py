"""The metrics of a tenant over a window (MET-1 to MET-10), counted by the database in few round trips."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from muniment.corrections import adoption
from muniment.database.rows import fields_of
from muniment.database.sealing import Vault
from muniment.database.storage import Row, Transaction
from muniment.metrics import hits, tokens, writebacks
from muniment.metrics.window import Rows, Window, gather
from muniment.model.metrics import (
    AutoAccuracy,
    BudgetUse,
    CalibrationCurve,
    CaptureMetrics,
    ClassQueue,
    ContradictionMetrics,
    CurvePoint,
    ErasureMetrics,
    FlowMetrics,
    GoldenMetrics,
    Metrics,
    ModelCalls,
    OperatorDay,
    OwnerQueue,
    PromotionTally,
    QueueMetrics,
    RecallMetrics,
    RedactionTally,
    RefusalTally,
    RepetitionMetrics,
    Spread,
    Stored,
    Tally,
    mean,
    wilson,
)
from muniment.model.zones import UTC_NAME
from muniment.pack import Pack
from muniment.packs.store import Packs

# Rows of who decided how many on which day, the latest first.
MOST_OPERATOR_DAYS = 2000
# The statements over the window alone.
_STATEMENTS = (
    *(
        "captures",
        "waiting",
        "refusals",
        "redactions",
        "proposals",
        "duplicates",
        "promotions",
        "retractions",
    ),
    *("recalled", "erasures", "told", "golden", "resolved", "unresolved", "kept", "queued", "owned", "audits"),
    *("breakers", "answers", "calibrations", "corrections"),
)


async def measure(
    tx: Transaction,
    opening: Transaction,
    vault: Vault,
    packs: Packs,
    pack: Pack,
    since: datetime,
    until: datetime,
    *,
    zone: str = UTC_NAME,
    storage: bool = True,
) -> Metrics:
    """Measure all metrics: most in one round trip, those that open sealed content in a few more.

    What opens content is read in `opening`: the same transaction, or one on the primary if `tx` is on a standby. What
    is stored, and so how full the budgets are, is counted only with `storage`. Decisions are counted by days of `zone`.
    """
    window = await Window.read(tx, since, until)
    names = (*_STATEMENTS, "stored") if storage else _STATEMENTS
    statements = [window.statement(f"metrics.{name}") for name in names]
    statements.append(window.statement("metrics.decided", count=MOST_OPERATOR_DAYS, zone=zone))
    for part in (hits, writebacks):
        statements += part.statements(window)
    found = await gather(tx, *statements)
    stored = tuple(Stored(**row) for row in found.get("metrics.stored", ()))
    erased = found["metrics.erasures"][0]
    corrections = frozenset(row["memory_id"] for row in found["metrics.corrections"])
    return Metrics(
        tenant_id=tx.tenant_id,
        since=since,
        until=until,
        at=tx.now,
        pack=pack.ref,
        golden=_golden(found["metrics.golden"]),
        hits=await hits.measure(tx, opening, vault, packs, window, found),
        tokens=await tokens.measure(opening, vault, packs, window),
        pii=await writebacks.measure(opening, vault, packs, window, found),
        contradictions=_contradictions(found),
        adoption=await adoption.measure(opening, vault, only=corrections),
        queue=_queue(found),
        auto=_auto(found),
        telling=RepetitionMetrics(**found["metrics.told"][0]),
        storage=stored,
        budgets=budgets(stored, pack) if storage else (),
        model_calls=tuple(ModelCalls(**row) for row in found["metrics.answers"]),
        calibrations=_calibrations(found["metrics.calibrations"]),
        captures=_captures(window, found),
        flow=_flow(found),
        recalls=RecallMetrics(**found["metrics.recalled"][0]),
        erasures=ErasureMetrics(erasures=erased["erasures"], purged=_spread(erased)),
    )


def _golden(rows: Sequence[Row]) -> GoldenMetrics | None:
    """The last run of the golden queries; None if there was none (MET-1)."""
    if not rows:
        return None
    again = [row for row in rows if row["once_failed"]]
    return GoldenMetrics(
        at=rows[0]["at"],
        queries=len(rows),
        passed=sum(row["passed"] for row in rows),
        precision=mean(row["precision"] for row in rows),
        recall=mean(row["recall"] for row in rows),
        regression=len(again),
        regression_passed=sum(row["passed"] for row in again),
    )


def _spread(row: Row | None) -> Spread:
    return Spread(**fields_of(Spread, row)) if row is not None else Spread()


def _contradictions(found: Rows) -> ContradictionMetrics:
    """How long contradictions were open, and how they ended (MET-5); the row without an outcome is the total."""
    resolved = {row["outcome"]: row for row in found["metrics.resolved"]}
    return ContradictionMetrics(
        resolved=_spread(resolved.pop(None, None)),
        outcomes=tuple(Tally(name=name, count=row["count"]) for name, row in resolved.items()),
        open=_spread(found["metrics.unresolved"][0]),
    )


def _queue(found: Rows) -> QueueMetrics:
    """What people decided, how much of it in time, and what waits (MET-7); the row without a class is the total."""
    decided = {row["class"]: row for row in found["metrics.kept"]}
    waiting = {row["class"]: row for row in found["metrics.queued"]}
    total = waiting.pop(None, None)
    days = tuple(OperatorDay(**row) for row in found["metrics.decided"])
    return QueueMetrics(
        decided=sum(row["decided"] for row in decided.values()),
        in_time=sum(row["in_time"] for row in decided.values()),
        operators=len({one.operator for one in days}),
        by_operator=days,
        waiting=_spread(total),
        past_due=total["past_due"] if total is not None else 0,
        by_class=tuple(_class_queue(name, decided, waiting) for name in sorted({*decided, *waiting})),
        by_owner=tuple(OwnerQueue(**row) for row in found["metrics.owned"]),
    )


def _class_queue(name: Any, decided: Mapping[Any, Row], waiting: Mapping[Any, Row]) -> ClassQueue:
    row = decided.get(name, {"decided": 0, "in_time": 0}) | {"past_due": 0} | waiting.get(name, {})
    return ClassQueue(write_class=name, **fields_of(ClassQueue, row), waiting=_spread(waiting.get(name)))


def _auto(found: Rows) -> tuple[AutoAccuracy, ...]:
    """By class, how often policy was right when it promoted without a person (MET-8)."""
    promoted: Counter[str] = Counter()
    for row in found["metrics.promotions"]:
        if row["auto"]:
            promoted[row["write_class"]] += row["count"]
    audits = {row["class"]: row for row in found["metrics.audits"]}
    suspended = {row["write_class"]: row["open"] for row in found["metrics.breakers"]}
    return tuple(
        _accuracy(name, promoted[name], audits.get(name, {}), suspended.get(name, False))
        for name in sorted({*promoted, *audits, *suspended})
    )


def _accuracy(name: Any, promoted: int, sampled: Row, suspended: bool) -> AutoAccuracy:
    counts = {verdict: sampled.get(verdict, 0) for verdict in ("confirmed", "refuted", "waiting")}
    low, high = wilson(counts["confirmed"], counts["confirmed"] + counts["refuted"])
    return AutoAccuracy(write_class=name, promoted=promoted, **counts, low=low, high=high, suspended=suspended)


def budgets(stored: Sequence[Stored], pack: Pack) -> tuple[BudgetUse, ...]:
    """How much of each budget of the pack is used (MET-10)."""
    used: list[BudgetUse] = []
    for budget in pack.memory_layer.budgets:
        counted = [
            one for one in stored if budget.tier in (None, one.tier) and budget.write_class in (None, one.write_class)
        ]
        used.append(
            BudgetUse(
                tier=budget.tier,
                write_class=budget.write_class,
                records=sum(one.records for one in counted),
                most_records=budget.records,
                bytes=sum(one.bytes for one in counted),
                most_bytes=budget.bytes,
            )
        )
    return tuple(used)


def _calibrations(rows: Sequence[Row]) -> tuple[CalibrationCurve, ...]:
    """The last calibration curve of each source (MET-10)."""
    names = ("raw", "estimate", "verdicts", "approved")
    points = [tuple(CurvePoint(**dict(zip(names, point, strict=True))) for point in row["points"]) for row in rows]
    return tuple(
        CalibrationCurve(**fields_of(CalibrationCurve, row, points=curve))
        for row, curve in zip(rows, points, strict=True)
    )


def _captures(window: Window, found: Rows) -> CaptureMetrics:
    """Captures by kind, and what waits to be consolidated."""
    row = found["metrics.waiting"][0]
    oldest = row["oldest"]
    return CaptureMetrics(
        by_kind={row["kind"]: row["count"] for row in found["metrics.captures"]},
        **fields_of(CaptureMetrics, row),
        oldest_waiting=max((window.until - oldest).total_seconds(), 0.0) if oldest is not None else None,
    )


def _flow(found: Rows) -> FlowMetrics:
    """Candidates refused and masked; proposals made, repeated, promoted and retracted (MET-9, RED-4)."""
    return FlowMetrics(
        refusals=tuple(RefusalTally(**row) for row in found["metrics.refusals"]),
        redactions=_redactions(found, excepted=False),
        redaction_exceptions=_redactions(found, excepted=True),
        proposals={row["class"]: row["count"] for row in found["metrics.proposals"]},
        duplicates={row["class"]: row["count"] for row in found["metrics.duplicates"]},
        promotions=tuple(PromotionTally(**row) for row in found["metrics.promotions"]),
        retractions=tuple(Tally(**row) for row in found["metrics.retractions"]),
    )


def _redactions(found: Rows, *, excepted: bool) -> tuple[RedactionTally, ...]:
    rows = [row for row in found["metrics.redactions"] if row["excepted"] is excepted]
    return tuple(RedactionTally(**fields_of(RedactionTally, row)) for row in rows)
