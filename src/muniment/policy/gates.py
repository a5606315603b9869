"""The gates of the candidate stage, in their order; the first that refuses decides (CAN-4).

Each is a pure function from a candidate and what is known about it to the candidate as it goes on, and a decision
with reasons. A gate that raises denies (ERR-5).
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from muniment.model.candidate import Candidate, GateName
from muniment.model.consent import Consent
from muniment.model.decision import Decision, passing, refusing
from muniment.model.fields import CaptureKind
from muniment.pack import Pack
from muniment.policy import consent as consents_policy

_REFERENCE = re.compile(r"[A-Za-z0-9_.-]+(:[A-Za-z0-9_.#/-]+)+")


@dataclass(frozen=True)
class Circumstances:
    """What the gates may know beside the candidate itself."""

    pack: Pack
    now: datetime
    kind: CaptureKind
    decision_key: str | None
    consents: tuple[Consent, ...] = ()


@dataclass(frozen=True)
class Passage:
    """How a candidate fared: each gate's decision in order, and the candidate as it came out."""

    candidate: Candidate
    decisions: tuple[tuple[GateName, Decision], ...]

    @property
    def refused_by(self) -> tuple[GateName, Decision] | None:
        """The gate that refused it, if one did: always the last that looked."""
        gate, decision = self.decisions[-1]
        return None if decision.passed else (gate, decision)


GateResult = tuple[Candidate, Decision]
Gate = Callable[[Candidate, Circumstances], GateResult]


def allow_list(candidate: Candidate, known: Circumstances) -> GateResult:
    """The pack must allow the class and, within it, the predicate."""
    if candidate.write_class == "evidence_link" and known.kind == "decision" and known.decision_key is not None:
        return candidate, passing("decision_evidence", known.decision_key)
    if candidate.write_class not in known.pack.memory_layer.write_classes_allowed:
        return candidate, refusing("class_not_allowed", candidate.write_class)
    policy = known.pack.policy_for(candidate.write_class)
    if (
        candidate.predicate is not None
        and "*" not in policy.predicates
        and candidate.predicate not in policy.predicates
    ):
        return candidate, refusing("predicate_not_allowed", candidate.predicate)
    return candidate, passing("class_allowed", candidate.write_class)


def evidence(candidate: Candidate, known: Circumstances) -> GateResult:
    """As many pieces of evidence as the class asks for."""
    if candidate.write_class == "evidence_link" and not all(map(_REFERENCE.fullmatch, candidate.evidence_refs)):
        return candidate, refusing("not_a_reference", candidate.write_class)
    wanted = known.pack.policy_for(candidate.write_class).evidence_required
    given = len(candidate.evidence_refs)
    if given < wanted:
        return candidate, refusing("evidence_missing", f"{given} of {wanted}")
    return candidate, passing("evidence", f"{given} of {wanted}")


def classification(candidate: Candidate, known: Circumstances) -> GateResult:
    """The label may only rise: to the least the ontology gives the predicate. The class must allow what comes out."""
    pack = known.pack
    if not pack.has_label(candidate.classification):
        return candidate, refusing("unknown_classification", candidate.classification)
    declared = pack.ontology.predicates.get(candidate.predicate or "")
    least = declared.label if declared is not None else None
    if least is not None and pack.rank(least) > pack.rank(candidate.classification):
        candidate = candidate.model_copy(update={"classification": least})
    allowed = pack.policy_for(candidate.write_class).classifications_allowed
    if allowed is not None and candidate.classification not in allowed:
        return candidate, refusing("classification_not_allowed", candidate.classification)
    return candidate, passing("classification", candidate.classification)


def consent(candidate: Candidate, known: Circumstances) -> GateResult:
    """A sensitive fact needs a live consent of its subject; evidence links are the one exception (CON-2, CON-6)."""
    if not known.pack.is_sensitive(candidate.classification):
        return candidate, passing("not_required", candidate.classification)
    if candidate.write_class == "evidence_link":
        return candidate, passing("not_required", "evidence_link")
    if candidate.subject is None:
        return candidate, refusing("anonymous_subject", candidate.classification)
    if _another_of_its_kind(candidate.entity, candidate.subject):
        return candidate, refusing("subject_is_not_the_entity", candidate.classification)
    matched = consents_policy.covering(
        known.consents,
        write_class=candidate.write_class,
        predicate=candidate.predicate,
        label=candidate.classification,
        pack=known.pack,
        now=known.now,
    )
    if matched is None:
        return candidate, refusing("consent_missing", candidate.classification)
    return candidate.model_copy(update={"consent_id": matched.consent_id}), passing("consent", matched.consent_id)


def _another_of_its_kind(entity: str | None, subject: str) -> bool:
    # One customer's consent says nothing about another customer; about an order of theirs it may.
    if entity is None or entity == subject:
        return False
    return entity.partition(":")[0] == subject.partition(":")[0]


def trust(candidate: Candidate, known: Circumstances) -> GateResult:
    """Below the floor it goes on, but only a person can promote it (CAN-7)."""
    floor = known.pack.memory_layer.trust.floor
    return candidate, passing("trusted" if candidate.trust >= floor else "low_trust", f"{candidate.trust:.2f}")


def confidence(candidate: Candidate, known: Circumstances) -> GateResult:
    """Below the floor it is not worth anybody's time."""
    floor = known.pack.memory_layer.promotion_thresholds.confidence_floor
    if candidate.confidence < floor:
        return candidate, refusing("confidence_below_floor", f"{candidate.confidence:.2f} of {floor:.2f}")
    return candidate, passing("confidence", f"{candidate.confidence:.2f}")


# Redaction (after evidence) and remembered rejection (last) need detectors and a judge of texts; their names are
# reserved in `GateName`, and they take their places here when those exist.
GATES: tuple[tuple[GateName, Gate], ...] = (
    ("allow_list", allow_list),
    ("evidence", evidence),
    ("classification", classification),
    ("consent", consent),
    ("trust", trust),
    ("confidence", confidence),
)


def pass_gates(candidate: Candidate, known: Circumstances) -> Passage:
    """Run the gates in order and stop at the first refusal."""
    decisions: list[tuple[GateName, Decision]] = []
    for name, gate in GATES:
        try:
            candidate, decision = gate(candidate, known)
        except Exception as error:
            decision = refusing("rule_failed", type(error).__name__)
        decisions.append((name, decision))
        if not decision.passed:
            break
    return Passage(candidate, tuple(decisions))
