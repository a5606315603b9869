"""Finds values that were masked in one place wherever else they occur, all of them in one pass over a text."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from muniment.language.redaction.normalised import lowered, normalise

Attached = TypeVar("Attached")

_LONG = 4
_LONGEST = 256
# A word, the space between two, or any other character.
_TOKEN = re.compile(r"[^\W_]+|\s+|.", re.DOTALL)
# Separators of thousands in a number; read as a space.
_APART = re.compile(r"(?<=[0-9])[,.'](?=[0-9]{3}(?![^\W_]))")


@dataclass(frozen=True)
class MaskedValue:
    """The normalised words of a value that was masked and must not be readable elsewhere."""

    words: str

    @staticmethod
    def of(value: Any) -> "MaskedValue | None":
        """Return the words of a scalar; None where there are none, or too many to search for."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return None
        words = " ".join(lowered(normalise(str(value)).text).split())
        return MaskedValue(words) if len(words) <= _LONGEST and any(map(str.isalnum, words)) else None

    @property
    def is_long(self) -> bool:
        """Whether it is too long to be found by chance."""
        return sum(map(str.isalnum, self.words)) >= _LONG


class ValueMatcher(Generic[Attached]):
    """Finds masked values, each with an attached object, as whole words in any case and spacing.

    A whole number is also found with separated thousands. This is the Aho-Corasick algorithm over words instead of
    letters: its time grows with the text and not with the number of values.
    """

    def __init__(self, masked_values: Iterable[tuple[MaskedValue, Attached]]) -> None:
        self._steps: dict[tuple[int, str], int] = {}
        # Of each node its parent, last word and depth; the value that ends there; the node to fall back to.
        self._nodes: list[tuple[int, str, int]] = [(0, "", 0)]
        self._ends: list[tuple[int, Attached] | None] = [None]
        for masked_value, attached in masked_values:
            for spelling in _spellings(masked_value.words):
                self._add([word for word, _, _ in _tokens(spelling)], attached)
        self._first = {word for node, word in self._steps if node == 0}
        self._fallback = [0] * len(self._nodes)
        self._link()

    def __bool__(self) -> bool:
        return bool(self._first)

    def _add(self, words: list[str], attached: Attached) -> None:
        node = 0
        for depth, word in enumerate(words, 1):
            after = self._steps.get((node, word))
            if after is None:
                after = self._steps[node, word] = len(self._nodes)
                self._nodes.append((node, word, depth))
                self._ends.append(None)
            node = after
        if self._ends[node] is None:
            self._ends[node] = len(words), attached

    def _link(self) -> None:
        for node in sorted(range(1, len(self._nodes)), key=lambda one: self._nodes[one][2]):
            parent, word, depth = self._nodes[node]
            if depth > 1:
                self._fallback[node] = self._step(self._fallback[parent], word)
            # The longest value that ends here covers all others that do.
            self._ends[node] = self._ends[node] or self._ends[self._fallback[node]]

    def _step(self, node: int, word: str) -> int:
        steps = self._steps
        while (after := steps.get((node, word))) is None:
            if node == 0:
                return 0
            node = self._fallback[node]
        return after

    def find(self, text: str) -> list[tuple[int, int, Attached]]:
        """Return their spans, the longest first; of those that end at the same position only the longest."""
        plain = _plain(text)
        if self._first.isdisjoint(_TOKEN.findall(plain)):
            return []
        found: list[tuple[int, int, Attached]] = []
        starts: list[int] = []
        node = 0
        for word, start, end in _tokens(plain):
            starts.append(start)
            node = self._step(node, word)
            if (ending := self._ends[node]) is not None:
                size, attached = ending
                found.append((starts[-size], end, attached))
        found.sort(key=lambda one: (one[0] - one[1], one[0]))
        return found


def _plain(text: str) -> str:
    return _APART.sub(" ", lowered(text))


def _tokens(plain: str) -> Iterator[tuple[str, int, int]]:
    for token in _TOKEN.finditer(plain):
        word = token.group()
        yield " " if word.isspace() else word, token.start(), token.end()


def _spellings(words: str) -> Iterator[str]:
    yield _plain(words)
    if words.isascii() and words.isdigit() and len(words) > 3:
        yield _plain(f"{int(words):,}")
