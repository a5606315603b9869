"""Rules of confidence: which sources a pack declares proven, what a source is, how verdicts calibrate it (CAN-6)."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muniment.model.candidate import Candidate
from muniment.model.speakers import IMPORT, USER
from muniment.pack import Pack
from muniment.pack.memory_layer import SOURCE_PARTS

# ---- sources: which are proven, and whose verdicts count together ----

# The class of source in a candidate's `claimed_by`, after the author; the last one, whatever the author is called.
_SOURCE_CLASS = re.compile(r".*(?<= )(operator|system|agent|end_user|tool:.+|import:.+)$")


def is_proven(candidate: Candidate, vouched: str | None, pack: Pack) -> bool:
    """Whether the pack declares the source of a fact proven: its credential or what that vouches for (CAN-6).

    `vouched` is what is vouched for in this fact (`vouched_for_extractor`). The extractor and its version must be named
    too: an agent that proposes a typed fact within a message does not speak the user's words. The words of nobody in
    particular are not a user's: they would be for all users.
    """
    if vouched == USER and candidate.scope.user_id is None:
        vouched = None
    # What another system said is not the word of who imports it (IMP-2).
    own_word = candidate.author if not (vouched or "").startswith(IMPORT) else None
    return any(
        (source.vouched == vouched if source.vouched is not None else source.credential == own_word)
        and candidate.extractor in source.extractors
        and candidate.write_class in source.classes
        for source in pack.memory_layer.proven_sources
    )


def calibration_source(claimed_by: str, pack: Pack) -> str:
    """Return the source that a fact's verdicts count for: agent, class of source and extractor, as the pack says.

    A part that does not count is written `*`, so that sources of two packs are never taken for one another.
    """
    parts = pack.memory_layer.promotion_thresholds.calibrate_by
    if len(parts) == len(SOURCE_PARTS) or not claimed_by:
        return claimed_by
    agent, source_class, extractor = _parts_of_source(claimed_by)
    kept = {"agent": agent, "tool": source_class, "extractor": extractor}
    return " ".join(kept[part] if part in parts else "*" for part in SOURCE_PARTS)


def _parts_of_source(claimed_by: str) -> tuple[str, str, str]:
    """Split what a candidate is claimed by; agents and tools may have spaces in their names."""
    rest, _, extractor = claimed_by.rpartition(" ")
    found = _SOURCE_CLASS.search(rest)
    assert found is not None, "every claim names the class of its source"
    return rest[: found.start(1) - 1], found[1], extractor


# ---- calibration: how often claims of some confidence were approved, as a rising curve (CAN-6) ----


@dataclass(frozen=True)
class Point:
    """A step of a calibration curve: verdicts and approvals of claims from `raw` up to the next point."""

    raw: float
    verdicts: int
    approved: int

    @property
    def estimate(self) -> float:
        """Return the approval rate by the rule of succession: few verdicts are never sure."""
        return (self.approved + 1) / (self.verdicts + 2)


def calibration_curve(outcomes: Iterable[tuple[float, bool]]) -> tuple[Point, ...]:
    """Build the curve from (claimed confidence, approved) pairs.

    Neighbouring points are joined until more confidence never means a lower estimate.
    """
    counts: dict[float, list[int]] = defaultdict(lambda: [0, 0])
    for raw, approved in outcomes:
        count = counts[round(raw, 2)]
        count[0] += 1
        count[1] += approved
    points: list[Point] = []
    for raw, (verdicts, approved) in sorted(counts.items()):
        points.append(Point(raw, verdicts, approved))
        while len(points) > 1 and points[-2].estimate >= points[-1].estimate:
            high, low = points.pop(), points.pop()
            points.append(Point(low.raw, low.verdicts + high.verdicts, low.approved + high.approved))
    return tuple(points)


def calibrated(raw: float, points: Sequence[Point]) -> float:
    """Return the estimate of the highest point that a claim reaches; below all of them no more than the claim."""
    reached = [point for point in points if round(raw, 2) >= point.raw]
    if reached:
        return reached[-1].estimate
    return min(raw, points[0].estimate) if points else raw


def dump_points(points: Sequence[Point]) -> list[list[float]]:
    """Serialise a curve for the database: [raw, estimate, verdicts, approved] for each point."""
    return [[point.raw, round(point.estimate, 6), point.verdicts, point.approved] for point in points]


def load_points(stored: Sequence[Sequence[float]]) -> tuple[Point, ...]:
    """Read a curve that `dump_points` serialised."""
    return tuple(Point(raw, int(verdicts), int(approved)) for raw, _, verdicts, approved in stored)
