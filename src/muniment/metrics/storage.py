"""What memory takes: records and bytes by tier and class, the pack's budgets, calls of models, calibration (MET-10)."""

from collections.abc import Sequence

from muniment.database.storage import Named
from muniment.metrics.window import Answers, Window
from muniment.model.metrics import BudgetUse, CalibrationCurve, CurvePoint, ModelCalls, Stored
from muniment.pack import Pack


def questions(window: Window) -> list[Named]:
    """What has to be asked."""
    return [window.ask("metrics.stored"), window.ask("metrics.answers"), window.ask("metrics.calibrations")]


def stored(found: Answers) -> tuple[Stored, ...]:
    """Live memories, and the bytes of their bodies."""
    return tuple(
        Stored(tier=row["tier"], write_class=row["class"], records=row["records"], bytes=row["bytes"])
        for row in found["metrics.stored"]
    )


def budgets(kept: Sequence[Stored], pack: Pack) -> tuple[BudgetUse, ...]:
    """What is used of each budget of the pack."""
    used: list[BudgetUse] = []
    for budget in pack.memory_layer.budgets:
        counted = [
            one for one in kept if budget.tier in (None, one.tier) and budget.write_class in (None, one.write_class)
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


def model_calls(found: Answers) -> tuple[ModelCalls, ...]:
    """Calls of language models by day."""
    return tuple(
        ModelCalls(extractor=row["extractor"], day=row["day"], calls=row["n"]) for row in found["metrics.answers"]
    )


def calibrations(found: Answers) -> tuple[CalibrationCurve, ...]:
    """The last curve of each source."""
    return tuple(
        CalibrationCurve(
            source=row["source"],
            at=row["calibrated_at"],
            verdicts=row["verdicts"],
            approved=row["approved"],
            points=tuple(
                CurvePoint(raw=raw, estimate=estimate, verdicts=int(verdicts), approved=int(approved))
                for raw, estimate, verdicts, approved in row["points"]
            ),
        )
        for row in found["metrics.calibrations"]
    )
