"""The result of a recall."""

from datetime import datetime
from typing import Any

from pydantic import Field

from muniment.model.candidate import Scope
from muniment.model.fields import Artifact, CaptureKind, Source, Tier, WriteClass


class Provenance(Artifact):
    """A record's provenance: where it came from, who approved it, when (REC-5)."""

    capture_id: str
    candidate_id: str
    proposal_id: str
    verdict_id: str
    kind: CaptureKind
    origin: str | None
    vouched: str | None = Field(
        default=None,
        description="`user` or `tool:name` if its author may speak for that (ISO-8); otherwise unverified",
    )
    source: Source
    author: str
    approver: str
    consent_id: str | None
    pack: str
    evidence_refs: tuple[str, ...]
    captured_at: datetime
    observed_at: datetime
    promoted_at: datetime
    expires_at: datetime | None
    confidence: float


class Record(Artifact):
    """A recalled memory."""

    id: str
    text: str
    value: Any = None
    write_class: WriteClass
    entity: str | None
    predicate: str | None
    subject: str | None
    classification: str
    tier: Tier
    priority: float
    confidence: float
    scope: Scope
    provenance: Provenance
    contradiction: bool = Field(default=False, description="a contradiction with another record of the run is open")
    score: dict[str, float] = Field(default_factory=dict)


class ConflictSet(Artifact):
    """Memories that contradict each other, returned together for the agent to weigh (REC-4)."""

    contradiction_ids: tuple[str, ...]
    records: tuple[Record, ...]


class RecallAnswer(Artifact):
    """The records of a recall: plain, with low confidence and in conflict sets; how many were left out, and why."""

    records: tuple[Record, ...] = ()
    low_confidence: tuple[Record, ...] = ()
    conflicts: tuple[ConflictSet, ...] = ()
    omitted: int = 0
    degraded: tuple[str, ...] = ()

    @property
    def all_records(self) -> tuple[Record, ...]:
        """All records: plain, low confidence, and in conflict sets."""
        in_conflict = tuple(record for conflict in self.conflicts for record in conflict.records)
        return self.records + self.low_confidence + in_conflict


class _Recorded(Artifact):
    recall_id: str
    at: datetime
    seq: int
    as_of: datetime | None = Field(default=None, description="the requested point in time, if not now")
    pack: str
    embedder: str | None = Field(default=None, description="the embedder whose vectors ranked it; none without a query")
    approximate: bool = Field(default=False, description="the scope was too large for an exact ranking")


class Recall(RecallAnswer, _Recorded):
    """The answer to one recall."""
