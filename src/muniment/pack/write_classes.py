"""The policy of a write class: what it may hold, and who decides on it."""

from datetime import timedelta
from typing import Literal

from muniment.model.fields import WriteClass
from muniment.pack.durations import Duration
from muniment.pack.fields import (
    WRITE_CLASSES,
    ClassificationName,
    EvidenceCount,
    Flag,
    PredicateOrAny,
    Purpose,
    Section,
    Share,
    UniqueSome,
    setting,
)

Risk = Literal["low", "high"]
Approval = Literal["auto", "human"]

# A correction outranks everything on its key: it is reviewed soonest and counts as high risk.
CLASS_RISK: dict[WriteClass, Risk] = {name: "high" if name == "correction" else "low" for name in WRITE_CLASSES}
CLASS_SLA = {name: timedelta(hours=4 if name == "correction" else 72) for name in WRITE_CLASSES}


class AutoPromotion(Section):
    """Allows promotion without a person, if everything else allows it too."""

    threshold: Share = setting(
        0.90, "Calibrated confidence it requires. Left out: promotion_thresholds.auto_confidence."
    )


class AutoResolve(Section):
    """Allows a new fact to supersede the one it contradicts without a person."""

    margin: Share = setting(0.15, "By how much the new confidence must be higher. Left out: contradiction.margin.")
    fresher_evidence: Flag = setting(True, "Whether the new evidence must also be fresher.")


class ClassPolicy(Section):
    """What one write class may hold and who decides on it."""

    predicates: UniqueSome[PredicateOrAny] = setting(("*",), 'Predicates the class may write; "*" is any.')
    evidence_required: EvidenceCount = setting(0, "Least number of evidence refs.")
    classifications_allowed: UniqueSome[ClassificationName] | None = setting(
        None, "Classifications the class may carry; null is all that the pack declares."
    )
    consent_purposes: UniqueSome[Purpose] = setting(
        ("*",), 'Purposes for which a consent covers the class; "*" is any.'
    )
    retention: Duration | None = setting(
        None, "How long a promoted memory of the class lives, if shorter than its tier's ttl."
    )
    risk: Risk = setting("low", "Left out: high for correction, low for the others.")
    approval: Approval = setting("human", "Who promotes: a person, or the fabric itself.")
    auto_promotion: AutoPromotion | None = setting(
        None, "When the fabric promotes; set with approval auto and only then."
    )
    auto_resolve: AutoResolve | None = setting(
        None, "When a contradiction is resolved without a person; null is never."
    )
    sla: Duration = setting(timedelta(hours=72), "Time to review. Left out: 4h for correction, 72h for the others.")


def complete_policy(name: WriteClass, policy: ClassPolicy, *, auto_confidence: float, margin: float) -> ClassPolicy:
    """Fill in what the policy left out: from its class, and from the pack's numbers for all classes."""
    defaults: dict[str, object] = {}
    if "risk" not in policy.model_fields_set:
        defaults["risk"] = CLASS_RISK[name]
    if "sla" not in policy.model_fields_set:
        defaults["sla"] = CLASS_SLA[name]
    if policy.auto_promotion and "threshold" not in policy.auto_promotion.model_fields_set:
        defaults["auto_promotion"] = AutoPromotion(threshold=auto_confidence)
    if policy.auto_resolve and "margin" not in policy.auto_resolve.model_fields_set:
        defaults["auto_resolve"] = policy.auto_resolve.model_copy(update={"margin": margin})
    return policy.model_copy(update=defaults)
