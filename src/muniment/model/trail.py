"""What a memory is based on, back to its capture (AUD-1); and what a proposal is based on, for whoever decides it."""

from datetime import datetime

from pydantic import Field

from muniment.model.candidate import Candidate
from muniment.model.capture import Capture
from muniment.model.consent import Consent
from muniment.model.contradiction import Contradiction
from muniment.model.events import Event
from muniment.model.fields import Artifact
from muniment.model.promoted import PromotedMemory
from muniment.model.proposal import Proposal


class Recalled(Artifact):
    """How often recalls returned a memory, and when they first and last did."""

    times: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None


class Trail(Artifact):
    """Everything a promoted memory is based on, and the recalls and prompts that used it, the latest first."""

    memory: PromotedMemory
    proposals: tuple[Proposal, ...]
    candidates: tuple[Candidate, ...]
    capture: Capture | None
    archive: str | None = Field(default=None, description="the archive that its capture was dropped with, if it was")
    consent: Consent | None = None
    contradictions: tuple[Contradiction, ...] = ()
    recalls: tuple[str, ...] = ()
    recalled: Recalled = Recalled()
    prompts: tuple[str, ...] = ()
    events: tuple[Event, ...] = ()


class Evidence(Artifact):
    """A proposal with its capture, its versions before each edit, and the memories that the checks found."""

    proposal: Proposal
    capture: Capture | None = None
    archive: str | None = Field(default=None, description="the archive that its capture was dropped with, if it was")
    edits: tuple[Candidate, ...] = Field(default=(), description="its versions before each edit, oldest first")
    contradictions: tuple[Contradiction, ...] = ()
    memories: dict[str, PromotedMemory] = Field(
        default_factory=dict, description="by id: what it contradicts, repeats, corrects, samples, or became"
    )
    consent: Consent | None = None
    labels: tuple[str, ...] = Field(
        default=(), description="the classifications it may be given: only the same or higher"
    )
    suspicious: tuple[tuple[int, int], ...] = Field(
        default=(), description="where its text addresses the model: beginning and end of each stretch of words"
    )
    trust_floor: float = Field(default=0.0, description="the trust below which only a person can promote a fact")
    barred: str | None = Field(default=None, description="why the caller cannot approve it (REV-4)")
