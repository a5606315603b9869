"""The reasons for which a fact waits or is refused, in words for the person whom it is about. Pure."""

from collections.abc import Iterable

from muniment.memory.results import Known
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
}
# Reasons why the person may not confirm a fact that say the same as a reason why it waits.
_SAME_REASON: dict[str, HumanReason] = {"flagged": "compliance_flag", "corrects": "user_correction"}
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
    "third_party_of_another_user": "it says something protected about somebody else, for the runs of another user",
    "confidence_below_floor": "it was said with too much doubt",
    "rejected_before": "the same was rejected or forgotten before",
    "erased": "whoever it is about was erased",
    "rule_failed": "a rule failed, and what is not certain is refused",
}
_CONSENT = 'it is personal data and needs your consent: memory.allow("PII")'


def why_waiting(fact: MyProposal, known: Iterable[Known] = ()) -> str:
    """Say why a fact waits, and for whom; `known` are the memories that it contradicts, or asks to change."""
    remembered = "; ".join(f'"{one.text}" ({one.id})' for one in known)
    if fact.action == "retract":
        return f"you asked to forget something: memory.forget(id) with what you mean: {remembered}"
    about = f": {remembered}" if remembered else ""
    reasons = [
        WAITS[reason] + (about if reason == "contradiction" else "") for reason in fact.reasons if reason in WAITS
    ]
    if fact.action == "correct":
        reasons.append(f"you asked to change something, and a reviewer picks what you mean{about}")
    if not reasons:
        reasons.append("a person has to decide")
    if fact.may_confirm:
        return _joined((*reasons, f'you may confirm it: memory.confirm("{fact.proposal_id}")'))
    against = [
        one.detail or one.code for one in fact.why_not if _SAME_REASON.get(one.code, one.code) not in fact.reasons
    ]
    return _joined((*reasons, "a reviewer decides", *against))


def why_refused(refusal: MyRefusal) -> str:
    """Say why a gate refused a fact."""
    if refusal.reason == "consent_missing":
        return _CONSENT
    return REFUSED.get(refusal.reason, f"gate {refusal.gate}: {refusal.reason}")


def _joined(reasons: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(reasons))
