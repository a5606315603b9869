"""Erasure: the request, the receipt for what was erased, and the search of texts for a name (ERA-5)."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from muniment.model.fields import Artifact, Ceid, Name, clean_text, field_error


class ErasureInput(Artifact):
    """Whom to erase: a subject by its CEID, an end user by id, or both where they are the same person."""

    subject: Ceid | None = None
    user_id: Name | None = None

    @model_validator(mode="after")
    def _someone(self) -> Self:
        if self.subject is None and self.user_id is None:
            raise field_error("subject", "give a subject, a user_id, or both")
        return self


class Erasure(Artifact):
    """What was erased, by whom and when; `purged_at` is set once nothing of it is left in the files of the database."""

    erasure_id: str
    tenant_id: str
    subject: str | None = None
    aliases: tuple[str, ...] = Field(default=(), description="the same subject under its other namespaces")
    user_id: str | None = None
    by: str
    seq: int
    erased_at: datetime
    purged_at: datetime | None = None
    purge_waits: str | None = Field(
        default=None, description="what the last purge attempt waited for, while it is not purged"
    )
    name_search: datetime | None = Field(
        default=None, description="when a search of all texts for a name was completed for it; null if none was"
    )
    memories: int = Field(description="promoted memories that became tombstones")
    rows: dict[str, int] = Field(
        default_factory=dict, description="how many other rows were blanked or removed, by kind"
    )


Place = Literal["memory", "candidate", "capture", "archived", "note", "recall", "consent"]


def _says_something(value: str) -> str:
    clean_text(value)
    if not any(one.isalnum() for one in value):
        raise ValueError("has no letter and no digit")
    return value


SearchedName = Annotated[
    str, StringConstraints(strict=True, min_length=2, max_length=200), AfterValidator(_says_something)
]


class NameSearchInput(Artifact):
    """The name to search for, and for which erasure; `after` continues a search."""

    name: SearchedName
    erasure_id: Name | None = None
    after: Name | None = None
    limit: Annotated[int, Field(strict=True, ge=1, le=200)] = 50


class NameHit(Artifact):
    """A text that contains the name: where it is, and the words around it."""

    place: Place = Field(description="what contains it; archived is a capture in an archive file, recall a query")
    id: str
    field: str = Field(description="the field of it: text, value, payload, fact, evidence_refs, reason, note, query")
    excerpt: str
    capture_id: str | None = None
    memory_id: str | None = Field(default=None, description="the memory to retract, for a hit in a memory")


class NameSearch(Artifact):
    """One page of a search; `after` continues it, none when every text was searched."""

    search_id: str
    page: int
    hits: tuple[NameHit, ...]
    searched: int = Field(description="texts searched so far, over all pages")
    total: int = Field(description="texts there are now")
    unreadable: int = Field(default=0, description="texts of this page that cannot be decrypted")
    finished: bool
    after: str | None = None
    erasure_id: str | None = None
