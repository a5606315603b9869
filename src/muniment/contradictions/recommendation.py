"""Which side of a contradiction to keep, and why: corrected by a person, more trusted, fresher, surer."""

from datetime import datetime, timedelta

from muniment.model.candidate import Candidate
from muniment.model.contradiction import Recommendation, Side
from muniment.model.decision import Reason
from muniment.model.promoted import PromotedMemory
from muniment.pack import Pack

# Two times this close to each other say nothing about which is fresher.
SAME_TIME = timedelta(minutes=1)
# Two figures this close to each other say nothing about which source is surer.
SAME_FIGURE = 0.1
# What a reason weighs: a person's correction outweighs all the others together.
_WEIGHTS = {"corrected_by_person": 8, "low_trust": 4, "stated_by_person": 2, "fresher": 1, "surer": 1}


def recommend(existing: PromotedMemory, candidate: Candidate, observed_at: datetime, pack: Pack) -> Recommendation:
    """Recommend the side for which more speaks; neither where nothing does, or as much for the one as for the other."""
    found: list[tuple[Side, Reason]] = []
    if (existing.write_class == "correction") != (candidate.write_class == "correction"):
        side: Side = "existing" if existing.write_class == "correction" else "incoming"
        found.append((side, Reason(code="corrected_by_person")))
    if candidate.trust < pack.memory_layer.trust.floor <= existing.trust:
        found.append(("existing", Reason(code="low_trust", detail=f"{candidate.trust:.2f}")))
    if (existing.source == "operator") != (candidate.source == "operator"):
        side = "existing" if existing.source == "operator" else "incoming"
        found.append((side, Reason(code="stated_by_person")))
    if abs(observed_at - existing.observed_at) > SAME_TIME:
        side = "incoming" if observed_at > existing.observed_at else "existing"
        found.append((side, Reason(code="fresher")))
    surer = candidate.confidence * candidate.trust - existing.confidence * existing.trust
    if abs(surer) > SAME_FIGURE:
        found.append(("incoming" if surer > 0 else "existing", Reason(code="surer")))
    balance = sum(_WEIGHTS[reason.code] * (1 if side == "incoming" else -1) for side, reason in found)
    if balance == 0:
        return Recommendation()
    keep: Side = "incoming" if balance > 0 else "existing"
    return Recommendation(keep=keep, reasons=tuple(reason for side, reason in found if side == keep))
