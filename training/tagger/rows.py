"""Rows of training data: a text with its spans, and what keeps spans in place while texts are joined or changed."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from training.tagger.labels import CATEGORIES, LABELS


@dataclass(frozen=True)
class Mark:
    """A span of a text with its label or category; `about` says of whom a special category is told."""

    start: int
    end: int
    label: str
    about: str = ""

    def moved(self, by: int) -> "Mark":
        """Return the same mark further on in the text."""
        return Mark(self.start + by, self.end + by, self.label, self.about)


@dataclass(frozen=True)
class Marked:
    """A text with its marks: labels of spans and special categories, in order."""

    text: str
    spans: tuple[Mark, ...] = ()
    special: tuple[Mark, ...] = ()

    def mapped(self, change: Callable[[str], str]) -> "Marked":
        """Return the text with every character changed by itself; its length stays."""
        changed = "".join(new if len(new := change(char)) == 1 else char for char in self.text)
        return Marked(changed, self.spans, self.special)


def joined(parts: Iterable[Marked], between: str) -> Marked:
    """Return the parts one after the other as one text."""
    text, spans, special = "", list[Mark](), list[Mark]()
    for part in parts:
        if text:
            text += between
        spans += [mark.moved(len(text)) for mark in part.spans]
        special += [mark.moved(len(text)) for mark in part.special]
        text += part.text
    return Marked(text, tuple(spans), tuple(special))


@dataclass(frozen=True)
class Row:
    """One row: the text, its marks, the labels and categories that are complete in it, and the set it comes from."""

    marked: Marked
    set: str
    known: tuple[str, ...] = field(default=LABELS + CATEGORIES)

    def record(self) -> dict[str, Any]:
        """Return the row as it is written to the file."""
        return {
            "text": self.marked.text,
            "spans": [[mark.start, mark.end, mark.label] for mark in self.marked.spans],
            "special": [[mark.start, mark.end, mark.label] for mark in self.marked.special],
            "about": [mark.about for mark in self.marked.special],
            "known": list(self.known),
            "set": self.set,
        }
