"""Archives: captures that left the database for files, and what a look at the files found."""

from datetime import datetime
from typing import Literal

from pydantic import Field

from muniment.model.fields import Artifact, CaptureKind

ArchiveFault = Literal["missing", "changed", "unrecorded", "not_in_index", "not_in_file", "left_over", "unknown"]


class Archive(Artifact):
    """Captures of one kind and ontology version that are in a file."""

    archive_id: str
    tenant_id: str
    seq: int
    archived_at: datetime
    kind: CaptureKind
    ontology_version: str
    captures: int
    last_at: datetime = Field(description="when the last of them was captured")
    revision: int = Field(description="how often the file was written; it is when an erasure reached into it")
    bytes: int
    digest: str = Field(description="SHA-256 of the file")
    written_at: datetime
    dropped_at: datetime | None = Field(default=None, description="when its retention ended and the file went")


class ArchiveProblem(Artifact):
    """One thing that is wrong with an archive's file, or a file that no archive has."""

    kind: ArchiveFault
    archive_id: str
    revision: int
    capture_id: str | None = None
    why: str


class ArchiveCheck(Artifact):
    """What a look at all files of a tenant found; `ok` when each holds what it should, and nothing else is there."""

    ok: bool
    archives: int
    captures: int
    dropped: int
    problems: tuple[ArchiveProblem, ...] = ()
    more: bool = Field(default=False, description="whether there are further problems than the ones listed")
