"""A memory's timeline: every step of its history in the order of time."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args

from muniment.model.ids import made_at
from muniment.model.promoted import PromotedMemory
from muniment.model.proposal import Proposal, Verdict
from muniment.model.trail import Trail

# In the order of steps that happened at the same time.
Kind = Literal[
    "captured",
    "consent",
    "proposed",
    "contradicted",
    "verdict",
    "promoted",
    "used",
    "settled",
    "consent_revoked",
    "expired",
    "retracted",
    "tombstoned",
]
Tone = Literal["", "warn", "bad"]

_ORDER: tuple[Kind, ...] = get_args(Kind)
_STOPPED = frozenset({"reject", "block", "withdraw"})
_WAITS = frozenset({"hold", "duplicate", "edit"})


@dataclass(frozen=True)
class Uses:
    """Consecutive recalls that returned a memory and prompts that contained it, oldest first."""

    recalls: tuple[str, ...]
    prompts: tuple[str, ...]
    until: datetime


@dataclass(frozen=True)
class Step:
    """One step; `of` is the record it shows."""

    at: datetime
    kind: Kind
    of: Any
    tone: Tone = ""


def timeline(trail: Trail, now: datetime) -> list[Step]:
    """Every step up to now, oldest first; consecutive uses are one step."""
    steps = [*_steps_to_proposal(trail), *_steps_since_promotion(trail, now)]
    steps += [Step(at, "used", Uses((one,), (), at)) for one in trail.recalls if (at := made_at(one)) is not None]
    steps += [Step(at, "used", Uses((), (one,), at)) for one in trail.prompts if (at := made_at(one)) is not None]
    steps.sort(key=lambda step: (step.at, _ORDER.index(step.kind)))
    return _merge_uses(steps)


def state_of(memory: PromotedMemory, now: datetime) -> str:
    """The state of a memory now, in one word."""
    if memory.tombstoned_at is not None:
        return "tombstoned"
    if memory.retracted_at is not None:
        return "superseded" if memory.superseded_by is not None else "retracted"
    if memory.expires_at is not None and memory.expires_at <= now:
        return "expired"
    return "live"


def _steps_to_proposal(trail: Trail) -> list[Step]:
    memory = trail.memory
    steps = [Step(memory.captured_at, "captured", trail.capture)]
    if (consent := trail.consent) is not None:
        steps.append(Step(consent.captured_at, "consent", consent))
    for proposal in trail.proposals:
        steps.append(Step(proposal.enqueued_at, "proposed", proposal))
        steps += [Step(one.at, "verdict", one, _tone(one)) for one in _shown_verdicts(proposal)]
    return steps


def _steps_since_promotion(trail: Trail, now: datetime) -> list[Step]:
    memory = trail.memory
    steps = [Step(memory.promoted_at, "promoted", memory)]
    for one in trail.contradictions:
        steps.append(Step(one.opened_at, "contradicted", one, "warn"))
        if one.closed_at is not None:
            steps.append(Step(one.closed_at, "settled", one))
    if memory.retracted_at is not None:
        steps.append(Step(memory.retracted_at, "retracted", memory, "bad"))
    ended = memory.retracted_at or memory.tombstoned_at or now
    if memory.expires_at is not None and memory.expires_at <= ended:
        steps.append(Step(memory.expires_at, "expired", memory, "warn"))
    if memory.tombstoned_at is not None:
        steps.append(Step(memory.tombstoned_at, "tombstoned", memory, "bad"))
    if (consent := trail.consent) is not None and consent.revoked_at is not None:
        steps.append(Step(consent.revoked_at, "consent_revoked", consent, "bad"))
    return steps


def _shown_verdicts(proposal: Proposal) -> list[Verdict]:
    """Its verdicts without an automatic approval, which the promotion step already shows."""
    return [one for one in proposal.verdicts if not (one.action == "approve" and one.by == "auto" and not one.note)]


def _tone(verdict: Verdict) -> Tone:
    return "bad" if verdict.action in _STOPPED else "warn" if verdict.action in _WAITS else ""


def _merge_uses(steps: list[Step]) -> list[Step]:
    merged: list[Step] = []
    for step in steps:
        last = merged[-1] if merged else None
        if step.kind == "used" and last is not None and last.kind == "used":
            both = Uses(last.of.recalls + step.of.recalls, last.of.prompts + step.of.prompts, step.at)
            merged[-1] = Step(last.at, "used", both)
        else:
            merged.append(step)
    return merged
