"""Erasure: the request, the receipt, what is held about a person, what one fact takes along, the search for a name."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from muniment.model.consent import Consent
from muniment.model.fields import (
    Artifact,
    CaptureKind,
    Ceid,
    Name,
    OpenName,
    Source,
    WriteClass,
    clean_text,
    field_error,
)
from muniment.model.subject import ErasureRequest


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
    fact_id: str | None = Field(default=None, description="of one fact: the memory or the proposal that was named")
    facts: tuple[str, ...] = Field(default=(), description="of one fact: its candidates")
    captures: tuple[str, ...] = Field(default=(), description="of one fact: the captures that went with it")
    requested_by: str | None = Field(default=None, description="on whose request")
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


class CapturesHeld(Artifact):
    """The captures of a person of one kind, by the kind of who wrote them down; none where they are archived."""

    kind: CaptureKind | None = None
    source: Source | None = None
    captures: int
    kept: int = Field(description="those whose content is still there; an archive is not counted")


class MemoriesHeld(Artifact):
    """The memories of a person by what became of them."""

    live: int = 0
    ended: int = Field(default=0, description="retracted or over, with their text still there")
    removed: int = Field(default=0, description="tombstones, without text")
    naming: int = Field(
        default=0,
        description="of those with text, how many are about others and name the person; `people.memories` has none",
    )
    named_in: tuple[str, ...] = Field(default=(), description="the latest of these, 100 at most")


class PersonHeld(Artifact):
    """How much is held about a person, and what an erasure would remove: ids, numbers, and what they are called."""

    subject: str | None = None
    user_id: str | None = None
    display_name: str | None = Field(default=None, description="what people call them; sealed, and erased with them")
    aliases: tuple[str, ...] = Field(default=(), description="the same subject under its other namespaces")
    memories: MemoriesHeld = MemoriesHeld()
    captures: tuple[CapturesHeld, ...] = ()
    waiting: int = Field(default=0, description="facts that wait for a decision")
    consents: int = Field(default=0, description="consents that nothing revoked or replaced")
    erased_at: datetime | None = Field(default=None, description="the last erasure that reached them")
    would_erase: int = Field(default=0, description="the memories that an erasure now would make tombstones")
    would_remove: dict[str, int] = Field(
        default_factory=dict, description="how many other rows it would blank or remove, by kind, as on its receipt"
    )


class PersonRead(Artifact):
    """A recall that was for a person, or that returned something about them to somebody else."""

    recall_id: str
    at: datetime
    agent_id: str
    run_id: str
    own_run: bool = Field(description="it was a run for the person")
    memory_ids: tuple[str, ...] = Field(default=(), description="what it returned about them")


class PersonView(Artifact):
    """What a privacy officer looks at first: how much is held, who read it last, consents, requests to be erased."""

    held: PersonHeld
    reads: tuple[PersonRead, ...] = ()
    consents: tuple[Consent, ...] = ()
    requests: tuple[ErasureRequest, ...] = ()


# What becomes of a capture on which other facts rest too.
SharedCaptures = Literal["keep", "erase"]


class FactErasureInput(Artifact):
    """Which fact to erase, and what becomes of a capture on which other facts rest too."""

    fact_id: Name = Field(description="its memory (pm_...) or its proposal (mwp_...)")
    capture: SharedCaptures | None = Field(
        None,
        description="`keep`: the captures that it shares stay; `erase`: they go, with all that rests on them. Required "
        "where it shares one",
    )
    requested_by: OpenName | None = Field(None, description="on whose request, if not the officer's own")


class FactAtStake(Artifact):
    """A fact that an erasure would take: its text as a reviewer sees it, and what was made of it."""

    candidate_id: str
    capture_id: str
    proposal_id: str | None = None
    memory_id: str | None = None
    write_class: WriteClass
    text: str = Field(description="empty if it cannot be decrypted")


class SharedCapture(Artifact):
    """A capture on which other facts rest too; those would go with it."""

    capture_id: str
    unread: bool = Field(description="it is not read yet: what else it holds is not known")
    facts: tuple[FactAtStake, ...]


class FactErasure(Artifact):
    """What erasing one fact takes: the fact under all its proposals, and the captures on which nothing else rests.

    `shared` are the captures for which whoever erases decides.
    """

    fact_id: str
    facts: tuple[FactAtStake, ...]
    captures: tuple[str, ...]
    shared: tuple[SharedCapture, ...] = ()


Place = Literal["name", "memory", "candidate", "capture", "archived", "note", "recall", "consent"]


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

    place: Place = Field(
        description="what contains it; name is a display name, archived a capture in an archive file, recall a query"
    )
    id: str
    field: str = Field(
        description="the field of it: display_name, text, value, payload, fact, evidence_refs, reason, note, query"
    )
    excerpt: str
    capture_id: str | None = None
    memory_id: str | None = Field(default=None, description="the memory to retract, for a hit in a memory")
    proposal_id: str | None = Field(
        default=None,
        description="the fact to erase, for a hit in a candidate, in a note, or in a capture on which one rests",
    )
    subject: str | None = Field(default=None, description="whose name it is, for a hit in a display name")


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
