"""What a reviewer sees before deciding: the queue in figures, an edit tried, an approval foreseen, who else looks."""

from datetime import datetime
from typing import Literal

from pydantic import Field, computed_field

from muniment.model.candidate import Candidate, Refusal
from muniment.model.fields import Artifact, Tier, WriteClass
from muniment.model.proposal import HumanReason, Status
from muniment.model.recall import ConflictSet, Record

Risk = Literal["low", "high"]
OpenStatus = Literal["pending", "held"]


class QueueCounts(Artifact):
    """How many proposals are open, and how many of those are what. One with two reasons counts under both."""

    open: int = 0
    overdue: int = 0
    due_within_a_day: int = Field(default=0, description="not overdue yet")
    held: int = 0
    mine: int = Field(default=0, description="assigned to whoever asks")
    by_class: dict[WriteClass, int] = Field(default_factory=dict)
    by_risk: dict[Risk, int] = Field(default_factory=dict)
    by_tier: dict[Tier, int] = Field(default_factory=dict)
    by_reason: dict[HumanReason, int] = Field(default_factory=dict)


class Against(Artifact):
    """A live memory that a candidate contradicts, and in what they differ."""

    memory_id: str
    reason: str
    replaced: bool = Field(description="whether the rules let the candidate take its place")


class EditCheck(Artifact):
    """What an edit would become; nothing of it is kept."""

    proposal_id: str
    refusal: Refusal | None = Field(default=None, description="the gate that would refuse it, and why")
    candidate: Candidate | None = Field(default=None, description="as it would be stored: masked, weighed, labelled")
    tier: Tier | None = None
    priority: float | None = None
    human_reasons: tuple[HumanReason, ...] = ()
    contradicts: tuple[Against, ...] = ()
    repeats: tuple[str, ...] = Field(default=(), description="live memories that say the same: it would be a duplicate")

    @computed_field
    @property
    def passes(self) -> bool:
        """Whether every gate would let it through."""
        return self.refusal is None


class RecallPreview(Artifact):
    """What a run would be shown, as a recall gives it; not recorded as one."""

    records: tuple[Record, ...] = ()
    low_confidence: tuple[Record, ...] = ()
    conflicts: tuple[ConflictSet, ...] = ()
    omitted: int = 0
    degraded: tuple[str, ...] = ()

    @property
    def all_ids(self) -> tuple[str, ...]:
        """Of whatever it shows."""
        in_conflict = tuple(record for conflict in self.conflicts for record in conflict.records)
        return tuple(record.id for record in self.records + self.low_confidence + in_conflict)


class Preview(Artifact):
    """What recall would give before and after a proposal's approval."""

    proposal_id: str
    status: Status = Field(description="what the proposal would be then; as it is where it cannot be approved")
    error: str | None = Field(default=None, description="the code of what stands against its approval")
    message: str | None = None
    memory_id: str | None = Field(default=None, description="stands for the memory it would become here")
    supersedes: tuple[str, ...] = Field(default=(), description="the memories whose place it would take")
    before: RecallPreview
    after: RecallPreview
    appears: tuple[str, ...] = ()
    disappears: tuple[str, ...] = ()


class Presence(Artifact):
    """Somebody who has the same proposal before them."""

    principal: str
    since: datetime
