"""Items of a list that stand side by side and read as one: `["ada@", "example.com"]`, `[4111, 1111, 1111, 1111]`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from muniment.language.redaction.sight import Span

_NUMBER = re.compile(r"[ (+]{0,2}[0-9]{1,15}[ ).,/-]{0,2}")
# Fewer digits are rows of any numbers; more are no number of one thing.
_FEWEST, _MOST = 12, 40
_ADDRESS = re.compile(r"@[\w-][\w.-]*\.[^\W\d_]")
_LONGEST_PART = 256


@dataclass(frozen=True)
class Row:
    """Neighbours as one text, and the place of each in it: `(item, start, end)`."""

    text: str
    places: list[tuple[int, int, int]]
    whole: bool

    def parts(self, start: int, end: int) -> list[tuple[int, Span]]:
        """What of which items a finding takes; nothing where it says nothing of them together."""
        if self.whole and any(map(str.isalnum, self.text[:start] + self.text[end:])):
            return []
        parts = [
            (item, (max(start, low) - low, min(end, high) - low))
            for item, low, high in self.places
            if low < end and start < high
        ]
        return parts if len(parts) > 1 else []


def rows(items: Sequence[str | None]) -> Iterator[Row]:
    """The rows of items that may be one thing; None is an item that has no text."""
    yield from _rows_of_digits(items)
    yield from _rows_around_a_sign(items)


def _rows_of_digits(items: Sequence[str | None]) -> Iterator[Row]:
    """Numbers one after the other: taken for one only where all of the row is."""
    row: list[int] = []
    for place, item in enumerate([*items, None]):
        if item is not None and len(item) < _LONGEST_PART and _NUMBER.fullmatch(item):
            row.append(place)
            continue
        if 1 < len(row) <= _MOST:
            made = _row(items, row, " ", whole=True)
            if _FEWEST <= sum(map(str.isdigit, made.text)) <= _MOST:
                yield made
        row = []


def _rows_around_a_sign(items: Sequence[str | None]) -> Iterator[Row]:
    """Halves of an address: one ends in the sign or a full stop, or the next begins with it."""
    for place, item in enumerate(items):
        if item is None or "@" not in item:
            continue
        first = place - 1 if item.startswith("@") and place and items[place - 1] else place
        last = place
        while (
            last + 1 < len(items)
            and last - place < 4
            and (left := items[last])
            and (right := items[last + 1])
            and (left[-1] in "@." or right[0] in "@.")
        ):
            last += 1
        if first < last:
            row = _row(items, range(first, last + 1), "", whole=False)
            if _ADDRESS.search(row.text):
                yield row


def _row(items: Sequence[str | None], row: Sequence[int], between: str, *, whole: bool) -> Row:
    places: list[tuple[int, int, int]] = []
    pieces: list[str] = []
    at = 0
    for place in row:
        piece = items[place] or ""
        places.append((place, at, at + len(piece)))
        pieces.append(piece)
        at += len(piece) + len(between)
    return Row(between.join(pieces), places, whole)
