"""Patterns in linear time whatever the text: the one door to re2, typed."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import re2

_engine: Any = re2  # it has no types of its own

# Room for the automaton: what ordinary text needs many times over, and what hostile text can fill at most.
_MEMORY = 48 << 20


class Pattern:
    """One pattern, looked for anywhere in a text."""

    def __init__(self, source: str) -> None:
        self._compiled: Any = _engine.compile(source)

    def occurs_in(self, text: str, times: int = 1) -> bool:
        """Whether it is found at least so many times."""
        return sum(1 for _ in islice(self._compiled.finditer(text), times)) == times

    def runs(self, text: str) -> Iterator[str]:
        """What it matches, from left to right."""
        for match in self._compiled.finditer(text):
            yield match.group()

    def cut_from(self, text: str) -> str:
        """The text without what it matches."""
        return self._compiled.sub("", text)


class PatternSet:
    """Many patterns compiled into one automaton: a single look finds all that match somewhere."""

    def __init__(self, sources: Iterable[str], *, case_sensitive: bool = True) -> None:
        options: Any = _engine.Options()
        options.max_mem = _MEMORY
        options.never_capture = True
        options.log_errors = False
        options.case_sensitive = case_sensitive
        self._set: Any = _engine.Set.SearchSet(options)
        for source in sources:
            self._set.Add(source)
        self._set.Compile()

    def matching(self, text: str) -> list[int]:
        """The numbers of the patterns that match, in the order they were given."""
        return sorted(self._set.Match(text.encode("utf-8", "replace")) or ())
