"""A memory's life as steps in the order of time: what its trail says, laid out for a timeline."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from muniment.model.ids import made_at
from muniment.model.promoted import PromotedMemory
from muniment.model.proposal import Proposal, Verdict
from muniment.model.trail import Trail

Kind = Literal[
    "captured",
    "consent",
    "proposed",
    "verdict",
    "promoted",
    "contradicted",
    "settled",
    "used",
    "retracted",
    "expired",
    "tombstoned",
    "consent_revoked",
]
Tone = Literal["", "warn", "bad"]

# What comes first of what happened at the same moment.
_ORDER: tuple[Kind, ...] = (
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
)
_STOPPED = frozenset({"reject", "block", "withdraw"})
_WAITS = frozenset({"hold", "duplicate", "edit"})


@dataclass(frozen=True)
class Uses:
    """Recalls that returned a memory, and prompts it went into, with nothing else in between; the first first."""

    recalls: tuple[str, ...]
    prompts: tuple[str, ...]
    until: datetime


@dataclass(frozen=True)
class Step:
    """One step: `of` is what it is about, as the trail has it."""

    at: datetime
    kind: Kind
    of: Any
    tone: Tone = ""


def life_of(trail: Trail, now: datetime) -> list[Step]:
    """Every step up to now, the first first; uses that follow each other are one."""
    steps = [*_before(trail), *_since(trail, now)]
    steps += [Step(at, "used", Uses((one,), (), at)) for one in trail.recalls if (at := made_at(one)) is not None]
    steps += [Step(at, "used", Uses((), (one,), at)) for one in trail.prompts if (at := made_at(one)) is not None]
    steps.sort(key=lambda step: (step.at, _ORDER.index(step.kind)))
    return _gathered(steps)


def state_of(memory: PromotedMemory, now: datetime) -> str:
    """What it is now, in a word."""
    if memory.tombstoned_at is not None:
        return "tombstoned"
    if memory.retracted_at is not None:
        return "superseded" if memory.superseded_by is not None else "retracted"
    if memory.expires_at is not None and memory.expires_at <= now:
        return "expired"
    return "live"


def _before(trail: Trail) -> list[Step]:
    """What led to it."""
    memory = trail.memory
    steps = [Step(memory.captured_at, "captured", trail.capture)]
    if (consent := trail.consent) is not None:
        steps.append(Step(consent.captured_at, "consent", consent))
    for proposal in trail.proposals:
        steps.append(Step(proposal.enqueued_at, "proposed", proposal))
        steps += [Step(one.at, "verdict", one, _tone(one)) for one in _told(proposal)]
    return steps


def _since(trail: Trail, now: datetime) -> list[Step]:
    """Its promotion, and what became of it."""
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


def _told(proposal: Proposal) -> list[Verdict]:
    """Its verdicts, but for a pass of policy's that its promotion tells of."""
    return [one for one in proposal.verdicts if not (one.action == "approve" and one.by == "auto" and not one.note)]


def _tone(verdict: Verdict) -> Tone:
    return "bad" if verdict.action in _STOPPED else "warn" if verdict.action in _WAITS else ""


def _gathered(steps: list[Step]) -> list[Step]:
    """Uses that follow each other as one step."""
    found: list[Step] = []
    for step in steps:
        last = found[-1] if found else None
        if step.kind == "used" and last is not None and last.kind == "used":
            both = Uses(last.of.recalls + step.of.recalls, last.of.prompts + step.of.prompts, step.at)
            found[-1] = Step(last.at, "used", both)
        else:
            found.append(step)
    return found
