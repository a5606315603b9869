"""Reads word lists and patterns from the plain-text data files beside the code."""

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files

_REFERENCE = re.compile(r"<(\w+)>")


def read_sections(package: str, file: str, *, joint: str = " ") -> dict[str, list[str]]:
    """Return the lines of each section of a data file.

    `[name]` begins a section and `#` a comment line; blank lines are ignored. An indented line continues the line
    above and is joined to it with `joint`.
    """
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in files(package).joinpath(file).read_text("utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("[") and line.endswith("]"):
            lines = sections.setdefault(line[1:-1], [])
        elif line.startswith(" "):
            lines[-1] += joint + line.lstrip()
        else:
            lines.append(line)
    return sections


def named_lines(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Split lines of the form `name = text`."""
    return ((name, text) for name, _, text in (line.partition(" = ") for line in lines))


def fill_parts(pattern: str, parts: Mapping[str, str]) -> str:
    """Replace every `<name>` in a pattern by the part of that name, at any depth; other tags are text."""
    return _REFERENCE.sub(
        lambda found: fill_parts(parts[found[1]], parts) if found[1] in parts else found[0],
        pattern,
    )


def word_set(text: str) -> frozenset[str]:
    """Split a list of words at its spaces."""
    return frozenset(text.split())


def word_map(text: str) -> dict[str, str]:
    """Read a list of `word=replacement`; an underscore is a space within a replacement."""
    pairs = (pair.partition("=") for pair in text.split())
    return {word: replacement.replace("_", " ") for word, _, replacement in pairs}
