"""Word differences between two texts."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

Kind = Literal["same", "gone", "new"]

# Pieces of one text times pieces of the other: longer texts are compared by sentences, or as a whole.
LIMIT = 40_000
_WORDS = re.compile(r"\w+\s*|[^\w\s]\s*|\s+")
_SENTENCES = re.compile(r"[^.!?\n]+[.!?\n]*\s*|[.!?\n]+\s*")
_WHOLE = re.compile(r".+", re.DOTALL)


@dataclass(frozen=True)
class Part:
    """A stretch of text that is in both, or only in one of them."""

    kind: Kind
    text: str


def differences(old: str, new: str) -> tuple[Part, ...]:
    """Compare two texts by words; long ones by sentences, and very long ones as a whole.

    The parts joined without the new ones are the old text; without the gone ones, the new text.
    """
    cuts = (_cut(pieces, old, new) for pieces in (_WORDS, _SENTENCES, _WHOLE))
    begin, gone, added, end = next(cut for cut in cuts if len(cut[1]) * len(cut[2]) <= LIMIT)
    return _merge([Part("same", "".join(begin)), *_compare(gone, added), Part("same", "".join(end))])


def _cut(pieces: re.Pattern[str], old: str, new: str) -> tuple[list[str], list[str], list[str], list[str]]:
    """Cut both texts into pieces: the common start, what differs in the one and the other, the common end."""
    before, after = pieces.findall(old), pieces.findall(new)
    shorter = min(len(before), len(after))
    begin = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    end = next((n for n in range(shorter - begin) if before[-1 - n] != after[-1 - n]), shorter - begin)
    last, last_new = len(before) - end, len(after) - end
    return before[:begin], before[begin:last], after[begin:last_new], before[last:]


def older(parts: Iterable[Part]) -> tuple[Part, ...]:
    """The parts of the first text."""
    return tuple(part for part in parts if part.kind != "new")


def newer(parts: Iterable[Part]) -> tuple[Part, ...]:
    """The parts of the second text."""
    return tuple(part for part in parts if part.kind != "gone")


def _compare(before: Sequence[str], after: Sequence[str]) -> Iterator[Part]:
    for kind, a, b, c, d in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        gone, new = "".join(before[a:b]), "".join(after[c:d])
        if kind == "equal":
            yield Part("same", gone)
            continue
        # Space after a changed word that is after the new word too is not part of the change.
        space = gone[len(gone.rstrip()) :]
        if space and new[len(new.rstrip()) :] == space:
            gone, new = gone.removesuffix(space), new.removesuffix(space)
        else:
            space = ""
        yield from (Part("gone", gone), Part("new", new), Part("same", space))


def _merge(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Join neighbours of one kind, and drop empty parts."""
    merged: list[Part] = []
    for part in parts:
        if part.text and merged and merged[-1].kind == part.kind:
            merged[-1] = Part(part.kind, merged[-1].text + part.text)
        elif part.text:
            merged.append(part)
    return tuple(merged)
