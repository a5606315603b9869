"""Regular expressions of RE2, typed: they take linear time whatever the text. Each is compiled when first used."""

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import islice
from typing import Any

import re2

from muniment.language.data_files import fill_parts, named_lines, read_sections

_engine: Any = re2  # it has no types of its own

# Memory for the automaton: what ordinary text needs many times over, and what hostile text can fill at most.
_MEMORY = 48 << 20


def _options(*, case_sensitive: bool) -> Any:
    options: Any = _engine.Options()
    options.log_errors = False
    options.case_sensitive = case_sensitive
    return options


class Pattern:
    """One pattern, looked for anywhere in a text."""

    def __init__(self, source: str, *, case_sensitive: bool = True) -> None:
        self._source = source
        self._case_sensitive = case_sensitive

    @cached_property
    def _compiled(self) -> Any:
        return _engine.compile(self._source, _options(case_sensitive=self._case_sensitive))

    def search(self, text: str) -> Any:
        """Return the first match, or None."""
        return self._compiled.search(text)

    def finditer(self, text: str) -> Iterator[Any]:
        """Return every match from left to right, none within another."""
        return self._compiled.finditer(text)

    def sub(self, replacement: str | Callable[[Any], str], text: str) -> str:
        """Return the text with every match replaced."""
        return self._compiled.sub(replacement, text)

    def occurs_in(self, text: str, times: int = 1) -> bool:
        """Say whether it matches at least so many times."""
        if times == 1:
            return self._compiled.search(text) is not None
        return sum(1 for _ in islice(self.finditer(text), times)) == times


class PatternSet:
    """Many patterns compiled into one automaton, which finds all that match somewhere in one pass."""

    def __init__(self, sources: Iterable[str], *, case_sensitive: bool = True) -> None:
        self._sources = sources
        self._case_sensitive = case_sensitive

    @cached_property
    def _compiled(self) -> Any:
        options = _options(case_sensitive=self._case_sensitive)
        options.max_mem = _MEMORY
        options.never_capture = True
        compiled: Any = _engine.Set.SearchSet(options)
        for source in self._sources:
            compiled.Add(source)
        compiled.Compile()
        return compiled

    def matching(self, text: str) -> list[int]:
        """Return the indexes of the patterns that match, in order."""
        return sorted(self._compiled.Match(text.encode("utf-8", "replace")) or ())


def caseless(source: str) -> Pattern:
    """Return a pattern for letters of either case."""
    return Pattern(source, case_sensitive=False)


def either(words: str) -> str:
    """Return a group of alternatives, the longest first, from words split at spaces; `_` is a space within one."""
    parts = sorted(words.split(), key=len, reverse=True)
    return "(?:" + "|".join(part.replace("_", " ") for part in parts) + ")"


class PatternFile:
    """The named patterns of a data file.

    Its sections are `[words]` (lists, of which a pattern matches any word), `[parts]`, `[patterns]` (for letters of
    either case) and `[case-sensitive patterns]`. A pattern refers to a list or part as `<name>`; a name may repeat.
    """

    def __init__(self, package: str, file: str) -> None:
        self._patterns = [
            (name, Pattern(source, case_sensitive=section != "patterns"))
            for section, sources in read_patterns(package, file).items()
            for name, source in sources
        ]
        self._by_name = dict(self._patterns)

    def __getitem__(self, name: str) -> Pattern:
        return self._by_name[name]

    def all_of(self, *names: str) -> list[tuple[str, Pattern]]:
        """Return the patterns of these names, each with its name, in the order of the file."""
        return [(name, pattern) for name, pattern in self._patterns if name in names]


def read_patterns(package: str, file: str) -> dict[str, list[tuple[str, str]]]:
    """Return the named patterns of each section of a data file, with its `[words]` and `[parts]` filled in."""
    sections = read_sections(package, file, joint="\n")
    parts = {name: either(words) for name, words in named_lines(sections.pop("words", []))}
    parts |= {name: _unbroken(part) for name, part in named_lines(sections.pop("parts", []))}
    return {
        section: [(name, fill_parts(_unbroken(source), parts)) for name, source in named_lines(lines)]
        for section, lines in sections.items()
    }


def _unbroken(lines: str) -> str:
    return lines.replace("\n", "")
