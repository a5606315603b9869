"""A memory's timeline: every step of its history in the order of time."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, get_args

from muniment.model.ids import made_at
from muniment.model.promoted import PromotedMemory
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
_TONES: dict[str, Tone] = {"reject": "bad", "block": "bad", "withdraw": "bad"}
_TONES.update(hold="warn", duplicate="warn", edit="warn")


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
    memory, consent = trail.memory, trail.consent
    ended = memory.retracted_at or memory.tombstoned_at or now
    dated: list[tuple[datetime | None, Kind, Any, Tone]] = [
        (memory.captured_at, "captured", trail.capture, ""),
        (memory.promoted_at, "promoted", memory, ""),
        (memory.retracted_at, "retracted", memory, "bad"),
        (memory.tombstoned_at, "tombstoned", memory, "bad"),
    ]
    if memory.expires_at is not None and memory.expires_at <= ended:
        dated.append((memory.expires_at, "expired", memory, "warn"))
    if consent is not None:
        dated.append((consent.captured_at, "consent", consent, ""))
        dated.append((consent.revoked_at, "consent_revoked", consent, "bad"))
    for proposal in trail.proposals:
        dated.append((proposal.enqueued_at, "proposed", proposal, ""))
        # An automatic approval is shown as the promotion.
        shown = [one for one in proposal.verdicts if one.action != "approve" or one.by != "auto" or one.note]
        dated.extend((one.at, "verdict", one, _TONES.get(one.action, "")) for one in shown)
    for one in trail.contradictions:
        dated.append((one.opened_at, "contradicted", one, "warn"))
        dated.append((one.closed_at, "settled", one, ""))
    steps = [Step(at, kind, of, tone) for at, kind, of, tone in dated if at is not None]
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
