"""What a pack would make of a candidate, and the rules in which two packs differ about it (PAC-3)."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from muniment.candidates.rules import due_at, expires_at, priority_for, tier_for
from muniment.contradictions.rules import Compared, may_supersede, repeated
from muniment.model.backtest import Fate
from muniment.model.candidate import Candidate, GateName
from muniment.model.capture import Capture
from muniment.model.decision import Decision
from muniment.model.fields import Tier
from muniment.model.proposal import HumanReason
from muniment.pack import Pack, format_duration
from muniment.review.rules import reasons_for_a_person

# A rule, and what it says before and after.
Changed = tuple[str, str, str]


@dataclass(frozen=True)
class Outcome:
    """What would become of a candidate: refused with `refusal` (gate and reason), or queued with these values."""

    fate: Fate
    refusal: str | None = None
    redactions: dict[str, int] | None = None
    label: str = ""
    tier: Tier | None = None
    priority: float = 0.0
    confidence: float = 0.0
    reasons: tuple[HumanReason, ...] = ()
    contradicts: str = "nothing"
    sla: timedelta | None = None
    lives: timedelta | None = None


def refused(gate: GateName, decision: Decision, redactions: dict[str, int] | None = None) -> Outcome:
    """The outcome at a gate; `redactions` are known for candidates that passed redaction."""
    return Outcome("refused", f"{gate}.{decision.reasons[0].code}", redactions)


def admitted(candidate: Candidate, capture: Capture, compared: Compared, pack: Pack) -> Outcome:
    """The outcome in the queue: what policy derives, and whether a person must review it."""
    tier, observed_at = tier_for(candidate, capture.kind, pack), capture.observed_at
    same = repeated(candidate, tier, compared, pack)
    open_ = [one for one in compared.contradicts if not may_supersede(candidate, tier, capture, one, pack).passed]
    uncertain = bool(compared.uncertain)
    against = bool(open_)
    reasons = reasons_for_a_person(candidate, capture, tier=tier, contradicts=against, uncertain=uncertain, pack=pack)
    sensitive = pack.is_sensitive(candidate.classification)
    ends = expires_at(candidate.write_class, tier, observed_at, pack)
    fate: Fate = "duplicate" if same else "contradiction" if open_ else "person" if reasons else "promoted"
    return Outcome(
        fate=fate,
        redactions=dict(candidate.redactions),
        label=candidate.classification,
        tier=tier,
        priority=priority_for(candidate, pack),
        confidence=candidate.confidence,
        reasons=tuple(reason for reason in reasons if reason != "contradiction"),
        contradicts="open" if open_ else "settled by rule" if compared.contradicts else "nothing",
        sla=due_at(candidate.write_class, sensitive=sensitive, now=observed_at, pack=pack) - observed_at,
        lives=ends - observed_at if ends is not None else None,
    )


def differing(before: Outcome, after: Outcome) -> Iterator[Changed]:
    """The rules by which two packs treat one candidate differently."""
    if (before.fate == "refused" or after.fate == "refused") and before.refusal != after.refusal:
        yield after.refusal or before.refusal or "", _fate(before), _fate(after)
    if before.redactions is not None and after.redactions is not None and before.redactions != after.redactions:
        yield "redaction", _masked(before), _masked(after)
    if "refused" in (before.fate, after.fate):
        return
    if (before.fate == "duplicate") != (after.fate == "duplicate"):
        yield "duplicate", _fate(before), _fate(after)
    if before.contradicts != after.contradicts:
        yield "contradiction", before.contradicts, after.contradicts
    if before.reasons != after.reasons:
        yield "approval", _approval(before), _approval(after)
    yield from _derived(before, after)


def _derived(before: Outcome, after: Outcome) -> Iterator[Changed]:
    if before.label != after.label:
        yield "classification", before.label, after.label
    if before.tier != after.tier:
        yield "tier", str(before.tier), str(after.tier)
    if before.priority != after.priority:
        yield "priority", f"{before.priority:.2f}", f"{after.priority:.2f}"
    if round(before.confidence, 6) != round(after.confidence, 6):
        yield "confidence", f"{before.confidence:.2f}", f"{after.confidence:.2f}"
    seen = {"person", "contradiction"}
    if before.sla != after.sla and before.fate in seen and after.fate in seen:
        yield "sla", _term(before.sla), _term(after.sla)
    if before.lives != after.lives:
        yield "retention", _term(before.lives), _term(after.lives)


def _fate(one: Outcome) -> str:
    return f"refused: {one.refusal}" if one.fate == "refused" else one.fate


def _masked(one: Outcome) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in sorted((one.redactions or {}).items())) or "nothing"


def _approval(one: Outcome) -> str:
    return f"a person: {', '.join(one.reasons)}" if one.reasons else "policy alone"


def _term(term: timedelta | None) -> str:
    return format_duration(term) if term is not None else "no end"
