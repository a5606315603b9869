"""The type of what a message states."""

from dataclasses import dataclass
from typing import Any

SURE, LIKELY, HEDGED = 0.70, 0.60, 0.50
"""Confidence of what is said outright, of what follows from it, and of what the speaker leaves open."""


@dataclass(frozen=True)
class Statement:
    """Something the speaker states of themselves; the words are those of its sentence.

    `update` says that it replaces something; without a `predicate` it is a plain statement. `position` and `end` are
    where it stands in the sentence.
    """

    confidence: float
    update: bool = False
    predicate: str | None = None
    value: Any = None
    position: int = 0
    end: int = 0
