"""Approval: whether a person must see it, and whether this person may say yes."""

from muniment.capture.speakers import USER, vouched_in
from muniment.model.candidate import Candidate
from muniment.model.context import Principal
from muniment.model.decision import Decision, passing, refusing
from muniment.model.fields import Tier
from muniment.model.names import is_among, same_person
from muniment.model.proposal import HumanReason
from muniment.pack import Pack


def reasons_for_a_person(
    candidate: Candidate,
    *,
    tier: Tier,
    contradicts: bool,
    returned: bool = False,
    sampled: bool = False,
    suspended: bool = False,
    pack: Pack,
) -> tuple[HumanReason, ...]:
    """Why policy alone may not promote it; none means that it may (REV-3)."""
    policy = pack.policy_for(candidate.write_class)
    thresholds = pack.memory_layer.promotion_thresholds
    floor = policy.auto_promotion.threshold if policy.auto_promotion else thresholds.auto_confidence
    reasons: list[HumanReason] = []
    if policy.approval == "human" or policy.auto_promotion is None:
        reasons.append("approval_mode")
    if candidate.source == "operator" or candidate.editor is not None:
        reasons.append("operator_source")
    if pack.is_sensitive(candidate.classification):
        reasons.append("sensitive")
    if tier == "durable":
        reasons.append("durable")
    if candidate.trust < pack.memory_layer.trust.floor:
        reasons.append("low_trust")
    if candidate.confidence < floor:
        reasons.append("low_confidence")
    if contradicts:
        reasons.append("contradiction")
    if returned:
        reasons.append("returned")
    if sampled:
        reasons.append("audit_sample")
    if suspended:
        reasons.append("suspended")
    reasons.extend(candidate.flags)
    return tuple(reasons)


def may_approve(principal: Principal, candidate: Candidate, editors: tuple[str, ...], *, strict: bool) -> Decision:
    """Four eyes: durable and sensitive memories need someone who neither said, wrote nor edited it (REV-4).

    Names that look alike count as one person's (REV-15).
    """
    if principal.kind != "operator":
        return refusing("person_required", "only an operator may approve")
    if strict and same_person(principal.id, candidate.author):
        return refusing("self_approval", "the author of the capture cannot approve it")
    user_id = candidate.scope.user_id
    if strict and user_id is not None and vouched_in(candidate, USER) == USER and same_person(principal.id, user_id):
        return refusing("self_approval", "whoever said a thing cannot approve it")
    if strict and is_among(principal.id, editors):
        return refusing("self_approval", "the author of an edit cannot approve it")
    return passing("second_person" if strict else "reviewer", principal.id)


def is_strict(*, sensitive: bool, derived: Tier, final: Tier) -> bool:
    """Whether four eyes are needed: the stricter of the derived and the final tier holds (REV-2)."""
    return sensitive or derived == "durable" or final == "durable"
