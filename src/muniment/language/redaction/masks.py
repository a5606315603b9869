"""Masks that replace findings, and the search for masks that a text already holds."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muniment.language.redaction.normalised import Span, normalise

# Fewer stars are also how people write emphasis.
_FEWEST_STARS = 4
_STARS = re.compile(r"\*{4,}+")


@dataclass(frozen=True)
class Mask:
    """How a finding is masked: by a fixed text, or by stars and its last letters and digits."""

    text: str | None
    keep_last: int | None

    def apply(self, found: str) -> str:
        """Return the replacement of a finding."""
        if self.keep_last is None:
            return self.text if self.text is not None else "*" * _FEWEST_STARS
        kept = [char for char in normalise(found).text if char.isalnum()]
        if len(kept) <= self.keep_last:
            return "*" * max(_FEWEST_STARS, len(kept))
        hidden = len(kept) - self.keep_last
        return "*" * max(_FEWEST_STARS, hidden) + "".join(kept[-self.keep_last :])


class TakenSpans:
    """The characters of a text that are masked or about to be."""

    def __init__(self, length: int, spans: Iterable[Span]) -> None:
        self._marks = bytearray(length)
        for start, end in spans:
            self.take(start, end)

    def take(self, start: int, end: int) -> None:
        """Mark a span as taken."""
        self._marks[start:end] = b"\1" * (end - start)

    def free(self, start: int, end: int) -> list[Span]:
        """Return the pieces of a span that are not taken."""
        pieces: list[Span] = []
        while start < end:
            stop = self._marks.find(1, start, end)
            if stop != start:
                pieces.append((start, end if stop < 0 else stop))
            if stop < 0:
                break
            start = self._marks.find(0, stop, end)
            if start < 0:
                break
        return pieces


class MaskFinder:
    """Finds the masks that a text holds, whoever put them there; nothing is searched within them.

    INVARIANT: what a mask puts into a text is found here again as long as its surroundings stay, so every round of
    redaction leaves fewer characters unmasked, and the rounds come to an end.
    """

    def __init__(self, masks: Iterable[Mask]) -> None:
        masks = tuple(masks)
        self._masks = sorted({mask.text for mask in masks if mask.keep_last is None and mask.text is not None})
        kept = sorted({mask.keep_last for mask in masks if mask.keep_last is not None}, reverse=True)
        # The last digits stay readable, unless a number goes on behind them: four stars before a card number that is
        # written out must not hide its beginning from the detectors.
        self._kept = [
            re.compile(rf"(?<!\*)\*{{4,}}+[^\W_]{{{count}}}(?![^\W_])(?![ ._-]{{1,3}}[0-9])") for count in kept
        ]

    def find(self, text: str) -> list[Span]:
        """Return the spans of masks in order, merged where they touch."""
        found: list[Span] = []
        for mask in self._masks:
            place = text.find(mask)
            while place >= 0:
                found.append((place, place + len(mask)))
                # A mask may overlap with itself.
                place = text.find(mask, place + 1)
        if "****" in text:
            found.extend(run.span() for run in _STARS.finditer(text))
            for kept in self._kept:
                found.extend(run.span() for run in kept.finditer(text))
        return merged(found)


def merged(spans: Sequence[Span]) -> list[Span]:
    """Return the spans in order, those that touch or overlap joined."""
    if len(spans) < 2:
        return list(spans)
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def replaced(text: str, replacements: Iterable[tuple[int, int, str]]) -> str:
    """Return a text with spans replaced; they are given in order and do not overlap."""
    pieces: list[str] = []
    done = 0
    for start, end, replacement in replacements:
        pieces += (text[done:start], replacement)
        done = end
    return "".join([*pieces, text[done:]])
