"""Values that were masked, and where else they stand: all of them sought in one walk over a text."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from muniment.language.redaction.sight import lowered, sight_of

Told = TypeVar("Told")

_LONG = 4
_LONGEST = 256
# A word, the room between two, or any other sign.
_TOKEN = re.compile(r"[^\W_]+|\s+|.", re.DOTALL)
# Between the thousands of a number; read as the room between two words.
_APART = re.compile(r"(?<=[0-9])[,.'](?=[0-9]{3}(?![^\W_]))")


@dataclass(frozen=True)
class Secret:
    """A value that was masked and must not be read elsewhere."""

    words: str

    @staticmethod
    def of(value: Any) -> "Secret | None":
        """The secret in a scalar, or None where there is none to tell from any other word."""
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return None
        words = " ".join(lowered(sight_of(str(value)).text).split())
        return Secret(words) if len(words) <= _LONGEST and any(map(str.isalnum, words)) else None

    @property
    def is_long(self) -> bool:
        """Whether it is long enough to be nothing else by chance."""
        return sum(map(str.isalnum, self.words)) >= _LONG


class Sought(Generic[Told]):
    """Secrets, each with what is told of it, found in a plain text as words of their own in any case and spacing.

    A whole number is also found with its thousands set apart. The walk is that of Aho and Corasick, from word to word
    instead of letter to letter: its time grows with the text and not with the number of secrets.
    """

    def __init__(self, secrets: Iterable[tuple[Secret, Told]]) -> None:
        self._steps: dict[tuple[int, str], int] = {}
        # Of each node: its parent, its last word and its depth; what ends there; where to go on when no step fits.
        self._nodes: list[tuple[int, str, int]] = [(0, "", 0)]
        self._ends: list[tuple[int, Told] | None] = [None]
        for secret, told in secrets:
            for spelling in _spellings(secret.words):
                self._add([word for word, _, _ in _words(spelling)], told)
        self._first = {word for node, word in self._steps if node == 0}
        self._else = [0] * len(self._nodes)
        self._link()

    def __bool__(self) -> bool:
        return bool(self._first)

    def _add(self, words: list[str], told: Told) -> None:
        node = 0
        for depth, word in enumerate(words, 1):
            after = self._steps.get((node, word))
            if after is None:
                after = self._steps[node, word] = len(self._nodes)
                self._nodes.append((node, word, depth))
                self._ends.append(None)
            node = after
        if self._ends[node] is None:
            self._ends[node] = len(words), told

    def _link(self) -> None:
        for node in sorted(range(1, len(self._nodes)), key=lambda one: self._nodes[one][2]):
            parent, word, depth = self._nodes[node]
            if depth > 1:
                self._else[node] = self._step(self._else[parent], word)
            # The longest that ends here covers all others that do.
            self._ends[node] = self._ends[node] or self._ends[self._else[node]]

    def _step(self, node: int, word: str) -> int:
        steps = self._steps
        while (after := steps.get((node, word))) is None:
            if node == 0:
                return 0
            node = self._else[node]
        return after

    def find(self, text: str) -> list[tuple[int, int, Told]]:
        """Where they stand, the longest first; of those that end at the same place only the longest."""
        plain = _plain(text)
        if self._first.isdisjoint(_TOKEN.findall(plain)):
            return []
        found: list[tuple[int, int, Told]] = []
        starts: list[int] = []
        node = 0
        for word, start, end in _words(plain):
            starts.append(start)
            node = self._step(node, word)
            if (ending := self._ends[node]) is not None:
                size, told = ending
                found.append((starts[-size], end, told))
        found.sort(key=lambda one: (one[0] - one[1], one[0]))
        return found


def _plain(text: str) -> str:
    return _APART.sub(" ", lowered(text))


def _words(plain: str) -> Iterator[tuple[str, int, int]]:
    for token in _TOKEN.finditer(plain):
        word = token.group()
        yield " " if word.isspace() else word, token.start(), token.end()


def _spellings(words: str) -> Iterator[str]:
    yield _plain(words)
    if words.isascii() and words.isdigit() and len(words) > 3:
        yield _plain(f"{int(words):,}")
