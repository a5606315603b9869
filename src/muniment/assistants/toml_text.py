"""Edits one table of a TOML file as text: what is not edited stays as it is, comments and spaces included.

Every edit is checked: the text must then say what it said before, with that one difference.
"""

import itertools
import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any, cast

Path = tuple[str, ...]
_HEADER = re.compile(r"\s*\[\[?(?P<key>[^\[\]]+)\]\]?\s*(?:#.*)?$")
_BARE = re.compile(r"[A-Za-z0-9_-]+")


class TomlText:
    """A TOML document and its text; raises `ValueError`, which names the line, for what is not TOML."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self.value: dict[str, Any] = tomllib.loads(text.removeprefix("\ufeff"))
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise ValueError(f"is not TOML: {why}") from None
        self._newline = "\r\n" if "\r\n" in text else "\n"

    def get(self, path: Path) -> Any:
        """The value at a path; None if there is none."""
        found: Any = self.value
        for key in path:
            found = cast("dict[str, Any]", found).get(key) if isinstance(found, dict) else None
        return found

    def set(self, path: Path, values: Mapping[str, Any]) -> "TomlText":
        """The document with that table, at its end; tables within it stay. Raises `ValueError` if it cannot be."""
        own = self._without(lambda header: header == path).rstrip("\r\n \t")
        dumped = [f"{_key(name)} = {_dumped(one)}" for name, one in values.items() if not isinstance(one, dict)]
        block = self._newline.join([f"[{'.'.join(_key(one) for one in path)}]", *dumped])
        apart = self._newline * 2 if own else ""
        expected = deepcopy(self.value)
        place = _table(expected, path[:-1])
        place[path[-1]] = {**{n: one for n, one in place.get(path[-1], {}).items() if isinstance(one, dict)}, **values}
        return self._checked(f"{own}{apart}{block}{self._newline}", expected)

    def remove(self, path: Path) -> "TomlText":
        """The document without that table and all tables within it; raises `ValueError` if it cannot be."""
        if self.get(path) is None:
            return self
        expected = deepcopy(self.value)
        del _table(expected, path[:-1])[path[-1]]
        # A table around it that has no header of its own is gone with it.
        bare = deepcopy(expected)
        for depth in range(len(path) - 1, 0, -1):
            place = _table(bare, path[: depth - 1])
            if not place[path[depth - 1]]:
                del place[path[depth - 1]]
        return self._checked(self._without(lambda header: header[: len(path)] == path), expected, bare)

    def _checked(self, text: str, *expected: Any) -> "TomlText":
        try:
            made = TomlText(text)
        except ValueError:
            made = None
        if made is None or made.value not in expected:
            raise ValueError("cannot be edited without changing something else; edit it by hand")
        return made

    def _without(self, which: Callable[[Path], bool]) -> str:
        """The text without the tables whose header that holds for; comments before the next header stay."""
        lines = self.text.splitlines(keepends=True)
        headers = [*_headers(lines), (len(lines), ())]
        gone: set[int] = set()
        for (start, header), (end, _) in itertools.pairwise(headers):
            if which(header):
                last = max(n for n in range(start, end) if n == start or _says_something(lines[n]))
                gone.update(range(start, last + 1))
                before = start - 1
                if before >= 0 and not lines[before].strip():
                    # The empty line that parted it from what stands before.
                    gone.add(before)
        return "".join(line for number, line in enumerate(lines) if number not in gone)


def _headers(lines: list[str]) -> Iterator[tuple[int, Path]]:
    for number, line in enumerate(lines):
        found = _HEADER.match(line)
        if found is not None:
            yield number, _parsed(found["key"])


def _parsed(key: str) -> Path:
    """The parts of a dotted key."""
    try:
        value: Any = tomllib.loads(f"[{key}]")
    except tomllib.TOMLDecodeError:
        return ()
    parts: list[str] = []
    while isinstance(value, dict) and value:
        (name, value), *_ = cast("dict[str, Any]", value).items()
        parts.append(name)
    return tuple(parts)


def _says_something(line: str) -> bool:
    return bool(line.strip()) and not line.lstrip().startswith("#")


def _table(value: dict[str, Any], path: Path) -> dict[str, Any]:
    for key in path:
        value = value.setdefault(key, {})
        if not isinstance(value, dict):
            raise ValueError(f"holds no table at {key}, where one was expected")
    return value


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _dumped(name)


def _dumped(value: Any) -> str:
    """A value in TOML; raises `ValueError` for one that is not plain."""
    if isinstance(value, list):
        return f"[{', '.join(_dumped(one) for one in cast('list[Any]', value))}]"
    if not isinstance(value, (bool, int, float, str)):
        raise ValueError("holds values there that cannot be written again; edit it by hand")
    # The strings of JSON are strings of TOML, but for the sign that TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
