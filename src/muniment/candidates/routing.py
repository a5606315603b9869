"""Where a candidate would go, how much it would count, by when it must be seen, how long it would live."""

from datetime import datetime, timedelta

from muniment.model.candidate import Candidate
from muniment.model.fields import Tier, WriteClass
from muniment.model.promoted import PromotedMemory
from muniment.pack import Pack
from muniment.promotion.scope import intent_under


def tier_for(candidate: Candidate, pack: Pack) -> Tier:
    """The first rule of the pack that fits (REV-2). Without a session nothing can be found in the working tier."""
    for rule in pack.memory_layer.memory_policy.tier_routing:
        when = rule.when
        if when.source is not None and when.source != candidate.source:
            continue
        if when.write_class is not None and when.write_class != candidate.write_class:
            continue
        if when.intent is not None and not intent_under(candidate.scope.intent_id, when.intent):
            continue
        if when.sensitive is not None and when.sensitive != pack.is_sensitive(candidate.classification):
            continue
        if rule.tier == "working" and candidate.scope.session_id is None:
            continue
        return rule.tier
    return "semantic"


def priority_for(candidate: Candidate, pack: Pack) -> float:
    """By source, a little more for each piece of evidence, at most 1 (REV-2)."""
    weights = pack.memory_layer.memory_policy.priority
    base: float = getattr(weights, "agent" if candidate.source == "end_user" else candidate.source)
    evidence = min(weights.per_evidence * len(candidate.evidence_refs), weights.evidence_max)
    return round(min(base + evidence, 1.0), 6)


def due_at(write_class: WriteClass, *, sensitive: bool, now: datetime, pack: Pack) -> datetime:
    """When the review is due: the class's own term, or the shorter one for sensitive facts."""
    term = pack.policy_for(write_class).sla
    if sensitive:
        term = min(term, pack.memory_layer.promotion_thresholds.sensitive_sla)
    return now + term


def expires_at(write_class: WriteClass, tier: Tier, promoted_at: datetime, pack: Pack) -> datetime | None:
    """By tier, or the class's own retention where that is shorter (PRO-4)."""
    term = _term(write_class, tier, pack)
    return promoted_at + term if term is not None else None


def lasts_as_long(memory: PromotedMemory, candidate: Candidate, tier: Tier, pack: Pack) -> bool:
    """Whether what stands was given as long a time as the candidate would get."""
    own, given = _term(candidate.write_class, tier, pack), _term(memory.write_class, memory.tier, pack)
    return given is None or (own is not None and own <= given)


def _term(write_class: WriteClass, tier: Tier, pack: Pack) -> timedelta | None:
    terms = (pack.memory_layer.memory_policy.ttl.get(tier), pack.policy_for(write_class).retention)
    return min((term for term in terms if term is not None), default=None)
