"""The protocol of an extractor, which reads one capture and returns the facts it finds there."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Protocol

from muniment.errors import InvalidInput
from muniment.language.readers import Readers
from muniment.model.capture import Capture, Content, TypedFact
from muniment.model.fields import build
from muniment.model.ids import is_ceid
from muniment.model.proposal import ProposalAction

MOST_FACTS = 256
# The names of extractors that ask a language model begin like this; no other name has a colon.
MODEL_PREFIX = "model:"
# Before the words of a model's server in a failure: the operator reads them, no event keeps them.
SERVER_SAYS = "; its server says: "


@dataclass(frozen=True)
class Said:
    """How a fact was said in a message: by whom, when, and beside which other sentences."""

    speaker: str | None
    said_at: datetime
    # What its relative dates mean.
    dates: dict[str, str] = field(default_factory=dict[str, str])
    # The other sentences of the message.
    context: tuple[str, ...] = ()
    # Whether the speaker leaves it open.
    hedged: bool = False


@dataclass(frozen=True)
class Extracted:
    """One fact that an extractor found in a capture."""

    fact: TypedFact
    # In addition to those of the capture.
    evidence_refs: tuple[str, ...] = ()
    # The least label; None means the capture's own.
    classification: str | None = None
    # The end user corrected or updated something: a reason for review, never the write class `correction`.
    user_correction: bool = False
    # The predicate holds words of the capture: it is content, and is stored as a keyed hash.
    own_words: bool = False
    # The predicate in words, where it was made a hash.
    predicate_name: str | None = None
    # The rules that read it, `name@version`, where an extractor has several.
    read_by: str | None = None
    # How it was said, if it is a sentence of a message (CAN-11).
    said: Said | None = None
    # What is read to judge its worth, and the rules' score; None where it is worth knowing in any case.
    worth: tuple[str, float] | None = None
    # The trained reader's score of its worth is within the margin of the threshold: a person looks at it.
    near_threshold: bool = False
    # What the speaker asks for (CAN-12); None where they ask for nothing.
    asks: ProposalAction | None = None


class Answers(Protocol):
    """What an extractor that asks a language model needs: stored answers for one capture, and the calls left today."""

    async def readers(self) -> Readers | None:
        """Return the trained readers of the tenant, by which texts are masked too; None for the rules alone.

        Raises `ReadersUnavailable`.
        """
        ...

    async def get(self, extractor: str) -> bytes | None:
        """Return the stored answer; None if there is none."""
        ...

    async def put(self, extractor: str, answer: bytes) -> None:
        """Store an answer for `get`."""
        ...

    async def spend(self, extractor: str, most: int) -> bool:
        """Count one more call of this tenant today; return False and count none when there were `most` already."""
        ...


class Extractor(Protocol):
    """Reads one capture; the same capture under the same name gives the same facts in the same order."""

    @property
    def name(self) -> str:
        """`name@version`, recorded with every candidate."""
        ...

    def reads(self, capture: Capture) -> bool:
        """Say whether it extracts facts from such a capture."""
        ...

    async def extract(self, capture: Capture, answers: Answers) -> Sequence[Extracted]:
        """Return the facts, at most 256; raises `ExtractorFailed` if it cannot read the capture."""
        ...


def fact_of(**fields: Any) -> TypedFact | None:
    """Build a fact; None if a field is invalid, such as an entity that is no CEID or a value that is too large."""
    try:
        return build(TypedFact, fields)
    except InvalidInput:
        return None


def content_without_fact(capture: Capture) -> Content | None:
    """Return the content of a capture that its author gave no typed fact for; None if there is none."""
    return None if capture.content is None or capture.content.fact is not None else capture.content


def entity_of(capture: Capture) -> str | None:
    """Return the entity that a message is about: its subject, else its user; None if neither is known.

    Extractors that know no pack use it; `name_own_user` gives the user the name that the pack has for users.
    """
    if capture.subject is not None:
        return capture.subject
    user = f"user:{capture.user_id}"
    return user if capture.user_id and is_ceid(user) else None


def name_own_user(read: Extracted, capture: Capture, own: str | None) -> Extracted:
    """Return what was read, with the entity `own` if it is about the capture's user (CAP-12)."""
    if own is None or capture.subject is not None or read.fact.entity != entity_of(capture):
        return read
    return replace(read, fact=read.fact.model_copy(update={"entity": own}))


def refs_of(*texts: str | None) -> tuple[str, ...]:
    """Return the valid evidence references among the texts, each once, in order."""
    present = (text for text in texts if text is not None)
    return tuple(
        dict.fromkeys(one for one in present if 0 < len(one) <= 256 and one.isprintable() and one == one.strip())
    )
