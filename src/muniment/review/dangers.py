"""What a reviewer should notice in a proposal before deciding it: low trust, sensitive, high risk and the like."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muniment.candidates.calibration import speaker_of_source
from muniment.database.storage import Transaction
from muniment.model.decision import Reason
from muniment.model.proposal import Proposal
from muniment.pack import Pack

# Below this a confidence is low; what policy asks for to promote alone is more (REV-3).
LOW_CONFIDENCE = 0.5
# Memories promoted last that say where facts of a kind usually come from.
LATEST = 400
# Fewer memories of a kind say nothing about where it usually comes from.
ENOUGH = 5
# Gate reasons that say that content addresses the model stand behind the figure; these two say where it came from.
_NOT_WORDS = ("unvouched_tool", "unvouched_message")

Kind = tuple[str, str]


class UsualSources:
    """Where facts of each kind, a predicate or else a class, came from lately."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._speakers: dict[Kind, Counter[str]] = {}
        for row in rows:
            if row["claimed_by"]:
                kind = (row["class"], row["predicate"] or "")
                self._speakers.setdefault(kind, Counter())[speaker_of_source(row["claimed_by"])] += row["count"]

    def are_others(self, proposal: Proposal) -> bool:
        """Whether facts of its kind are promoted often enough to tell, and never came from where this one does."""
        candidate = proposal.candidate
        known = self._speakers.get((proposal.write_class, candidate.predicate or ""))
        if known is None or not candidate.claimed_by or known.total() < ENOUGH:
            return False
        return speaker_of_source(candidate.claimed_by) not in known


def dangers_of(proposal: Proposal, pack: Pack, usual: UsualSources) -> tuple[Reason, ...]:
    """Return what to notice, the gravest first; nothing for a proposal that is ordinary and comes from where it should.

    What was found when it entered the queue and what the pack says now both count, as they do for REV-13.
    """
    candidate, found = proposal.candidate, list[Reason]()
    words = _addressing(proposal)
    if words:
        found.append(Reason(code="addresses_model", detail=words))
    if candidate.trust < pack.memory_layer.trust.floor or "low_trust" in proposal.human_reasons:
        found.append(Reason(code="low_trust", detail=f"{candidate.trust:.2f}"))
    if proposal.risk == "high" or pack.policy_for(proposal.write_class).risk == "high":
        found.append(Reason(code="high_risk", detail=proposal.write_class))
    against = proposal.contradiction_check.contradicted
    if against or "contradiction" in proposal.human_reasons:
        found.append(Reason(code="contradiction", detail=", ".join(against)))
    if proposal.opposites:
        found.append(Reason(code="opposites", detail=str(len(proposal.opposites))))
    label = candidate.classification
    if proposal.sensitive or not pack.has_label(label) or pack.is_sensitive(label):
        found.append(Reason(code="sensitive", detail=label))
    if proposal.third_party:
        found.append(Reason(code="third_party", detail=candidate.scope.user_id or ""))
    if proposal.action != "promote":
        found.append(Reason(code="names_targets", detail=proposal.action))
    if usual.are_others(proposal):
        found.append(Reason(code="unusual_source", detail=speaker_of_source(candidate.claimed_by)))
    if candidate.confidence < LOW_CONFIDENCE:
        found.append(Reason(code="low_confidence", detail=f"{candidate.confidence:.2f}"))
    return tuple(found)


def _addressing(proposal: Proposal) -> str:
    """Return why the trust gate found that the content addresses the model; empty if it did not."""
    detail = next((one.detail for one in proposal.candidate.gates if one.gate == "trust"), "")
    return ", ".join(code for code in detail.split(", ")[1:] if code not in _NOT_WORDS)


async def with_dangers(tx: Transaction, proposals: Sequence[Proposal], pack: Pack) -> list[Proposal]:
    """Return proposals with what a reviewer should notice in each."""
    if not proposals:
        return []
    usual = UsualSources(await tx.rows("review.usual_sources", latest=LATEST))
    return [one.model_copy(update={"dangers": dangers_of(one, pack, usual)}) for one in proposals]
