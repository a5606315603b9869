"""Shows paths and values of a pack in messages to the person who wrote it."""

import json
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias

KeyPath: TypeAlias = tuple[str | int, ...]

MOST_SHOWN = 64
_LONGEST = 40


def shorten(text: str) -> str:
    """The text on one line, cut where it is long."""
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return cut if cut.isprintable() else json.dumps(cut)[1:-1]


def dotted(path: KeyPath) -> str:
    """The path as a person reads it: `memory_layer.classes.preference.sla`."""
    return ".".join(shorten(str(part)) for part in path)


def describe(value: Any) -> str:
    """Describe a value: `the text "yes"`, `the number 1.0`, `a list`."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"
        case str():
            return f'the text "{shorten(value)}"'
        case list() | tuple():
            return "a list"
        case _:
            return "a mapping"


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """` (did you mean x?)` if one of the known words is similar, else nothing."""
    close = get_close_matches(word, known, n=1) if len(known) <= MOST_SHOWN else []
    return f" (did you mean {close[0]}?)" if close else ""


def one_of(known: Sequence[str]) -> str:
    """The known words, at most `MOST_SHOWN`."""
    return ", ".join(known[:MOST_SHOWN]) + (", ..." if len(known) > MOST_SHOWN else "")
