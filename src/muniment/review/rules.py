"""Rules of the review stage: when a person must decide, and who may approve."""

import re

from muniment.candidates.rules import DIRECT, ITEM
from muniment.capture.rules import source_of, vouched_in
from muniment.contradictions.rules import is_users_own
from muniment.language.instructions import visible_text
from muniment.model.candidate import Candidate
from muniment.model.capture import Capture
from muniment.model.context import Principal
from muniment.model.decision import Decision, Reason, passing, refusing
from muniment.model.fields import Tier
from muniment.model.names import is_among, same_person
from muniment.model.proposal import HumanReason, Proposal
from muniment.model.speakers import TOOL, USER
from muniment.pack import Pack

# ---- approval ----


def reasons_for_a_person(
    candidate: Candidate,
    capture: Capture,
    *,
    tier: Tier,
    contradicts: bool,
    returned: bool = False,
    sampled: bool = False,
    suspended: bool = False,
    uncertain: bool = False,
    pack: Pack,
) -> tuple[HumanReason, ...]:
    """Return why policy may not promote a candidate of a capture; no reasons mean that it may (REV-3)."""
    policy = pack.policy_for(candidate.write_class)
    floor = promotion_threshold(candidate, capture, tier, pack)
    reasons: dict[HumanReason, bool] = {
        "approval_mode": policy.approval == "human" or policy.auto_promotion is None,
        "operator_source": source_of(candidate) == "operator" or candidate.editor is not None,
        "third_party": candidate.third_party,
        "sensitive": pack.is_sensitive(candidate.classification),
        "durable": tier == "durable",
        # What takes a person a reason is nothing for policy, whatever trust is left (CAN-7).
        "low_trust": candidate.trust < pack.memory_layer.trust.floor or _is_marked(candidate),
        "low_confidence": candidate.confidence < floor,
        "contradiction": contradicts,
        "returned": returned,
        "audit_sample": sampled,
        "suspended": suspended,
        "near_threshold": uncertain,
    }
    flags: tuple[HumanReason, ...] = candidate.flags
    if pack.memory_layer.contradiction.own_updates and is_users_own(candidate, capture, pack):
        # What a user updates about themselves is promoted like what they say first, unless it contradicts (CTR-4).
        flags = tuple(flag for flag in flags if flag != "user_correction")
    found: tuple[HumanReason, ...] = (*(reason for reason, holds in reasons.items() if holds), *flags)
    return tuple(dict.fromkeys(found))


def promotion_threshold(candidate: Candidate, capture: Capture, tier: Tier, pack: Pack) -> float:
    """Return the confidence from which policy promotes a candidate: its class's, or the working tier's own (TIR-6).

    The working tier's own is for what a session of a user brings about: a tool result that the author's credential
    vouches for, the user's own words, and an effect that an extractor read in what the agent did. A fact that
    somebody proposes is their own word, whatever they call it.
    """
    thresholds = pack.memory_layer.promotion_thresholds
    policy = pack.policy_for(candidate.write_class)
    usual = policy.auto_promotion.threshold if policy.auto_promotion else thresholds.auto_confidence
    if tier != "working" or thresholds.working is None or candidate.scope.user_id is None:
        return usual
    is_theirs = candidate.extractor not in (DIRECT, ITEM) and (capture.vouched is not None or _is_effect(capture))
    return thresholds.working if is_theirs else usual


def _is_effect(capture: Capture) -> bool:
    """Whether a capture says in the fields of its payload, and in no words of its own, what a program did."""
    claims_a_tool = (capture.origin or "").startswith(TOOL)
    in_words = capture.content is None or capture.content.text is not None
    return capture.kind == "effect" and capture.source in ("agent", "system") and not claims_a_tool and not in_words


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
        return refusing("self_approval", "the person who stated a fact cannot approve it")
    if strict and candidate.claimed_author is not None and same_person(principal.id, candidate.claimed_author):
        return refusing("self_approval", "who wrote it in the system it was imported from cannot approve it")
    if strict and is_among(principal.id, editors):
        return refusing("self_approval", "the author of an edit cannot approve it")
    return passing("second_person" if strict else "reviewer", principal.id)


def is_strict(*, sensitive: bool, derived: Tier, final: Tier) -> bool:
    """Whether four eyes are needed: the stricter of the derived and the final tier decides (REV-2)."""
    return sensitive or derived == "durable" or final == "durable"


# ---- what may have been written to be approved ----

# Dangers of such a proposal: it is approved only for a reason, and never as one of many.
SUSPICIOUS = ("addresses_model", "guard", "low_trust")
# What stands behind the figure of the trust gate: these say where content came from, the trained guard gives its score
# and its threshold, and every other is a rule that found words that address the model.
_NOT_WORDS = ("unvouched_tool", "unvouched_message")
_GUARD = re.compile(r"guard (\d\.\d\d) of (\d\.\d\d)")


def words_found(candidate: Candidate) -> str:
    """Return which rules of the trust gate found words that address the model; empty if none did."""
    found = _behind_trust(candidate)
    return ", ".join(one for one in found if one not in _NOT_WORDS and _GUARD.fullmatch(one) is None)


def guard_score(candidate: Candidate) -> str:
    """Return the score of the trained guard and its threshold, where it reached that; empty otherwise."""
    found = (_GUARD.fullmatch(one) for one in _behind_trust(candidate))
    return next((f"{one[1]} of {one[2]}" for one in found if one is not None and float(one[1]) >= float(one[2])), "")


def _is_marked(candidate: Candidate) -> bool:
    """Whether a rule or the trained guard found that a candidate addresses the model."""
    return bool(words_found(candidate) or guard_score(candidate))


def _behind_trust(candidate: Candidate) -> list[str]:
    """Return what the trust gate recorded behind the figure."""
    detail = next((one.detail for one in candidate.gates if one.gate == "trust"), "")
    return detail.split(", ")[1:]


def in_words(reason: str | None) -> bool:
    """Whether a reason says anything that a reader sees."""
    return any(character.isalnum() for character in visible_text(reason or ""))


def suspicions(proposal: Proposal, pack: Pack) -> list[Reason]:
    """Return why a proposal may have been written to be approved: low trust, and what addresses the model."""
    candidate, found = proposal.candidate, list[Reason]()
    if words := words_found(candidate):
        found.append(Reason(code="addresses_model", detail=words))
    if score := guard_score(candidate):
        found.append(Reason(code="guard", detail=score))
    if candidate.trust < pack.memory_layer.trust.floor or "low_trust" in proposal.human_reasons:
        found.append(Reason(code="low_trust", detail=f"{candidate.trust:g}"))
    return found


# ---- approval of many at once (REV-13) ----


def is_ordinary(proposal: Proposal, approver: str, pack: Pack, *, contradicts: bool = False) -> Decision:
    """Decide whether a proposal may be approved as one of many, with every reason against it.

    Ordinary is what is not sensitive, not about a third party, not high risk, not low in trust, does not address the
    model, contradicts nothing, neither a memory nor what else is open, is not assigned to somebody else, and is not on
    hold. What was found when it entered the queue and what `pack` says now both
    count; `contradicts` says that a contradiction was found since.
    """
    candidate = proposal.candidate
    found: list[Reason] = []
    if proposal.sensitive or pack.is_sensitive(candidate.classification):
        found.append(Reason(code="sensitive", detail=candidate.classification))
    if candidate.third_party:
        found.append(Reason(code="third_party", detail=candidate.scope.user_id or ""))
    if proposal.risk == "high" or pack.policy_for(proposal.write_class).risk == "high":
        found.append(Reason(code="high_risk", detail=proposal.write_class))
    found += suspicions(proposal, pack)
    against = proposal.contradiction_check.contradicted
    if contradicts or against or "contradiction" in proposal.human_reasons:
        found.append(Reason(code="contradiction", detail=", ".join(against)))
    if proposal.opposites:
        found.append(Reason(code="opposites", detail=", ".join(proposal.opposites)))
    if proposal.action != "promote":
        found.append(Reason(code="names_targets", detail=proposal.action))
    if proposal.assignee is not None and not same_person(proposal.assignee, approver):
        found.append(Reason(code="assigned", detail=proposal.assignee))
    if proposal.status == "held":
        found.append(Reason(code="held", detail=""))
    return Decision(outcome="refuse", reasons=tuple(found)) if found else passing("ordinary")


def may_reject_together(proposal: Proposal, reviewer: str) -> Decision:
    """Decide whether a proposal may be rejected as one of many.

    Not what a person asked for, nor a sample, with which a memory would go, nor what is assigned to somebody else.
    """
    found: list[Reason] = []
    if proposal.action != "promote":
        found.append(Reason(code="names_targets", detail=proposal.action))
    if proposal.audits is not None:
        found.append(Reason(code="audit_sample", detail=proposal.audits))
    if proposal.assignee is not None and not same_person(proposal.assignee, reviewer):
        found.append(Reason(code="assigned", detail=proposal.assignee))
    return Decision(outcome="refuse", reasons=tuple(found)) if found else passing("ordinary")


def may_assign_together(proposal: Proposal, to: str) -> Decision:
    """Decide whether a proposal may be assigned as one of many: not if somebody has it already."""
    if proposal.assignee is None:
        return passing("ordinary")
    code = "assigned_already" if same_person(proposal.assignee, to) else "assigned"
    return Decision(outcome="refuse", reasons=(Reason(code=code, detail=proposal.assignee),))


# Each reason of the rules above in words.
REASON_WORDS = {
    "sensitive": "sensitive",
    "third_party": "about a third party",
    "high_risk": "high risk",
    "addresses_model": "addresses the model",
    "guard": "may address the model",
    "low_trust": "low in trust",
    "contradiction": "contradicts a memory",
    "opposites": "contradicts another open proposal",
    "names_targets": "asks to forget or correct one of several memories",
    "assigned": "assigned to somebody else",
    "held": "on hold",
    "assigned_already": "assigned to this person already",
    "audit_sample": "an audit sample: rejecting it would retract its memory",
}


def reason_words(decision: Decision) -> str:
    """Join the reasons of a decision in words, in one line."""
    return ", ".join(REASON_WORDS[reason.code] for reason in decision.reasons)
