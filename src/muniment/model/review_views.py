"""What a reviewer sees before deciding: queue counts, checks of edits, previews of approvals, other reviewers."""

from datetime import datetime
from typing import Literal

from pydantic import Field, computed_field

from muniment.model.audience import Audience
from muniment.model.candidate import Candidate, Refusal
from muniment.model.fields import Artifact, Tier, WriteClass
from muniment.model.proposal import HumanReason, Outcome, Proposal, Status
from muniment.model.recall import RecallAnswer

Risk = Literal["low", "high"]
OpenStatus = Literal["pending", "held"]
QueueOrder = Literal["due", "newest", "unusual"]
QueueGroup = Literal["subject", "source", "class"]
ManyAction = Literal["approve", "reject", "assign"]
Danger = Literal[
    "any", "addresses_model", "guard", "low_trust", "high_risk", "contradiction", "opposites", "sensitive",
    "third_party", "names_targets", "unusual_source", "low_confidence",
]  # fmt: skip


class QueueCounts(Artifact):
    """How many proposals are open, by kind; a proposal with two reasons counts under both."""

    open: int = 0
    overdue: int = 0
    due_within_a_day: int = Field(default=0, description="not overdue yet")
    held: int = 0
    mine: int = Field(default=0, description="assigned to the caller")
    mentioned: int = Field(default=0, description="with a comment that names the caller")
    by_class: dict[WriteClass, int] = Field(default_factory=dict)
    by_risk: dict[Risk, int] = Field(default_factory=dict)
    by_tier: dict[Tier, int] = Field(default_factory=dict)
    by_reason: dict[HumanReason, int] = Field(default_factory=dict)


class GroupOfProposals(Artifact):
    """Open proposals about one subject, from one source or of one class."""

    name: str = Field(description="the subject, the author or the class; empty for those about nobody")
    count: int
    overdue: int = 0
    unusual: int = Field(default=0, description="those in which there is a danger to notice")
    due_at: datetime


class QueueSearch(Artifact):
    """A page of the open proposals that have the words, and how far the search went."""

    proposals: tuple[Proposal, ...] = ()
    matching: int = Field(default=0, description="how many were found in all; those that say the same count once")
    complete: bool = Field(
        default=True, description="whether all that match the filters were searched; false where they were too many"
    )


class PlannedApproval(Artifact):
    """A proposal that would be approved, rejected or assigned, at the version that was read."""

    proposal_id: str
    version: int


class ApprovalPlan(Artifact):
    """What deciding many would do, as far as it can be known before: what is taken, what is left out, and the mix."""

    approved: tuple[PlannedApproval, ...] = Field(
        default=(), description="those that are taken, also to reject or assign"
    )
    left_out: tuple[Outcome, ...] = Field(default=(), description="those that are left out, each with the reasons")
    by_class: dict[WriteClass, int] = Field(default_factory=dict)
    by_tier: dict[Tier, int] = Field(default_factory=dict)
    by_label: dict[str, int] = Field(default_factory=dict)
    by_subject: dict[str, int] = Field(default_factory=dict, description="the ten with most of them")
    subjects: int = Field(default=0, description="how many subjects they are about")
    more: bool = Field(default=False, description="whether more match than one plan looks at")


class ContradictedMemory(Artifact):
    """A live memory that a candidate contradicts, and how they differ."""

    memory_id: str
    reason: str
    replaced: bool = Field(description="whether the rules let the candidate replace it")


class EditCheck(Artifact):
    """What an edit would lead to; nothing is stored."""

    proposal_id: str
    refusal: Refusal | None = Field(default=None, description="the gate that would refuse it, and why")
    candidate: Candidate | None = Field(
        default=None, description="as it would be stored: masked, calibrated, classified"
    )
    tier: Tier | None = None
    audience: Audience | None = Field(default=None, description="which recalls would show it")
    priority: float | None = None
    human_reasons: tuple[HumanReason, ...] = ()
    contradicts: tuple[ContradictedMemory, ...] = ()
    repeats: tuple[str, ...] = Field(default=(), description="live memories that say the same: it would be a duplicate")

    @computed_field
    @property
    def passes(self) -> bool:
        """Whether every gate would pass it."""
        return self.refusal is None


class RecallPreview(RecallAnswer):
    """What a recall would return to a run; not recorded as a recall."""

    @property
    def all_ids(self) -> tuple[str, ...]:
        """The ids of all its records."""
        return tuple(record.id for record in self.all_records)


class Preview(Artifact):
    """What a recall would return before and after a proposal's approval."""

    proposal_id: str
    status: Status = Field(description="its status after the approval; its present status if it cannot be approved")
    error: str | None = Field(default=None, description="the error code that an approval would raise")
    message: str | None = None
    memory_id: str | None = Field(default=None, description="the placeholder id of the memory it would become")
    supersedes: tuple[str, ...] = Field(default=(), description="the memories it would replace")
    before: RecallPreview
    after: RecallPreview
    appears: tuple[str, ...] = ()
    disappears: tuple[str, ...] = ()


class Presence(Artifact):
    """A reviewer who has the same proposal open."""

    principal: str
    since: datetime
