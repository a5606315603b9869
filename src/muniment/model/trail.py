"""What a memory is based on, back to its capture (AUD-1); and what a proposal is based on, for whoever decides it."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from muniment.model.audience import Audience
from muniment.model.candidate import Candidate
from muniment.model.capture import Capture
from muniment.model.consent import Consent
from muniment.model.contradiction import Contradiction, Recommendation
from muniment.model.events import Event
from muniment.model.fields import Artifact, CaptureKind, WriteClass
from muniment.model.promoted import PromotedMemory
from muniment.model.proposal import Action, Proposal


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


Basis = Literal["message", "tool_result", "record", "claim"]


class EvidenceTurn(Artifact):
    """A capture of the conversation that a fact came from."""

    capture_id: str
    kind: CaptureKind
    speaker: str = Field(description="the end user whose words they are, else the author of the capture")
    by_user: bool = Field(default=False, description="whether the author's credential vouches for the end user")
    observed_at: datetime
    text: str | None = None
    payload: Any = None
    is_source: bool = Field(default=False, description="whether the fact came from this one")


class SourceVerdict(Artifact):
    """What a person decided on another fact of the same source."""

    proposal_id: str
    action: Action
    by: str
    at: datetime
    write_class: WriteClass
    predicate: str | None = None


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
    basis: Basis = Field(
        default="record",
        description="what it rests on: a message, a tool's result, a record; or only the claim of an agent (REV-16)",
    )
    around: tuple[EvidenceTurn, ...] = Field(
        default=(), description="its capture among the three before and after it in the session (REV-16)"
    )
    links: dict[str, str] = Field(
        default_factory=dict, description="by reference, the address that the pack gives for it"
    )
    known: tuple[PromotedMemory, ...] = Field(
        default=(), description="what else is known of its subject: the latest live memories"
    )
    source_verdicts: tuple[SourceVerdict, ...] = Field(
        default=(), description="what people decided last on facts of the same source"
    )
    opposites: tuple[Proposal, ...] = Field(
        default=(), description="open proposals that contradict it, at most five (REV-12)"
    )
    recommendations: dict[str, Recommendation] = Field(
        default_factory=dict, description="by memory that it contradicts: which to keep, and why"
    )
    suspicious: tuple[tuple[int, int], ...] = Field(
        default=(), description="where its text addresses the model: beginning and end of each stretch of words"
    )
    audience: Audience = Field(description="which recalls will show it, or show the memory it became")
    trust_floor: float = Field(default=0.0, description="the trust below which only a person can promote a fact")
    barred: str | None = Field(default=None, description="why the caller cannot approve it (REV-4)")
