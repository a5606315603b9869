"""What may be approved together with others: only what is ordinary (REV-13)."""

from muniment.model.decision import Decision, Reason, passing
from muniment.model.names import same_person
from muniment.model.proposal import Proposal
from muniment.pack import Pack


def is_ordinary(proposal: Proposal, approver: str, pack: Pack, *, contradicts: bool = False) -> Decision:
    """Whether the proposal may be approved as one of many, or every reason why it may not.

    Ordinary is what is not sensitive, not high risk, not low in trust, contradicts nothing and is not assigned to
    somebody else. What was found when it entered the queue and what `pack` says now both count; `contradicts` says that
    a contradiction was found since.
    """
    candidate = proposal.candidate
    floor = pack.memory_layer.trust.floor
    found: list[Reason] = []
    if proposal.sensitive or pack.is_sensitive(candidate.classification):
        found.append(Reason(code="sensitive", detail=candidate.classification))
    if proposal.risk == "high" or pack.policy_for(proposal.write_class).risk == "high":
        found.append(Reason(code="high_risk", detail=proposal.write_class))
    if candidate.trust < floor or "low_trust" in proposal.human_reasons:
        found.append(Reason(code="low_trust", detail=f"{candidate.trust:g}"))
    against = proposal.contradiction_check.contradicted
    if contradicts or against or "contradiction" in proposal.human_reasons:
        found.append(Reason(code="contradiction", detail=", ".join(against)))
    if proposal.assignee is not None and not same_person(proposal.assignee, approver):
        found.append(Reason(code="assigned", detail=proposal.assignee))
    return Decision(outcome="refuse", reasons=tuple(found)) if found else passing("ordinary")


# How each reason is told to people.
TOLD = {
    "sensitive": "sensitive",
    "high_risk": "high risk",
    "low_trust": "low in trust",
    "contradiction": "contradicts a memory",
    "assigned": "assigned to somebody else",
}


def told(decision: Decision) -> str:
    """The reasons in one line."""
    return ", ".join(TOLD[reason.code] for reason in decision.reasons)
