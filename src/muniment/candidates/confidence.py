"""Confidence: what a source claims, and how much of it counts."""

from muniment.model.fields import Source
from muniment.pack import Pack


def of_statement(source: Source, pack: Pack) -> float:
    """The raw confidence of a plain statement, by who made it (CAN-1)."""
    # The word of an end user starts from no more than an agent's.
    who = "agent" if source == "end_user" else source
    return getattr(pack.memory_layer.promotion_thresholds.statement_confidence, who)


def without_history(raw: float, pack: Pack) -> float:
    """A source nobody has judged yet keeps its value up to a cap, so that its word alone promotes nothing (CAN-6)."""
    return min(raw, pack.memory_layer.promotion_thresholds.uncalibrated_cap)
