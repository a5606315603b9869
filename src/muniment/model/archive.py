"""Archives: captures moved from the database to files, and what a check of the files found."""

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
    revision: int = Field(description="how often the file was written; an erasure rewrites it")
    bytes: int
    digest: str = Field(description="SHA-256 of the file")
    written_at: datetime
    dropped_at: datetime | None = Field(default=None, description="when its retention ended and the file was deleted")


class ArchiveProblem(Artifact):
    """One problem with an archive's file, or a file that belongs to no archive."""

    kind: ArchiveFault
    archive_id: str
    revision: int
    capture_id: str | None = None
    why: str


class ArchiveCheck(Artifact):
    """The result of checking all archive files of a tenant; `ok` when each is intact and there are no others."""

    ok: bool
    archives: int
    captures: int
    dropped: int
    problems: tuple[ArchiveProblem, ...] = ()
    more: bool = Field(default=False, description="whether there are more problems than listed")
