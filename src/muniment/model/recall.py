"""The result of a recall; and recorded recalls, as far as the caller may see them now."""

from datetime import datetime
from typing import Any

from pydantic import Field

from muniment.model.candidate import Scope, Utterance
from muniment.model.explanation import FilterName, Visibility
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


class Record(Utterance):
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
    valid_from: datetime | None = Field(default=None, description="from when it holds in the world (REC-14)")
    valid_until: datetime | None = Field(default=None, description="until when it holds in the world")
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
    valid_at: datetime | None = Field(default=None, description="when its records hold in the world (REC-14)")
    pack: str
    embedder: str | None = Field(default=None, description="the embedder whose vectors ranked it; none without a query")
    approximate: bool = Field(default=False, description="the scope was too large for an exact ranking")


class Recall(RecallAnswer, _Recorded):
    """The answer to one recall."""


class RecallSummary(Artifact):
    """A recorded recall: whose, when, under which pack, and how much it returned; never its query."""

    recall_id: str
    at: datetime
    seq: int = Field(description="the tenant's sequence number then")
    run_id: str
    agent_id: str
    user_id: str | None = None
    pack: str
    as_of: datetime | None = Field(default=None, description="the requested point in time, if not now")
    with_query: bool = False
    returned: int = Field(description="how many memories it returned; for a run, of those that it may see now")
    omitted: int | None = Field(
        default=0, description="how many the limit cut off or were not relevant; not shown to a run"
    )
    degraded: tuple[str, ...] = ()


class Returned(Artifact):
    """A memory that a recall returned, with its provenance, and whether the run would see it now (REC-5).

    Rights count as of now: of what was erased, or whose consent ended, neither text nor evidence is shown.
    """

    memory_id: str
    visibility: Visibility = Field(description="for the same run now")
    hidden_by: tuple[FilterName, ...] = Field(default=(), description="every filter that would hide it")
    text: str = Field(default="", description="only for a person")
    withheld: bool = Field(default=False, description="neither text nor evidence is shown")
    write_class: WriteClass
    tier: Tier
    classification: str
    provenance: Provenance

    @property
    def visible(self) -> bool:
        """Whether every filter would pass it."""
        return self.visibility == "visible"


class RecallDetails(RecallSummary):
    """A recorded recall with what it returned, in its order."""

    memories: tuple[Returned, ...] = ()
