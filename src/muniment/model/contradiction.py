"""Contradiction: a memory and a proposal that cannot both be true, from its detection to its resolution."""

from datetime import datetime
from typing import Literal

from pydantic import Field, computed_field

from muniment.model.decision import Reason
from muniment.model.fields import Artifact
from muniment.model.promoted import PromotedMemory
from muniment.model.proposal import Proposal

Outcome = Literal[
    "superseded", "corrected", "coexist", "retracted", "blocked", "rejected", "edited", "duplicate",
    "withdrawn", "consent_revoked",
]  # fmt: skip
Side = Literal["existing", "incoming"]
ResolutionMethod = Literal["supersede", "coexist", "retract", "block"]


class Contradiction(Artifact):
    """An open or resolved contradiction with both its sides."""

    contradiction_id: str
    tenant_id: str
    seq: int
    entity: str | None = None
    predicate: str | None = None
    existing: str = Field(description="the memory that was there first")
    proposal_id: str = Field(description="the proposal that says something else")
    incoming: str | None = Field(default=None, description="the memory it was promoted to, if it was")
    reason: str = Field(description="in what they differ: other_value on a key, else what the judge of texts found")
    opened_at: datetime
    closed_at: datetime | None = None
    outcome: Outcome | None = Field(default=None, description="how it was resolved; none if one side expired")
    resolved_by: str | None = None

    @computed_field
    @property
    def open(self) -> bool:
        """Whether it is still open."""
        return self.closed_at is None


class Recommendation(Artifact):
    """Which side to keep, and what speaks for it; neither where nothing decides."""

    keep: Side | None = None
    reasons: tuple[Reason, ...] = ()


class ContradictionDetails(Artifact):
    """A contradiction with the content of both sides: the existing memory, and what contradicts it."""

    contradiction: Contradiction
    existing: PromotedMemory
    proposal: Proposal
    incoming: PromotedMemory | None = Field(default=None, description="what the proposal became, if it did")
    recommendation: Recommendation = Field(
        default=Recommendation(), description="which side to keep while it is open, and why"
    )
