"""Rules of what an end user may do about themselves (SUB-1 to SUB-3). Pure."""

from muniment.capture.rules import source_of, user_of
from muniment.erasure.rules import concerned
from muniment.model.candidate import Candidate
from muniment.model.decision import Decision, Reason, passing
from muniment.model.erasure import ErasureInput
from muniment.model.proposal import Proposal
from muniment.pack import Pack
from muniment.review.rules import guard_score, words_found

# What a person may confirm, and what they may decline: plain facts, not decisions, corrections or evidence.
OWN_CLASSES = ("preference", "statement")

# Each reason of `may_confirm` in words.
WHY_NOT = {
    "pack": "the pack in force lets nobody confirm facts about themselves",
    "write_class": "only preferences and statements can be confirmed by whom they are about",
    "durable": "it would be kept for good, which takes a reviewer",
    "low_trust": "it comes from a source that is trusted too little",
    "addresses_model": "it addresses the model, which takes a reviewer",
    "scope": "it is not for your own runs alone",
    "another_person": "it is about somebody else",
    "third_party": "it says something protected about somebody else",
    "corrects": "it replaces a memory, which takes a reviewer",
    "asks_to_forget": "it asks to forget something: forget the memory that is meant",
    "flagged": "the pack asks a reviewer to look at it",
    "audit_sample": "it is a sample for a reviewer",
    "source": "an operator wrote it",
}


def names_of(user_id: str, pack: Pack) -> tuple[str, ...]:
    """Return the names that rows of an end user may have: those that an erasure of them goes by (ERA-5)."""
    return tuple(concerned(ErasureInput(user_id=user_id), pack).holders)


def may_confirm(user_id: str, proposal: Proposal, pack: Pack) -> Decision:
    """Decide whether a person's confirmation promotes a fact, with every reason against it (SUB-2).

    A check and a policy of the table of memories hold the same bounds.
    """
    layer, candidate = pack.memory_layer, proposal.candidate
    against = {
        "pack": not layer.subject.confirms,
        "low_trust": candidate.trust < layer.trust.floor,
        "addresses_model": bool(words_found(candidate) or guard_score(candidate)),
        "asks_to_forget": proposal.action == "retract",
        **_not_their_own(user_id, proposal, pack),
    }
    against["corrects"] = against["corrects"] or proposal.action == "correct"
    return _decision(against)


def may_decline(user_id: str, proposal: Proposal, pack: Pack) -> Decision:
    """Decide whether a person may say that a fact about them is not to be kept, with every reason against it."""
    against = _not_their_own(user_id, proposal, pack)
    against["source"] = source_of(proposal.candidate) == "operator"
    return _decision(against)


def _not_their_own(user_id: str, proposal: Proposal, pack: Pack) -> dict[str, bool]:
    candidate = proposal.candidate
    return {
        "write_class": proposal.write_class not in OWN_CLASSES,
        "durable": "durable" in (proposal.tier_target, proposal.tier_derived),
        "scope": candidate.scope.user_id != user_id,
        "another_person": not _is_about(user_id, candidate, pack),
        "third_party": candidate.third_party,
        "corrects": candidate.corrects is not None,
        "flagged": "compliance_flag" in proposal.human_reasons,
        "audit_sample": proposal.audits is not None,
    }


def _is_about(user_id: str, candidate: Candidate, pack: Pack) -> bool:
    """Whether subject and entity, as far as there are any, are the user's own."""
    named = [one for one in (candidate.subject, candidate.entity) if one is not None]
    return all(user_of(one, pack) == user_id for one in named)


def _decision(against: dict[str, bool]) -> Decision:
    found = tuple(Reason(code=code, detail=WHY_NOT.get(code, "")) for code, holds in against.items() if holds)
    return Decision(outcome="refuse", reasons=found) if found else passing("own_fact")


def words(decision: Decision) -> str:
    """Join the reasons of a decision in words."""
    return "; ".join(reason.detail or reason.code for reason in decision.reasons)


def purpose_for(pack: Pack) -> str:
    """Return the purpose of a consent that a person gives when asked about a fact: one that the pack's classes name."""
    for name in OWN_CLASSES:
        purposes = pack.policy_for(name).consent_purposes
        if purposes and "*" not in purposes:
            return purposes[0]
    return "memory"
