"""Captures as people look through them: how each stands, what came of it, and asking for another consolidation."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from muniment.model.candidate import GateName
from muniment.model.capture import Capture, Concerned
from muniment.model.fields import Artifact, CaptureKind, Source

CaptureState = Literal["waiting", "processed", "refused", "parked", "erased", "archived"]
RerunReason = Literal["consent_changed", "extractor_changed", "pack_changed", "requested"]


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
    reason: RerunReason | None = None


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
