"""PromotedMemory: a fact that may be recalled, with its provenance."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from pydantic import Field

from muniment.model.candidate import Scope, StoredFact
from muniment.model.fields import Artifact, CaptureKind, Source, Tier

RetractionReason = Literal[
    "superseded", "corrected", "wrong", "consent_revoked", "erased", "deprecated", "undone", "forgotten"
]
# Those that whoever retracts a memory may state; the others are recorded by what has them (PRO-8, SUB-3).
StatedReason = Literal["superseded", "corrected", "wrong", "consent_revoked", "erased", "deprecated"]


class Ending(Artifact):
    """When, by whom and why a memory was retracted, and what replaced it; empty where it was not."""

    retracted_at: datetime | None = None
    retracted_by: str | None = None
    retraction_reason: RetractionReason | None = None
    superseded_by: str | None = None


class _Ids(Artifact):
    memory_id: str
    candidate_id: str
    proposal_id: str
    verdict_id: str
    capture_id: str
    tenant_id: str
    scope: Scope
    decision_key: str | None = None
    subject: str | None = None


class PromotionDetails(Artifact):
    """How a memory is classified, weighed and trusted, where it came from, and who approved it when."""

    classification: str
    sensitive: bool
    tier: Tier
    priority: float
    confidence: float
    trust: float
    consent_id: str | None = None
    third_party: bool = Field(
        default=False,
        description="it is about somebody else than its speaker in a special category: only its user's runs see it",
    )
    pack: str
    ontology_version: str
    kind: CaptureKind
    origin: str | None = None
    vouched: str | None = Field(
        default=None,
        description="`user` or `tool:name` if its author may speak for that (ISO-8); otherwise unverified",
    )
    source: Source
    author: str
    editor: str | None = None
    captured_at: datetime
    observed_at: datetime
    approver: str = Field(description="a principal's id, or `auto`")
    born_seq: int
    promoted_at: datetime
    expires_at: datetime | None = None
    dead_seq: int | None = None


# The groups of fields stand in reverse order: JSON shows those of the last first.
class PromotedMemory(Ending, PromotionDetails, StoredFact, _Ids):
    """A promoted memory; after its insert only its retraction can change it, once (PRO-2, PRO-3)."""

    tombstoned_at: datetime | None = Field(
        default=None, description="when its content was removed: text and value are empty"
    )
    contradiction: bool = Field(
        default=False, description="an open contradiction exists; for a run, with a memory it can see"
    )


class Retraction(Artifact):
    """The retraction of a memory: by whom, when, why, and what replaced it."""

    memory_id: str
    seq: int
    retracted_at: datetime
    retracted_by: str
    reason: RetractionReason
    superseded_by: str | None = None


class NotRestored(Artifact):
    """A memory that an undo did not restore at once: why, and the proposal in which a person decides on it, if any."""

    memory_id: str
    reason: str
    proposal_id: str | None = None


class Undone(Artifact):
    """What an undo did: the retraction, the memories that came back, and those that did not (PRO-8)."""

    retraction: Retraction
    restored: dict[str, str] = Field(
        default_factory=dict, description="each memory that it had superseded, with the new record of it"
    )
    not_restored: tuple[NotRestored, ...] = ()


class SessionEnd(Artifact):
    """The end of a session: its working memories are no longer recalled (TIR-6)."""

    session_id: str
    user_id: str | None = None
    seq: int
    ended_at: datetime
    ended_by: str


@dataclass(frozen=True)
class Reindexed:
    """How many memories got words or vectors that they lacked, and the embedder that is in use now."""

    memories: int
    embedder: str
