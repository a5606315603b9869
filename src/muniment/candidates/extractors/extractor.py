"""The protocol of an extractor, which reads one capture and returns the facts it finds there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from muniment.errors import InvalidInput
from muniment.model.capture import Capture, Content, TypedFact
from muniment.model.fields import build
from muniment.model.ids import is_ceid

MOST_FACTS = 256


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


class Answers(Protocol):
    """The stored answers of a language model for one capture, and the calls left for today."""

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
    """Return the entity that a message is about: its subject, else its user; None if neither is known."""
    if capture.subject is not None:
        return capture.subject
    user = f"user:{capture.user_id}"
    return user if capture.user_id and is_ceid(user) else None


def refs_of(*texts: str | None) -> tuple[str, ...]:
    """Return the valid evidence references among the texts, each once, in order."""
    present = (text for text in texts if text is not None)
    return tuple(
        dict.fromkeys(one for one in present if 0 < len(one) <= 256 and one.isprintable() and one == one.strip())
    )
