"""What is imported from another system: an item as it is brought in, and what becomes of it (IMP-1, IMP-2)."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from muniment.model.candidate import GateName
from muniment.model.capture import CaptureDetails
from muniment.model.fields import (
    Artifact,
    CaptureKind,
    Ceid,
    Instant,
    Json,
    Label,
    Predicate,
    Probability,
    Text,
    WriteClass,
    clean_text,
    field_error,
)
from muniment.model.proposal import HumanReason

# The other system, by its name: a word that the pack's `imports.systems` may name.
SystemName = Annotated[str, StringConstraints(strict=True, pattern=r"^[a-z][a-z0-9_.-]{0,63}$")]
# Sealed with the capture, never kept in the open: an id or a name of another system may hold anything.
_Claimed = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=1024)]

# promoted: by policy, at once. waiting: for a person. repeated: it was imported before. erased: it was imported before
# and erased since. nothing: no fact was found in it. unread: its capture is not consolidated yet.
ItemFate = Literal["promoted", "waiting", "refused", "duplicate", "repeated", "erased", "nothing", "unread", "invalid"]


class ImportItem(CaptureDetails):
    """One thing that another system knows, as it is imported.

    A plain `text` becomes a statement; with `write_class` it is a typed fact; with another `kind` than `statement` it
    is read like any capture of that kind. Author and times of the other system are claims.
    """

    id: _Claimed = Field(description="its id in the other system: an item is brought in once")
    kind: CaptureKind = "statement"
    classification: Label | None = Field(None, description="by default the pack's label for imports")
    text: Text | None = None
    payload: Json = Field(None, description="for kinds other than `statement`, such as a tool's result")
    write_class: WriteClass | None = Field(None, description="of a typed fact; by default a text is a statement")
    entity: Ceid | None = None
    predicate: Predicate | None = None
    value: Json = None
    confidence: Probability | None = Field(None, description="by default the pack's for imports")
    claimed_author: _Claimed | None = Field(None, description="who wrote it, as the other system says")
    claimed_at: Instant | None = Field(None, description="when it was written there")
    metadata: Json = Field(None, description="what else the other system keeps with it; sealed with its capture")

    @model_validator(mode="after")
    def _has_content(self) -> Self:
        for name in ("id", "claimed_author"):
            said: str | None = getattr(self, name)
            if said is not None:
                try:
                    clean_text(said)
                except ValueError as error:
                    raise field_error(name, str(error)) from None
        if self.write_class == "correction":
            raise field_error("write_class", "an import corrects nothing: correct the memory that it became")
        if self.idempotency_key is not None:
            raise field_error("idempotency_key", "must be left out: an item is known by its id")
        if self.run_id is not None:
            raise field_error("run_id", "must be left out: the import is the run")
        if self.origin is not None:
            raise field_error("origin", "must be left out: the origin is the system that it is imported from")
        if self.kind == "statement" and self.payload is not None:
            raise field_error("payload", "goes with another kind; give what belongs to a statement as metadata")
        return self

    @property
    def is_fact(self) -> bool:
        """Whether it states one fact itself, and is not read by extractors."""
        return self.write_class is not None or self.kind == "statement"


class _Item(Artifact):
    number: int = Field(description="its place in the list, from 0")
    id: str | None = Field(default=None, description="its id in the other system")


class ItemFact(Artifact):
    """A fact of an item, and what becomes of it."""

    fate: ItemFate
    gate: GateName | None = Field(default=None, description="the gate that refuses it")
    reason: str | None = Field(default=None, description="why: the code of the gate's reason")
    reasons: tuple[HumanReason, ...] = Field(default=(), description="why a person has to decide")
    tier: str | None = None
    classification: str | None = Field(default=None, description="the label that the gates give it")
    repeats: str | None = Field(default=None, description="the memory, or the number of the item, that says the same")
    proposal_id: str | None = None
    memory_id: str | None = None


class ItemOutcome(_Item):
    """What becomes, or became, of one item; of several facts in one the first that is not refused counts."""

    fate: ItemFate
    facts: tuple[ItemFact, ...] = ()
    capture_id: str | None = None
    error: str | None = Field(default=None, description="the code of the error of an item that is not valid")
    field: str | None = None
    message: str | None = None


class ImportPreview(Artifact):
    """What an import would do, item by item; nothing was written."""

    system: str
    pack: str
    items: tuple[ItemOutcome, ...] = ()
    counts: dict[ItemFate, int] = Field(default_factory=dict[ItemFate, int])


class ImportReceipt(Artifact):
    """What one call of an import brought in: a capture for each item that is new."""

    import_id: str = Field(description="the run of its captures, by which they are found")
    system: str
    imported: int = Field(description="items that were captured now")
    repeated: int = Field(description="items that were imported before, or erased since")
    items: tuple[ItemOutcome, ...] = ()


class ImportVerdict(Artifact):
    """How one proposal of an import was decided, by a named person's verdict on many at once."""

    proposal_id: str
    status: str | None = None
    memory_id: str | None = None
    error: str | None = None
    message: str | None = None
    left_out: tuple[str, ...] = Field(default=(), description="why it is not ordinary, and was left out (REV-13)")


class ImportVerdicts(Artifact):
    """A page of verdicts on an import; `after` goes on with the next page, none at the end."""

    import_id: str
    verdicts: tuple[ImportVerdict, ...] = ()
    after: str | None = None


class ImportState(Artifact):
    """How far an import has come: its captures, and what became of their facts."""

    import_id: str
    system: str | None = None
    by: str | None = None
    first_at: datetime | None = None
    last_at: datetime | None = None
    captures: int = 0
    unread: int = Field(default=0, description="captures that are not consolidated yet")
    counts: dict[str, int] = Field(
        default_factory=dict[str, int],
        description="facts by what became of them: the status of their proposal, or refused",
    )


# The fate of an item with several facts is the last of these that one of them has.
_RANKED: tuple[ItemFate, ...] = ("refused", "duplicate", "waiting", "promoted")


def outcome_of(number: int, item_id: str | None, facts: tuple[ItemFact, ...], **more: Any) -> ItemOutcome:
    """The outcome of an item with these facts."""
    found = {one.fate for one in facts}
    fate: ItemFate = "nothing"
    for one in _RANKED:
        if one in found:
            fate = one
    return ItemOutcome(number=number, id=item_id, fate=fate, facts=facts, **more)
