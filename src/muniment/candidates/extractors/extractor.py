"""What an extractor is: it reads one capture and gives the facts it finds there."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from muniment.errors import InvalidInput
from muniment.model.capture import Capture, TypedFact
from muniment.model.fields import build
from muniment.model.ids import CEID_PATTERN

MOST_FACTS = 256


@dataclass(frozen=True)
class Extracted:
    """One fact that an extractor read in a capture."""

    fact: TypedFact
    # Beside those of the capture.
    evidence_refs: tuple[str, ...] = ()
    # Least label; None is the capture's own.
    classification: str | None = None
    # The end user corrected or updated something: a reason for review, never class `correction`.
    user_correction: bool = False
    # The predicate is made of what was said: it is content, and is stored as a keyed hash.
    own_words: bool = False


class Answers(Protocol):
    """The stored answers of a language model for one capture, and what may be asked today."""

    async def get(self, extractor: str) -> bytes | None:
        """The stored answer; None where there is none."""
        ...

    async def put(self, extractor: str, answer: bytes) -> None:
        """Store an answer, to be had again by `get`."""
        ...

    async def spend(self, extractor: str, most: int) -> bool:
        """Count one more call of today in this tenant; False, and none is counted, when there were `most` already."""
        ...


class Extractor(Protocol):
    """Reads one capture; the same capture and the same name give the same facts in the same order."""

    @property
    def name(self) -> str:
        """`name@version`, which every candidate records."""
        ...

    def reads(self, capture: Capture) -> bool:
        """Whether it looks at such a capture at all."""
        ...

    async def extract(self, capture: Capture, answers: Answers) -> Sequence[Extracted]:
        """The facts, at most 256; raises `ExtractorFailed` where it cannot tell."""
        ...


def fact_of(**fields: Any) -> TypedFact | None:
    """The fact, or None where it is none: an entity that is no CEID, a value too large, a text that cannot be kept."""
    try:
        return build(TypedFact, fields)
    except InvalidInput:
        return None


def entity_of(capture: Capture) -> str | None:
    """Return the entity that a message is about: its subject, else its user; None where neither is known."""
    if capture.subject is not None:
        return capture.subject
    user = f"user:{capture.user_id}"
    return user if capture.user_id and re.fullmatch(CEID_PATTERN, user) else None


def as_ref(text: str) -> str | None:
    """The text as an evidence ref; None where it cannot be one."""
    return text if 0 < len(text) <= 256 and text.isprintable() and text == text.strip() else None


def refs_of(*texts: str | None) -> tuple[str, ...]:
    """The evidence refs among these, each once, in their order."""
    found = [ref for text in texts if text is not None and (ref := as_ref(text)) is not None]
    return tuple(dict.fromkeys(found))
