"""Which words may stay in memory: those of the package's own word lists, which say nothing about anybody.

A cache of words would otherwise keep the names of people, where no erasure reaches them.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, wraps
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import TypeVar

_WORD = re.compile(r"[^\W\d_]+")
_MOST_KEPT = 1 << 14

Answer = TypeVar("Answer")


@cache
def known_words() -> frozenset[str]:
    """Return the words of the package's own lists and patterns, in lower case."""
    return frozenset(word for file in _lists(files(__package__ or "")) for word in _WORD.findall(file.lower()))


def _lists(folder: Traversable) -> Iterator[str]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _lists(entry)
        elif entry.name.endswith(".txt"):
            yield entry.read_text("utf-8")


def kept_if_known(function: Callable[[str], Answer]) -> Callable[[str], Answer]:
    """Keep what a function of one word returns, for known words alone; a name is computed anew each time."""
    kept = lru_cache(maxsize=_MOST_KEPT)(function)

    @wraps(function)
    def call(word: str) -> Answer:
        return kept(word) if word.lower() in known_words() else function(word)

    return call
