"""What reviewers share: saved views, the progress of a day, second looks, display names."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from muniment.model.fields import Artifact, Tier, WriteClass
from muniment.model.proposal import HumanReason, Proposal
from muniment.model.review_views import Danger, GroupOfProposals, QueueCounts, QueueGroup, QueueOrder, Risk
from muniment.model.trail import Evidence

Decision = Literal["approve", "reject"]


class ViewFilters(Artifact):
    """How a person looks at the queue: filters, order and groups, never whom it is about."""

    write_class: WriteClass | None = None
    risk: Risk | None = None
    tier: Tier | None = None
    reason: HumanReason | None = None
    danger: Danger | None = None
    order: QueueOrder | None = None
    group: QueueGroup | None = None
    mine: bool = False
    overdue: bool = False
    held: bool = False
    mentioned: bool = False


class SavedView(Artifact):
    """A view of the queue under a name."""

    name: str
    filters: ViewFilters


class PersonsDay(Artifact):
    """How many proposals a person decided."""

    person: str
    decided: int


class DayProgress(Artifact):
    """What people decided since midnight of a zone, and how often second looks agreed in 30 days."""

    since: datetime
    decided: int = 0
    mine: int = 0
    by_person: tuple[PersonsDay, ...] = ()
    second_looks: int = 0
    agreed: int = 0


class SecondLook(Artifact):
    """A proposal that somebody else decided, to be judged again without knowing how; None where there is none."""

    proposal: Proposal | None = Field(default=None, description="without its verdicts and what became of it")
    evidence: Evidence | None = Field(
        default=None, description="what it rests on and what it contradicts, as it was before anybody decided"
    )


class Agreement(Artifact):
    """Whether a second look agreed with what was decided."""

    proposal_id: str
    agreed: bool
    decided: Decision
    by: str


class SubjectName(Artifact):
    """The display name of a subject; None where it has none."""

    subject: str
    name: str | None = None


class QueueOverview(Artifact):
    """The queue at a glance, as its page shows it."""

    counts: QueueCounts
    matching: int = Field(description="the open proposals that match the filters; those that say the same count each")
    groups: tuple[GroupOfProposals, ...] = ()
    progress: DayProgress
    views: tuple[SavedView, ...] = ()
