"""Candidate: a typed fact extracted from a capture, before review; and the refusal of one."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from muniment.model.fields import Artifact, Probability, Source, WriteClass

GateName = Literal[
    "allow_list", "evidence", "redaction", "classification", "consent", "trust", "confidence", "rejection"
]


Flag = Literal["user_correction", "compliance_flag", "near_threshold", "user_asked", "agent_asked"]


class Scope(Artifact):
    """Which runs could see a fact: user, session, workflow, intent, qualifiers."""

    user_id: str | None = None
    session_id: str | None = None
    workflow_id: str | None = None
    intent_id: str | None = None
    qualifiers: dict[str, str] = Field(default_factory=dict)
    required: dict[str, str] = Field(
        default_factory=dict,
        description="qualifiers that a run must give to see it, if two sides of a contradiction coexist",
    )


class Passed(Artifact):
    """A gate that passed a candidate, and why."""

    gate: GateName
    reason: str
    detail: str = ""


class Utterance(Artifact):
    """How a fact was said in a message; sealed with the fact, and left out of every comparison (CAN-11)."""

    speaker: str | None = Field(default=None, description="who said it, by the name in the message, else the user's id")
    said_at: datetime | None = Field(default=None, description="when it was said")
    dates: dict[str, str] = Field(
        default_factory=dict, description="the calendar dates that its relative dates mean, such as `last Friday`"
    )
    follows: str | None = Field(default=None, description="the capture before its own in the session")
    predicate_name: str | None = Field(
        default=None, description="the predicate in words, where `predicate` is a keyed hash of words of the message"
    )
    claimed_author: str | None = Field(
        default=None, description="of an import: who wrote it, as the system says that it was imported from (IMP-2)"
    )
    claimed_at: datetime | None = Field(default=None, description="of an import: when it was written there")


class StoredFact(Utterance):
    """What a candidate, or the memory it became, says."""

    write_class: WriteClass
    entity: str | None = None
    predicate: str | None = None
    value: Any = None
    text: str
    evidence_refs: tuple[str, ...] = ()
    context: str = Field(default="", description="the other sentences of its message; they count for ranking only")
    valid_from: datetime | None = Field(default=None, description="from when it holds in the world (REC-14)")
    valid_until: datetime | None = Field(default=None, description="until when it holds in the world")


class _Author(Artifact):
    candidate_id: str
    tenant_id: str
    capture_id: str
    author: str
    source: Source


class Candidate(StoredFact, _Author):
    """A typed fact with its origin and its confidence (CAN-1)."""

    raw_confidence: Probability
    confidence: Probability
    classification: str
    subject: str | None = None
    scope: Scope = Field(default_factory=Scope)
    trust: Probability
    consent_id: str | None = None
    extractor: str
    claimed_by: str = Field(default="", description="who claimed its confidence: the kind of source and the extractor")
    calibration: str | None = Field(default=None, description="the calibration applied to its confidence (CAN-6)")
    flags: tuple[Flag, ...] = Field(
        default=(), description="why a person must review it: its extractor or the pack says so"
    )
    third_party: bool = Field(
        default=False,
        description="it says something of a special category about somebody else than its speaker (CAN-16)",
    )
    corrects: str | None = Field(default=None, description="the memory that a correction was written on")
    gates: tuple[Passed, ...] = Field(default=(), description="what it passed, in order")
    redactions: dict[str, int] = Field(default_factory=dict, description="how often each kind was masked (RED-4)")
    exceptions: dict[str, int] = Field(
        default_factory=dict, description="how often each kind was found and left, as the pack excepts it (RED-5)"
    )
    language: str | None = Field(default=None, description="the version of the language package that read it (CAN-15)")
    edits: str | None = Field(default=None, description="the candidate this one is an operator's edit of")
    editor: str | None = None

    @property
    def on_key(self) -> bool:
        """Whether it is compared by entity and predicate, rather than by its text."""
        return self.entity is not None and self.predicate is not None


class Refusal(Artifact):
    """A candidate that a gate refused: no content is kept (CAN-5)."""

    capture_id: str
    gate: GateName
    reason: str
    at: datetime
    rejection: str | None = Field(default=None, description="the rejected proposal that it repeats (REV-6)")


class Consolidation(Artifact):
    """The result of one consolidation pass over a tenant's captures."""

    captures: int = 0
    proposals: tuple[str, ...] = ()
    promoted: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    waiting: int = Field(default=0, description="captures that will be tried again later, and those behind them")
    failed: tuple[str, ...] = Field(default=(), description="captures that were parked for an operator")
