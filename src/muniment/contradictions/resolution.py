"""What settles a contradiction without a person: a correction, or the class's own rule (CTR-4)."""

from datetime import datetime

from muniment.model.candidate import Candidate
from muniment.model.decision import Decision, passing, refusing
from muniment.model.fields import Tier
from muniment.model.promoted import PromotedMemory
from muniment.pack import Pack
from muniment.promotion.scope import covers

# Confidences are written with two or three digits: what is 0.15 apart on paper is so here.
_ROUNDING = 1e-9


def supersedes(candidate: Candidate, tier: Tier, observed_at: datetime, old: PromotedMemory, pack: Pack) -> Decision:
    """Whether the candidate takes the place of a memory that it contradicts, once somebody or policy promotes it."""
    if not covers(candidate.scope, tier, old.scope, old.tier):
        return refusing("narrower_scope", "some run that sees the old one would not see the new one")
    if candidate.write_class == "correction":
        return passing("correction")
    if old.write_class == "correction":
        return refusing("correction_stands", "a correction is superseded only by a later correction")
    rule = pack.policy_for(candidate.write_class).auto_resolve
    if rule is None:
        return refusing("no_rule", candidate.write_class)
    if not pack.at_least(candidate.classification, old.classification):
        return refusing("lower_label", old.classification)
    ahead = candidate.confidence - old.confidence
    if ahead + _ROUNDING < rule.margin:
        return refusing("margin", f"{ahead:.2f} of {rule.margin:.2f}")
    if rule.fresher_evidence and observed_at <= old.observed_at:
        return refusing("not_fresher", f"{observed_at:%Y-%m-%d %H:%M:%S}")
    return passing("auto_resolve", f"{ahead:.2f} of {rule.margin:.2f}")
