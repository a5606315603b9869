"""Finds a name in a text, however it is written, and returns the words around it."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any, cast

EXCERPT = 40
_BETWEEN = " -_.,\t\r\n\u00a0"


def folded(text: str) -> str:
    """Return the text without case, width and accents, and with one space between words."""
    return _folded(text)[0].strip()


def _folded(text: str) -> tuple[str, list[int]]:
    """Return the same, with the position in the text that each character comes from."""
    made: list[str] = []
    positions: list[int] = []
    for position, one in enumerate(text):
        if one in _BETWEEN or one.isspace():
            plain = " " if made and made[-1] != " " else ""
        elif one.isascii():
            plain = one.lower()
        else:
            apart = unicodedata.normalize("NFKD", one.casefold())
            plain = "".join(c for c in apart if not unicodedata.combining(c) and unicodedata.category(c) != "Cf")
        made.extend(plain)
        positions.extend([position] * len(plain))
    return "".join(made), positions


def excerpt(name: str, text: str) -> str | None:
    """Return the words around a folded name that a text holds as whole words; None where it does not."""
    whole, positions = _folded(text)
    if name not in whole:
        return None
    found = re.search(rf"(?<!\w){re.escape(name)}(?!\w)", whole)
    if found is None:
        return None
    start, end = max(0, positions[found.start()] - EXCERPT), positions[found.end() - 1] + 1 + EXCERPT
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}"


def fields(content: Any, only: str) -> Iterator[tuple[str, str]]:
    """Return every text of opened content with its field: the top-level key of an object, else `only`."""
    if isinstance(content, dict):
        for name, value in cast("dict[str, Any]", content).items():
            yield from ((name, text) for text in strings(value, numbers=True))
    else:
        yield from ((only, text) for text in strings(content, numbers=True))


def strings(value: Any, *, names: bool = True, numbers: bool = False) -> Iterator[str]:
    """Yield every text in a JSON value, including the `names` of its parts; with `numbers` those too."""
    match value:
        case str():
            yield value
        case bool() | None:
            return
        case int() | float():
            if numbers:
                yield str(value)
        case Mapping():
            for key, item in cast("Mapping[str, Any]", value).items():
                if names:
                    yield key
                yield from strings(item, names=names, numbers=numbers)
        case list() | tuple():
            for item in cast("list[Any]", value):
                yield from strings(item, names=names, numbers=numbers)
        case _:
            return
