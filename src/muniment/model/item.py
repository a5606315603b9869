"""Items: what a framework's store keeps under a namespace and a key, as facts (ADP-2, ADP-3)."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StringConstraints

from muniment.model.candidate import GateName
from muniment.model.fields import Artifact, clean_text

# An entity id has at most 128 characters: eight digests of twelve, and the key's.
MOST_PARTS = 8
ITEM_NAMESPACE, ITEM_PREDICATE = "item", "item"
# A part of a name, as the program that uses it spells it; only its digest is kept in the open.
Part = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=512), AfterValidator(clean_text)]
Namespace = Annotated[tuple[Part, ...], Field(max_length=MOST_PARTS, fail_fast=True)]


class ItemName(Artifact):
    """The namespace and the key of an item, as its program spells them."""

    namespace: tuple[str, ...]
    key: str


class Item(ItemName):
    """A promoted item that the run may see."""

    value: Any = Field(description="as it was promoted: masked where the pack masks (RED-1)")
    memory_id: str
    created_at: datetime = Field(description="when this value was put")
    updated_at: datetime = Field(description="when it was promoted")
    valid_until: datetime | None = Field(default=None, description="when its term ends; reading does not extend it")
    classification: str
    confidence: float
    score: dict[str, float] = Field(default_factory=dict)
    pending: int = Field(default=0, description="how many values that the caller put on this key wait for a person")
    conflicts: tuple[Any, ...] = Field(
        default=(), description="the other values on its key while a contradiction is open (CTR-6)"
    )


class Items(Artifact):
    """The items that a search found."""

    recall_id: str | None = None
    items: tuple[Item, ...] = ()
    omitted: int = Field(default=0, description="how many more there are, or were not looked at")


class Namespaces(Artifact):
    """Namespaces that have an item which the run may see."""

    namespaces: tuple[tuple[str, ...], ...] = ()


ItemStatus = Literal["kept", "pending", "refused"]


class ItemWritten(ItemName):
    """What became of a value that was put, or of a request to delete."""

    status: ItemStatus = Field(description="`kept`: it is what `items.get` returns; `pending`: a person decides")
    memory_id: str | None = None
    proposal_id: str | None = None
    gate: GateName | None = Field(default=None, description="the gate that refused it")
    reason: str | None = Field(default=None, description="why it was refused")


class ItemWaiting(Artifact):
    """A value that the caller put, or a request of theirs to delete, that waits for a person; without content."""

    proposal_id: str
    asks: Literal["put", "delete"]
    at: datetime
