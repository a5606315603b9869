"""What stands in place of a finding, and which parts of a text are masks already."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from muniment.language.redaction.sight import Span, sight_of

# Fewer stars are also how people write emphasis.
_FEWEST_STARS = 4
_STARS = re.compile(r"\*{4,}+")


@dataclass(frozen=True)
class Cover:
    """A fixed mask, or stars and the last few letters and digits."""

    mask: str | None
    keep_last: int | None

    def over(self, found: str) -> str:
        """What stands in place of the finding."""
        if self.keep_last is None:
            return self.mask if self.mask is not None else "*" * _FEWEST_STARS
        kept = [char for char in sight_of(found).text if char.isalnum()]
        if len(kept) <= self.keep_last:
            return "*" * max(_FEWEST_STARS, len(kept))
        hidden = len(kept) - self.keep_last
        return "*" * max(_FEWEST_STARS, hidden) + "".join(kept[-self.keep_last :])


class Covered:
    """Which characters of a text are masked or about to be."""

    def __init__(self, length: int, spans: Iterable[Span]) -> None:
        self._marks = bytearray(length)
        for start, end in spans:
            self.take(start, end)

    def take(self, start: int, end: int) -> None:
        """Mark these."""
        self._marks[start:end] = b"\1" * (end - start)

    def open(self, start: int, end: int) -> list[Span]:
        """The pieces of a span that are not marked yet."""
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


class Barriers:
    """Finds the masks that a text holds, whoever put them there: they are opaque, and nothing is sought in them.

    INVARIANT: what a cover puts into a text is found here again as long as its surroundings stay, so each finding
    leaves fewer characters open than before, and repeated redaction comes to an end.
    """

    def __init__(self, covers: Iterable[Cover]) -> None:
        covers = tuple(covers)
        self._masks = sorted({cover.mask for cover in covers if cover.keep_last is None and cover.mask is not None})
        kept = sorted({cover.keep_last for cover in covers if cover.keep_last is not None}, reverse=True)
        # The last digits stay readable, unless a number goes on behind them: four stars before a card number that is
        # written out must not hide its beginning from the detectors.
        self._kept = [
            re.compile(rf"(?<!\*)\*{{4,}}+[^\W_]{{{count}}}(?![^\W_])(?![ ._-]{{1,3}}[0-9])") for count in kept
        ]

    def in_text(self, text: str) -> list[Span]:
        """Where masks stand, in order, merged where they touch."""
        found: list[Span] = []
        for mask in self._masks:
            place = text.find(mask)
            while place >= 0:
                found.append((place, place + len(mask)))
                # Masks may overlap themselves; all of each is opaque.
                place = text.find(mask, place + 1)
        if "****" in text:
            found.extend(run.span() for run in _STARS.finditer(text))
            for kept in self._kept:
                found.extend(run.span() for run in kept.finditer(text))
        return merged(found)


def merged(spans: Sequence[Span]) -> list[Span]:
    """The spans in order, those that touch or overlap made one."""
    if len(spans) < 2:
        return list(spans)
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined
