"""Capture: what happened, as it came, written once; and captures as people look through them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import to_json

from muniment.errors import InvalidInput, TooLarge
from muniment.model.candidate import GateName
from muniment.model.fields import (
    PAYLOAD_LIMIT,
    TEXT_LIMIT,
    Artifact,
    CaptureKind,
    Ceid,
    EvidenceRefs,
    Instant,
    Intent,
    Json,
    Label,
    OpenName,
    Predicate,
    Probability,
    Qualifiers,
    Source,
    Text,
    WriteClass,
    field_error,
)

TENANT_HOLDER = "*"

_Shape = Literal["statement", "evidence_link", "typed"]
_HAS: dict[_Shape, tuple[str, ...]] = {
    "statement": ("text",),
    "evidence_link": (),
    "typed": ("entity", "predicate", "value"),
}
_HAS_NOT: dict[_Shape, tuple[str, ...]] = {
    "statement": ("entity", "predicate", "value"),
    "evidence_link": ("value", "text"),
    "typed": (),
}


_WHY_NOT: dict[_Shape, str] = {
    "statement": "must be left out: a statement has text only",
    "evidence_link": "must be left out: an evidence_link holds references only",
    "typed": "",
}


class FactFields(Artifact):
    """The fields of a typed fact that a caller sets."""

    write_class: WriteClass
    entity: Ceid | None = None
    predicate: Predicate | None = None
    value: Json = None
    text: Text | None = None
    confidence: Probability = 0.60


class TypedFact(FactFields):
    """A typed candidate that a caller proposes directly (CAN-8)."""

    corrects: OpenName | None = None

    @model_validator(mode="after")
    def _whole(self) -> Self:
        for field in _HAS[self._shape]:
            if getattr(self, field) is None:
                raise field_error(field, f"is required for a {self.write_class}")
        for field in _HAS_NOT[self._shape]:
            if getattr(self, field) is not None:
                raise field_error(field, _WHY_NOT[self._shape])
        _limit("text", len((self.text or "").encode()), TEXT_LIMIT)
        _limit("value", len(to_json(self.value)), PAYLOAD_LIMIT)
        return self

    @property
    def _shape(self) -> _Shape:
        if self.write_class in ("statement", "evidence_link"):
            return self.write_class
        by_text = self.write_class == "correction" and self.entity is None and self.predicate is None
        return "statement" if by_text and self.value is None else "typed"


class CaptureDetails(Artifact):
    """What a caller may say about a capture beside its content and its label."""

    origin: OpenName | None = None
    subject: Ceid | None = None
    user_id: OpenName | None = None
    session_id: OpenName | None = None
    run_id: OpenName | None = None
    recall_id: OpenName | None = None
    intent_id: Intent | None = None
    workflow_id: OpenName | None = None
    decision_key: OpenName | None = None
    qualifiers: Qualifiers = Field(default_factory=dict)
    evidence_refs: EvidenceRefs = ()
    observed_at: Instant | None = None
    valid_from: Instant | None = Field(None, description="from when it holds in the world (REC-14); by default open")
    valid_until: Instant | None = Field(None, description="until when it holds in the world; by default open")
    idempotency_key: OpenName | None = None


class _Classification(Artifact):
    classification: Label


# The label comes first: of several fields that are missing the first is named.
class Circumstances(CaptureDetails, _Classification):
    """What a caller says about a capture beside its content."""


class _Kind(Artifact):
    kind: CaptureKind


# The kind comes before both.
class Happening(Circumstances, _Kind):
    """Something that happened, as a caller tells of it."""

    text: Text | None = None
    payload: Json = None


class Claims(Artifact):
    """What another system says of something that was imported from it; nobody vouches for it (IMP-2)."""

    system: str = Field(description="the system that it was imported from, such as mem0")
    item_id: str = Field(description="its id there")
    claimed_author: str | None = Field(default=None, description="who wrote it, as that system says")
    claimed_at: datetime | None = Field(default=None, description="when it was written there")
    metadata: Any = Field(default=None, description="what else that system keeps with it")


class CaptureInput(Happening):
    """The input of a capture; the fabric adds author, source, time and pack. Only an import sets `claims`."""

    fact: TypedFact | None = None
    claims: Claims | None = None

    def content(self) -> bytes:
        """What is sealed, as canonical bytes; raises `InvalidInput` if there is nothing, `TooLarge` past the limits."""
        if self.text is None and self.payload is None and self.fact is None:
            raise InvalidInput("give text, a payload, or both", field="text")
        if self.text is not None and len(self.text) * 4 > TEXT_LIMIT:
            _limit("text", len(self.text.encode()), TEXT_LIMIT)
        whole: dict[str, Any] = {}
        if self.text is not None:
            whole["text"] = self.text
        if self.payload is not None:
            whole["payload"] = self.payload
        if self.fact is not None:
            whole["fact"] = self.fact
        if self.evidence_refs:
            whole["evidence_refs"] = self.evidence_refs
        if self.claims is not None:
            whole["claims"] = self.claims.model_dump(exclude_none=True)
        packed = to_json(whole)
        if len(packed) > PAYLOAD_LIMIT and self.payload is not None:
            _limit("payload", len(to_json(self.payload)), PAYLOAD_LIMIT)
        if len(packed) > PAYLOAD_LIMIT and self.claims is not None:
            _limit("metadata", len(to_json(self.claims.metadata)), PAYLOAD_LIMIT)
        return packed


class Content(Artifact):
    """The decrypted content of a capture."""

    text: str | None = None
    payload: Any = None
    fact: TypedFact | None = None
    evidence_refs: tuple[str, ...] = ()
    claims: Claims | None = Field(default=None, description="of an import: what the other system says of it")


# Not frozen: a thousand of these are made per batch, and freezing would take twice their time.
@dataclass(slots=True)
class Receipt:
    """That a capture is committed; `repeated` when its idempotency key had brought it in before."""

    capture_id: str
    seq: int
    captured_at: datetime
    repeated: bool = False


class Receipts(Artifact):
    """The receipts of many captures, in the order of the captures."""

    receipts: tuple[Receipt, ...]

    @classmethod
    def of(cls, receipts: list[Receipt]) -> "Receipts":
        """The list as an object."""
        return cls(receipts=tuple(receipts))

    def result(self) -> list[Receipt]:
        """The list itself."""
        return list(self.receipts)


class Concerned(Artifact):
    """Where a stored capture comes from, and the subject, user, session and run that it concerns."""

    origin: str | None = None
    subject: str | None = None
    user_id: str | None = None
    session_id: str | None = None
    run_id: str | None = None


class _Author(Artifact):
    capture_id: str
    tenant_id: str
    seq: int
    author: str
    source: Source
    kind: CaptureKind
    classification: str


class Capture(Concerned, _Author):
    """The stored capture, with its content if the reader may see it."""

    recall_id: str | None = None
    intent_id: str | None = None
    workflow_id: str | None = None
    decision_key: str | None = None
    qualifiers: dict[str, str] = Field(default_factory=dict)
    observed_at: datetime
    valid_from: datetime | None = Field(default=None, description="from when it holds in the world (REC-14)")
    valid_until: datetime | None = Field(default=None, description="until when it holds in the world")
    captured_at: datetime
    pack: str
    ontology_version: str
    vouched: str | None = Field(
        default=None,
        description="what its author's credential could vouch for (ISO-8): `user` for the words of the end user, "
        "`tool:name` for a tool's result, `import:system` for what was read from another system; none: it is the "
        "author's own word",
    )
    content: Content | None = None


def holder_of(subject: str | None, user_id: str | None) -> str:
    """The name of the data key: a CEID, `@user`, or `*` for the tenant. The forms cannot collide."""
    if subject is not None:
        return subject
    return f"@{user_id}" if user_id is not None else TENANT_HOLDER


def _limit(field: str, size: int, limit: int) -> None:
    if size > limit:
        raise TooLarge(f"is {size} bytes long, at most {limit} are taken", field=field)


CaptureState = Literal["waiting", "processed", "refused", "parked", "erased", "archived"]
RerunReason = Literal["consent_changed", "extractor_changed", "pack_changed", "requested"]
# Why a capture was consolidated again: somebody's reason, or a language model answered late.
ConsolidationReason = RerunReason | Literal["late_answer"]


class _State(Artifact):
    capture_id: str
    seq: int
    state: CaptureState
    kind: CaptureKind
    source: Source | None = None
    author: str | None = None
    classification: str | None = None


class CaptureEntry(Concerned, _State):
    """A capture in a list, without its content.

    Of one that went to an archive only what the archive's index keeps is told.
    """

    intent_id: str | None = None
    workflow_id: str | None = None
    observed_at: datetime | None = None
    captured_at: datetime
    pack: str | None = None
    archive: str | None = Field(default=None, description="the archive it was moved to")
    consolidations: int = Field(default=0, description="how often it was consolidated")
    proposed: int = Field(default=0, description="how many facts were proposed from it")
    refused: int = Field(default=0, description="how many facts the gates refused, over all consolidations")


class RefusalCount(Artifact):
    """How often a gate refused for one reason."""

    gate: GateName
    reason: str
    count: int
    latest: int = Field(description="those whose capture was not consolidated again since")


class RefusalEntry(Artifact):
    """A fact that a gate refused: where it came from, which gate and why; no content is kept (CAN-5)."""

    refusal_id: str = Field(description="the cursor for the next page of a list")
    capture_id: str
    consolidation: int = Field(description="the number of the capture's consolidation")
    extractor: str
    ordinal: int = Field(description="its place among the facts of that consolidation")
    gate: GateName
    reason: str
    at: datetime
    rejection: str | None = Field(default=None, description="the rejected proposal that it repeats (REV-6)")
    latest: bool = Field(description="its capture was not consolidated again later")


class ConsolidationEntry(Artifact):
    """One consolidation of a capture; from the second on with who asked for it, and why."""

    number: int
    at: datetime
    by: str | None = None
    ordered_at: datetime | None = None
    reason: ConsolidationReason | None = None


class CaptureHistory(Artifact):
    """One capture with its content and everything derived from it."""

    capture_id: str
    state: CaptureState
    capture: Capture | None = Field(
        default=None, description="none if its archive was dropped, and for a reviewer if it is archived"
    )
    archive: str | None = Field(default=None, description="the archive it was moved to")
    consolidations: tuple[ConsolidationEntry, ...] = ()
    proposals: tuple[str, ...] = Field(default=(), description="the proposals made from it")
    refusals: tuple[RefusalEntry, ...] = Field(default=(), description="the latest first, at most 100")


class Rerun(Artifact):
    """A capture that is queued to be consolidated again."""

    capture_id: str
    number: int = Field(description="which consolidation of the capture it will be")
    reason: RerunReason
    by: str
    ordered_at: datetime
