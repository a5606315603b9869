"""Adjacent items of a list that read as one value: `["ada@", "example.com"]`, `[4111, 1111, 1111, 1111]`."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from muniment.language.redaction.normalised import Span

_NUMBER = re.compile(r"[ (+]{0,2}[0-9]{1,15}[ ).,/-]{0,2}")
# With fewer digits it may be any row of numbers, with more it is no single number.
_FEWEST, _MOST = 12, 40
_ADDRESS = re.compile(r"@[\w-][\w.-]*\.[^\W\d_]")
_LONGEST_PART = 256


@dataclass(frozen=True)
class Row:
    """Adjacent items as one text, with the index and the span of each: `(index, start, end)`."""

    text: str
    spans: list[tuple[int, int, int]]
    whole: bool

    def parts(self, start: int, end: int) -> list[tuple[int, Span]]:
        """Return the parts of the items that a finding covers; none where it covers a single item."""
        if self.whole and any(map(str.isalnum, self.text[:start] + self.text[end:])):
            return []
        parts = [
            (item, (max(start, low) - low, min(end, high) - low))
            for item, low, high in self.spans
            if low < end and start < high
        ]
        return parts if len(parts) > 1 else []


def rows(items: Sequence[str | None]) -> Iterator[Row]:
    """Return the rows of items that may be one value; None is an item without text."""
    yield from _rows_of_digits(items)
    yield from _rows_around_an_at(items)


def _rows_of_digits(items: Sequence[str | None]) -> Iterator[Row]:
    """Join numbers one after the other; a finding must cover the whole row."""
    row: list[int] = []
    for index, item in enumerate([*items, None]):
        if item is not None and len(item) < _LONGEST_PART and _NUMBER.fullmatch(item):
            row.append(index)
            continue
        if 1 < len(row) <= _MOST:
            made = _row(items, row, " ", whole=True)
            if _FEWEST <= sum(map(str.isdigit, made.text)) <= _MOST:
                yield made
        row = []


def _rows_around_an_at(items: Sequence[str | None]) -> Iterator[Row]:
    """Join the halves of an e-mail address: one ends with `@` or `.`, or the next begins with it."""
    for index, item in enumerate(items):
        if item is None or "@" not in item:
            continue
        first = index - 1 if item.startswith("@") and index and items[index - 1] else index
        last = index
        while (
            last + 1 < len(items)
            and last - index < 4
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
    spans: list[tuple[int, int, int]] = []
    pieces: list[str] = []
    at = 0
    for index in row:
        piece = items[index] or ""
        spans.append((index, at, at + len(piece)))
        pieces.append(piece)
        at += len(piece) + len(between)
    return Row(between.join(pieces), spans, whole)


def number_text(number: float) -> str:
    """Return the digits of a number; one without a fraction is written as an integer."""
    if isinstance(number, float) and number.is_integer() and abs(number) < 1e19:
        return str(int(number))
    return str(number)


def scalar_text(item: Any) -> str | None:
    """Return the text of a string or number; None for anything else."""
    if isinstance(item, str):
        return item
    return number_text(item) if isinstance(item, int | float) and not isinstance(item, bool) else None
