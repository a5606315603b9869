"""Rules of the candidate stage: trust, confidence, subject, review flags, tier, priority, deadlines and calibration."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from muniment.language.name_search import strings
from muniment.model.candidate import Candidate
from muniment.model.fields import Source, Tier, WriteClass
from muniment.model.ids import CEID_PATTERN, holds_card_number
from muniment.model.promoted import PromotedMemory
from muniment.model.speakers import TOOL, USER
from muniment.pack import Pack
from muniment.pack.memory_layer import FlagRule
from muniment.pack.patterns import compiled
from muniment.promotion.rules import intent_under

_CEID = re.compile(CEID_PATTERN)


# ---- trust: how far a source is believed ----


def class_of_source(source: Source, vouched: str | None) -> str:
    """Return `operator`, `system`, `agent`, `end_user`, or a tool as `tool:name`.

    `vouched` is what the author's credential may speak for in this capture; without it the class is the author's own,
    whatever the capture claims (ISO-8).
    """
    if vouched is None:
        return source
    return "end_user" if vouched == USER else vouched


def trust_of_source(source: Source, vouched: str | None, pack: Pack) -> float:
    """Return the pack's trust score for the source of a fact (CAN-7)."""
    scores = pack.memory_layer.trust
    found = class_of_source(source, vouched)
    if found.startswith(TOOL):
        return scores.tools.get(found.removeprefix(TOOL), scores.sources.tool)
    return getattr(scores.sources, found)


# ---- confidence: what a source claims, and how much of it counts ----


def statement_confidence(source: Source, pack: Pack) -> float:
    """Return the raw confidence of a plain statement, by who made it (CAN-1)."""
    # The word of an end user starts from no more than an agent's.
    who = "agent" if source == "end_user" else source
    return getattr(pack.memory_layer.promotion_thresholds.statement_confidence, who)


def uncalibrated_confidence(raw: float, pack: Pack) -> float:
    """Cap the confidence of a source without verdicts, so that its word alone promotes nothing (CAN-6)."""
    return min(raw, pack.memory_layer.promotion_thresholds.uncalibrated_cap)


# ---- subjects: whom a fact is about; a user is the subject `namespace:id` of the pack's namespace ----


def user_subject(user_id: str | None, pack: Pack) -> str | None:
    """Return the CEID of a user; None without a user, and for an id that no CEID can hold (CAP-12)."""
    if user_id is None:
        return None
    ceid = f"{pack.identity.user_namespace}:{user_id}"
    return ceid if _CEID.fullmatch(ceid) and not holds_card_number(user_id) else None


def subject_of(subject: str | None, user_id: str | None, pack: Pack) -> str | None:
    """Return the subject if there is one, else the user's CEID."""
    return subject if subject is not None else user_subject(user_id, pack)


def user_of(subject: str | None, pack: Pack) -> str | None:
    """Return the user id that a subject stands for, if it is a user."""
    namespace, colon, user_id = (subject or "").partition(":")
    return user_id if colon and namespace == pack.identity.user_namespace else None


def compared_as(fact: Candidate | PromotedMemory, namespace: str) -> str | None:
    """Return whom a plain text is about for comparisons; texts about two different subjects are not compared.

    None where that is only the run's own user: what is said in a user's runs may be about anything.
    """
    user_id, whom = fact.scope.user_id, fact.entity or fact.subject
    return None if user_id is not None and whom == fact.subject == f"{namespace}:{user_id}" else whom


# ---- flags: what a pack always sends to a person (`flag_for_review`) ----


def matching_flags(candidate: Candidate, pack: Pack) -> tuple[FlagRule, ...]:
    """Return the flag rules that match a candidate's predicate, and its text, value or evidence."""
    rules = pack.memory_layer.flag_for_review
    return tuple(
        one
        for one in rules
        if _matches_predicate(candidate.predicate, one.predicate) and _matches_text(candidate, one.pattern)
    )


def _matches_predicate(predicate: str | None, pattern: str | None) -> bool:
    if pattern is None or pattern == "*":
        return True
    if predicate is None:
        return False
    return predicate.startswith(pattern[:-1]) if pattern.endswith("*") else predicate == pattern


def _matches_text(candidate: Candidate, pattern: str | None) -> bool:
    texts = (candidate.text, *strings(candidate.value), *candidate.evidence_refs)
    return pattern is None or any(compiled(pattern).search(text) for text in texts)


# ---- routing: tier, priority, review deadline and lifetime ----


def tier_for(candidate: Candidate, pack: Pack) -> Tier:
    """Return the tier of the pack's first matching rule (REV-2); the working tier needs a session."""
    for rule in pack.memory_layer.memory_policy.tier_routing:
        when = rule.when
        if when.source is not None and when.source != candidate.source:
            continue
        if when.write_class is not None and when.write_class != candidate.write_class:
            continue
        if when.intent is not None and not intent_under(candidate.scope.intent_id, when.intent):
            continue
        if when.sensitive is not None and when.sensitive != pack.is_sensitive(candidate.classification):
            continue
        if rule.tier == "working" and candidate.scope.session_id is None:
            continue
        return rule.tier
    return "semantic"


def priority_for(candidate: Candidate, pack: Pack) -> float:
    """Return the priority by source, a little more for each piece of evidence, at most 1 (REV-2)."""
    weights = pack.memory_layer.memory_policy.priority
    base: float = getattr(weights, "agent" if candidate.source == "end_user" else candidate.source)
    evidence = min(weights.per_evidence * len(candidate.evidence_refs), weights.evidence_max)
    return round(min(base + evidence, 1.0), 6)


def due_at(write_class: WriteClass, *, sensitive: bool, now: datetime, pack: Pack) -> datetime:
    """Return when the review is due: after the class's term, or the shorter one for sensitive facts."""
    term = pack.policy_for(write_class).sla
    if sensitive:
        term = min(term, pack.memory_layer.promotion_thresholds.sensitive_sla)
    return now + term


def expires_at(write_class: WriteClass, tier: Tier, promoted_at: datetime, pack: Pack) -> datetime | None:
    """Return when a memory expires: by its tier, or by its class's retention where that is shorter (PRO-4)."""
    term = _lifetime(write_class, tier, pack)
    return promoted_at + term if term is not None else None


def lasts_as_long(memory: PromotedMemory, candidate: Candidate, tier: Tier, pack: Pack) -> bool:
    """Whether a memory's lifetime is at least the one that the candidate would get."""
    own, other = _lifetime(candidate.write_class, tier, pack), _lifetime(memory.write_class, memory.tier, pack)
    return other is None or (own is not None and own <= other)


def _lifetime(write_class: WriteClass, tier: Tier, pack: Pack) -> timedelta | None:
    terms = (pack.memory_layer.memory_policy.ttl.get(tier), pack.policy_for(write_class).retention)
    return min((term for term in terms if term is not None), default=None)


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
