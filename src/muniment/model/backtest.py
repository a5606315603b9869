"""The result of a backtest: recorded history under another pack, compared with the pack in force (PAC-3)."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from muniment.model.fields import Artifact

# What would become of a candidate: promoted by policy, seen by a person, seen for what it contradicts, and so on.
Fate = Literal["promoted", "person", "contradiction", "duplicate", "refused"]
FATES: tuple[Fate, ...] = ("promoted", "person", "contradiction", "duplicate", "refused")
EXAMPLES = 5


class Example(Artifact):
    """One capture or recall that a rule treats differently; `records` are the memories that come or go."""

    id: str
    text: str | None = Field(default=None, description="masked by both packs; only for a reviewer who asked for it")
    records: tuple[str, ...] = ()


class RuleDifference(Artifact):
    """What one rule decides differently, how often, with examples."""

    rule: str = Field(
        description="a gate with its reason, tier, approval, sla, retention, redaction, recall.labels ..."
    )
    before: str
    after: str
    count: int
    examples: tuple[Example, ...] = ()


class Tally(Artifact):
    """What would become of the candidates under one pack."""

    candidates: int = 0
    fates: dict[Fate, int] = Field(default_factory=dict)
    refusals: dict[str, int] = Field(default_factory=dict, description="by gate and reason")


class RecallChanges(Artifact):
    """How recorded recalls would change: how many were run, and how many records appear, disappear or move."""

    recalls: int = 0
    changed: int = 0
    come: int = 0
    gone: int = 0
    unreadable: int = Field(default=0, description="their query was erased, or their embedder is not here")


class Backtest(Artifact):
    """Recorded captures and recalls under a pack, compared with the one it would replace. Nothing is written."""

    pack: str
    against: str
    since: datetime | None
    until: datetime
    captures: int = 0
    unreadable: int = Field(default=0, description="captures whose content is gone or cannot be decrypted")
    more: bool = Field(default=False, description="the window holds more captures than were requested")
    before: Tally
    after: Tally
    recalls: RecallChanges = Field(default_factory=RecallChanges)
    differences: tuple[RuleDifference, ...] = ()
    left_out: dict[str, int] = Field(
        default_factory=dict, description="extractors that were not called, and for how many captures"
    )
    notes: tuple[str, ...] = ()
