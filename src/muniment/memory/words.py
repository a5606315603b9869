"""The reasons for which a fact waits or is refused, in words for the person whom it is about. Pure."""

from collections.abc import Iterable

from muniment.model.proposal import HumanReason
from muniment.model.subject import MyProposal, MyRefusal

# Why a fact waits for a person.
WAITS: dict[HumanReason, str] = {
    "approval_mode": "the pack has a person decide about facts of this class",
    "operator_source": "an operator wrote it",
    "user_correction": "it corrects what was said before",
    "third_party": "it says something protected about somebody else",
    "compliance_flag": "the pack asks a reviewer to look at it",
    "sensitive": "it is sensitive",
    "durable": "it would be kept for good",
    "low_trust": "it reads like an instruction, or its source is trusted too little",
    "low_confidence": "its source is not known to be reliable yet, or it was said with a doubt",
    "contradiction": "it contradicts what is remembered",
    "budget": "there is no room left",
    "audit_sample": "it is a sample for a reviewer",
    "returned": "it came back to the queue",
    "suspended": "promotion without a person is suspended for facts of this class",
    "near_threshold": "it is not certain whether it contradicts what is remembered",
    "agent_asked": "an assistant asked to forget it",
    "user_asked": "you asked to forget or to change something: choose what is meant",
}
# Why a gate refused a fact.
REFUSED = {
    "class_not_allowed": "the pack takes no facts of this class",
    "predicate_not_allowed": "the pack takes no facts of this kind",
    "evidence_missing": "the pack asks for evidence, and there is none",
    "not_a_reference": "its evidence is no reference",
    "unknown_classification": "the pack does not know its label",
    "classification_not_allowed": "the pack does not allow its label for facts of this class",
    "anonymous_subject": "it is sensitive, and nobody could have consented",
    "subject_is_not_the_entity": "it is sensitive, and about somebody else than who consents",
    "third_party": "it says something protected about somebody else, whose own consent it needs",
    "third_party_without_user": "it says something protected about somebody else, and no user is known",
    "confidence_below_floor": "it was said with too much doubt",
    "rejected_before": "the same was rejected or forgotten before",
    "erased": "whoever it is about was erased",
    "rule_failed": "a rule failed, and what is not certain is refused",
}
_CONSENT = 'it is personal data and needs your consent: memory.allow("PII")'


def why_waiting(fact: MyProposal, *, may_confirm: bool) -> str:
    """Say why a fact waits, and for whom."""
    reasons = [WAITS[reason] for reason in fact.reasons] or ["a person has to decide"]
    if may_confirm:
        return _joined((*reasons, f'you may confirm it: memory.confirm("{fact.proposal_id}")'))
    against = [one.detail or one.code for one in fact.why_not]
    return _joined((*reasons, "a reviewer decides", *against))


def why_refused(refusal: MyRefusal) -> str:
    """Say why a gate refused a fact."""
    if refusal.reason == "consent_missing":
        return _CONSENT
    return REFUSED.get(refusal.reason, f"gate {refusal.gate}: {refusal.reason}")


def _joined(reasons: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(reasons))
