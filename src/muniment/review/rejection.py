"""Remembered rejections: whether a candidate is one that was rejected before, in the same or in other words (REV-6)."""

from dataclasses import dataclass

from muniment.candidates.subjects import compared_as
from muniment.contradictions.rules import Comparison, normal
from muniment.language.assertion import relate
from muniment.model.candidate import Candidate


@dataclass(frozen=True)
class Rejected:
    """A candidate that was rejected and has something in common with a new one."""

    proposal_id: str
    candidate: Candidate
    similarity: float


def fingerprint(candidate: Candidate) -> bytes:
    """What a candidate asserts: entity, predicate and value; its words without case and spacing; or its references."""
    said = candidate.value if candidate.on_key else candidate.text
    if candidate.write_class == "evidence_link":
        said = sorted(candidate.evidence_refs)
    return b"\0".join(((candidate.entity or "").encode(), (candidate.predicate or "").encode(), normal(said)))


def repeats(candidate: Candidate, rejected: Candidate, similarity: float, by: Comparison) -> bool:
    """Whether it says again what was rejected for the same user or for all.

    What was rejected for one user does not count for others: who proposes would learn that it was proposed for them.
    """
    if rejected.scope.user_id not in (None, candidate.scope.user_id):
        return False
    if fingerprint(candidate) == fingerprint(rejected):
        return candidate.on_key or _same_subject(candidate, rejected, by)
    if candidate.on_key and rejected.on_key:
        if (candidate.entity, candidate.predicate) != (rejected.entity, rejected.predicate):
            return False
    elif not _same_subject(candidate, rejected, by) or "evidence_link" in (candidate.write_class, rejected.write_class):
        return False
    return relate(candidate.text, rejected.text, similarity, by.thresholds, by.judge).verdict == "same"


def _same_subject(one: Candidate, other: Candidate, by: Comparison) -> bool:
    first, second = (compared_as(fact, by.user_namespace) for fact in (one, other))
    return first is None or second is None or first == second
