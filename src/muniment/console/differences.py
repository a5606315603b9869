"""Word differences: what one text says and another does not, for a person who compares them."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

Kind = Literal["same", "gone", "new"]

# Comparing takes the product of both lengths at worst: longer texts are compared by sentences, or not at all.
LIMIT = 160_000
_WORDS = re.compile(r"\s+|\w+|[^\w\s]")
_SENTENCES = re.compile(r"[^.!?\n]+[.!?\n]*\s*|[.!?\n]+\s*")


@dataclass(frozen=True)
class Part:
    """A stretch of text that both have, or only one of them."""

    kind: Kind
    text: str


def differences(old: str, new: str) -> tuple[Part, ...]:
    """The way from one text to another: joined, all parts but the new are the old text, all but the gone the new one.

    By words; of long texts by sentences, and of those that are too long even for that, as a whole.
    """
    if old == new:
        return (Part("same", old),) if old else ()
    for cut in (_WORDS.findall, _SENTENCES.findall, _whole):
        before, after, begin, end = _trimmed(cut, old, new)
        if len(before) * len(after) <= LIMIT:
            return _joined([*_same(begin), *_compared(before, after), *_same(end)])
    raise AssertionError("two whole texts are short")


def older(parts: Iterable[Part]) -> tuple[Part, ...]:
    """The side of the first text."""
    return tuple(part for part in parts if part.kind != "new")


def newer(parts: Iterable[Part]) -> tuple[Part, ...]:
    """The side of the second text."""
    return tuple(part for part in parts if part.kind != "gone")


def _whole(text: str) -> list[str]:
    return [text] if text else []


def _trimmed(
    cut: Callable[[str], list[str]], old: str, new: str
) -> tuple[Sequence[str], Sequence[str], Sequence[str], Sequence[str]]:
    """Both texts in pieces, without what they begin and end with alike, and those beginnings and ends."""
    before, after = cut(old), cut(new)
    shorter = min(len(before), len(after))
    begin = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    end = next((n for n in range(shorter - begin) if before[-1 - n] != after[-1 - n]), shorter - begin)
    last, last_new = len(before) - end, len(after) - end
    return before[begin:last], after[begin:last_new], before[:begin], before[last:]


def _same(pieces: Sequence[str]) -> list[Part]:
    return [Part("same", piece) for piece in pieces]


def _compared(before: Sequence[str], after: Sequence[str]) -> list[Part]:
    """By a longest common subsequence. A table: its time is bounded, whatever the texts repeat."""
    lengths = _table(before, after)
    parts: list[Part] = []
    at, at_new = 0, 0
    while at < len(before) or at_new < len(after):
        both = at < len(before) and at_new < len(after)
        if both and before[at] == after[at_new]:
            parts.append(Part("same", before[at]))
            at, at_new = at + 1, at_new + 1
        elif at_new == len(after) or (both and lengths[at + 1][at_new] >= lengths[at][at_new + 1]):
            parts.append(Part("gone", before[at]))
            at += 1
        else:
            parts.append(Part("new", after[at_new]))
            at_new += 1
    return _spaces_changed(parts)


def _table(before: Sequence[str], after: Sequence[str]) -> list[list[int]]:
    """How long the longest is that is common to what follows each pair of places."""
    below = [0] * (len(after) + 1)
    rows = [below]
    for piece in reversed(before):
        row = [0] * (len(after) + 1)
        for place in range(len(after) - 1, -1, -1):
            if piece == after[place]:
                row[place] = below[place + 1] + 1
            else:
                right, down = row[place + 1], below[place]
                row[place] = max(down, right)
        rows.append(row)
        below = row
    rows.reverse()
    return rows


def _spaces_changed(parts: Sequence[Part]) -> list[Part]:
    """A space between two changed words is part of the change."""
    found: list[Part] = []
    for place, part in enumerate(parts):
        between = 0 < place < len(parts) - 1 and "same" not in (parts[place - 1].kind, parts[place + 1].kind)
        if part.kind == "same" and part.text.isspace() and between:
            found += [Part("gone", part.text), Part("new", part.text)]
        else:
            found.append(part)
    return found


def _joined(parts: Sequence[Part]) -> tuple[Part, ...]:
    """Without empty parts, neighbours of one kind as one; between two that are the same, first what is gone."""
    joined: list[Part] = []
    for same, run in groupby(parts, lambda part: part.kind == "same"):
        stretch = list(run)
        kinds: tuple[Kind, ...] = ("same",) if same else ("gone", "new")
        texts = (Part(kind, "".join(part.text for part in stretch if part.kind == kind)) for kind in kinds)
        joined += [part for part in texts if part.text]
    return tuple(joined)
