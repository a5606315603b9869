"""Normalises a text for the detectors: undoes cheap disguises and keeps the original position of every character."""

import unicodedata
from dataclasses import dataclass
from datetime import date
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]

# Repositions each character of a mask; no detector matches it, and no context reaches across it.
FILLER = "\ufffc"

_MEMO_LIMIT = 8192
_DASHES = frozenset("\u2212\u02d7\u2043")
_BLANKS = frozenset("\u2800\u3164\uffa0\u115f\u1160")
_INVISIBLE = frozenset({"Cf", "Mn", "Me"})


class _Folding(dict[int, str]):
    """Maps a character to itself, a plainer one, or nothing."""

    def __missing__(self, code: int) -> str:
        plain = _plainer(chr(code))
        if len(self) < _MEMO_LIMIT:
            self[code] = plain
        return plain


def _plainer(char: str) -> str:
    if char.isascii() or char == FILLER:
        return char
    category = unicodedata.category(char)
    if category in _INVISIBLE:
        return ""
    if char in _BLANKS or category == "Zs":
        return " "
    if category in ("Zl", "Zp"):
        return "\n"
    if category == "Pd" or char in _DASHES:
        return "-"
    if (digit := unicodedata.decimal(char, None)) is not None:
        return str(digit)
    plain = unicodedata.normalize("NFKC", char)
    return plain if len(plain) == 1 and plain.isascii() else char


_FOLDING = _Folding()


@dataclass(frozen=True, slots=True)
class NormalisedText:
    """A normalised text; `positions` are the original positions of its characters, None where they are the same."""

    text: str
    positions: list[int] | None

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the original text."""
        if self.positions is None:
            return start, end
        return self.positions[start], self.positions[end - 1] + 1


def normalise(text: str) -> NormalisedText:
    """Replace full-width digits, unusual spaces and dashes by plain ones and drop invisible characters."""
    if text.isascii():
        return NormalisedText(text, None)
    plain = text.translate(_FOLDING)
    if len(plain) == len(text):
        return NormalisedText(plain, None)
    return NormalisedText(plain, [position for position, char in enumerate(text) if _FOLDING[ord(char)]])


def before(text: str, start: int, size: int) -> str:
    """Return at most so many characters before a position, none from beyond a mask."""
    return text[max(0, start - size) : start].rpartition(FILLER)[2]


def after(text: str, end: int, size: int) -> str:
    """Return at most so many characters after a position, none from beyond a mask."""
    return text[end : end + size].partition(FILLER)[0]


def lowered(text: str) -> str:
    """Return the text in lower case, every character at its position."""
    small = text.lower()
    return small if len(small) == len(text) else "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def is_date(year: int | str, month: int | str, day: int | str) -> bool:
    """Say whether there is such a day."""
    try:
        date(int(year), int(month), int(day))
    except ValueError:
        return False
    return True


def is_letter_before(text: str, start: int) -> bool:
    """Say whether a letter stands right before a position, so that no word begins there."""
    return start > 0 and text[start - 1].isalpha()
