"""How places and values of a pack are told to the person who wrote it."""

import json
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias

KeyPath: TypeAlias = tuple[str | int, ...]

MOST_TOLD = 64
_LONGEST = 40


def shown(text: str) -> str:
    """The text on one line, cut where it is long."""
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    return cut if cut.isprintable() else json.dumps(cut)[1:-1]


def dotted(place: KeyPath) -> str:
    """The place as a person reads it: `memory_layer.classes.preference.sla`."""
    return ".".join(shown(str(part)) for part in place)


def described(value: Any) -> str:
    """What a value is: `the text "yes"`, `the number 1.0`, `a list`."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return f"the number {value}"
        case str():
            return f'the text "{shown(value)}"'
        case list() | tuple():
            return "a list"
        case _:
            return "a mapping"


def nearest(word: str, known: Sequence[str]) -> str:
    """` (did you mean x?)` when one of the known words is near, else nothing."""
    close = get_close_matches(word, known, n=1) if len(known) <= MOST_TOLD else []
    return f" (did you mean {close[0]}?)" if close else ""


def one_of(known: Sequence[str]) -> str:
    """The known words, not more than a person reads."""
    return ", ".join(known[:MOST_TOLD]) + (", ..." if len(known) > MOST_TOLD else "")
