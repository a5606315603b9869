"""A row of the guard's training data, and the windows in which longer texts are read."""

from dataclasses import dataclass
from typing import Literal

# The longest text of a row, in characters: what lies behind it would be cut off unread by the encoder.
WINDOW = 600
Label = Literal[0, 1]


@dataclass(frozen=True)
class Row:
    """A text with its labels; a label that nobody knows is None and takes no part in the training."""

    text: str
    set: str
    attack: Label | None = None
    worth: Label | None = None
    weight: float = 1.0


def windows(text: str) -> list[str]:
    """Return the text in parts of at most `WINDOW` characters, cut between words."""
    parts: list[str] = []
    rest = text.strip()
    while len(rest) > WINDOW:
        end = max(rest.rfind(mark, WINDOW // 2, WINDOW) + 1 for mark in ("\n", ". ", " "))
        end = end or WINDOW
        parts.append(rest[:end].strip())
        rest = rest[end:].strip()
    return [*parts, rest] if rest else parts
