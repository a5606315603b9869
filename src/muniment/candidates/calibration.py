"""Calibration: how often what a source claimed with some confidence was approved, as a rising curve (CAN-6)."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """What was claimed with `raw` or more, up to the next point: of so many verdicts so many approved it."""

    raw: float
    verdicts: int
    approved: int

    @property
    def estimate(self) -> float:
        """By the rule of succession: few verdicts are never sure."""
        return (self.approved + 1) / (self.verdicts + 2)

    def joined(self, higher: "Point") -> "Point":
        """Both as one."""
        return Point(self.raw, self.verdicts + higher.verdicts, self.approved + higher.approved)


def curve(outcomes: Iterable[tuple[float, bool]]) -> tuple[Point, ...]:
    """From (claimed confidence, approved) pairs: neighbours are joined until more confidence never means less."""
    counted: dict[float, list[int]] = defaultdict(lambda: [0, 0])
    for raw, approved in outcomes:
        count = counted[round(raw, 2)]
        count[0] += 1
        count[1] += approved
    points: list[Point] = []
    for raw, (verdicts, approved) in sorted(counted.items()):
        points.append(Point(raw, verdicts, approved))
        while len(points) > 1 and points[-2].estimate >= points[-1].estimate:
            higher = points.pop()
            points.append(points.pop().joined(higher))
    return tuple(points)


def calibrated(raw: float, points: Sequence[Point]) -> float:
    """What a claim is worth: the estimate of the highest point it reaches; under all of them no more than it claims."""
    reached = [point for point in points if round(raw, 2) >= point.raw]
    if reached:
        return reached[-1].estimate
    return min(raw, points[0].estimate) if points else raw


def dumped(points: Sequence[Point]) -> list[list[float]]:
    """As it is kept: [raw, estimate, verdicts, approved]."""
    return [[point.raw, round(point.estimate, 6), point.verdicts, point.approved] for point in points]


def loaded(kept: Sequence[Sequence[float]]) -> tuple[Point, ...]:
    """And back."""
    return tuple(Point(raw, int(verdicts), int(approved)) for raw, _, verdicts, approved in kept)
