"""What a proposal rests on, laid side by side for whoever decides it."""

from pydantic import Field

from muniment.model.candidate import Candidate
from muniment.model.capture import Capture
from muniment.model.consent import Consent
from muniment.model.contradiction import Contradiction
from muniment.model.fields import Artifact
from muniment.model.promoted import PromotedMemory
from muniment.model.proposal import Proposal


class Evidence(Artifact):
    """A proposal with its capture, what it was before it was edited, and the memories that the checks named."""

    proposal: Proposal
    capture: Capture | None = None
    archive: str | None = Field(default=None, description="without a capture: the archive it was dropped with")
    edits: tuple[Candidate, ...] = Field(default=(), description="what it was before it was edited, the first first")
    contradictions: tuple[Contradiction, ...] = ()
    memories: dict[str, PromotedMemory] = Field(
        default_factory=dict, description="by id: what it contradicts, repeats, corrects, samples, or became"
    )
    consent: Consent | None = None
    labels: tuple[str, ...] = Field(default=(), description="the classifications it may have: they only rise")
    barred: str | None = Field(default=None, description="why whoever asks cannot approve it (REV-4)")
