"""Searching decrypted texts for a name, for what an erasure by ids cannot find (ERA-5)."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from muniment.model.fields import Artifact, Name, clean_text

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
