"""What a proposal is based on, side by side for whoever decides it."""

from pydantic import Field

from muniment.model.candidate import Candidate
from muniment.model.capture import Capture
from muniment.model.consent import Consent
from muniment.model.contradiction import Contradiction
from muniment.model.fields import Artifact
from muniment.model.promoted import PromotedMemory
from muniment.model.proposal import Proposal


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
    barred: str | None = Field(default=None, description="why the caller cannot approve it (REV-4)")
