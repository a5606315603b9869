"""The figures that evaluations share: means, precision and recall, and figures by set."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any, TypeVar

Judged = TypeVar("Judged")


def median_of(values: Iterable[float]) -> float | None:
    """Return the median; None where there are no values."""
    known = list(values)
    return median(known) if known else None


def precision_and_recall(found: Sequence[bool], true: Sequence[bool]) -> dict[str, Any]:
    """Return `precision`, `recall` and `f1` of what was found against what is true; None where undefined."""
    hits = sum(one and other for one, other in zip(found, true, strict=True))
    precision = hits / sum(found) if any(found) else None
    recall = hits / sum(true) if any(true) else None
    # F1 counts both sides, so it is defined as soon as either has anything.
    either = sum(found) + sum(true)
    return {"precision": precision, "recall": recall, "f1": 2 * hits / either if either else None}


def figures_by_set(
    sets: Mapping[str, list[Judged]], figures_of: Callable[[list[Judged]], dict[str, Any]], seconds: float
) -> dict[str, Any]:
    """Return the figures of all sets together, of each set, and the mean seconds of an item."""
    everything = [one for _, part in sorted(sets.items()) for one in part]
    return {
        **figures_of(everything),
        "sets": {name: figures_of(part) for name, part in sorted(sets.items())},
        "seconds_per_item": seconds / len(everything) if everything else None,
    }
