"""Edits JSON as text: what is not edited stays as it is, comments, spaces and trailing commas included.

It reads JSON with comments, as editors have it. Every edit is checked: the text must then say what it said before, with
that one difference.
"""

import json
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

# Keys of objects and places in lists, from the outside in.
Path = tuple[str | int, ...]
MISSING: Any = object()

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_SCALAR = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SAME_LINE = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/)")
_DEEPEST = 100


@dataclass(frozen=True)
class _Node:
    """A value in the text: where it stands, and what is in it, by key or by place."""

    start: int
    end: int
    value: Any
    # Where each child begins (with its key), and the child itself.
    children: list[tuple[int, "_Node"]] = field(default_factory=lambda: list[tuple[int, "_Node"]]())
    keys: list[str] = field(default_factory=lambda: list[str]())

    def child(self, key: str | int) -> "_Node | None":
        if isinstance(key, int):
            return self.children[key][1] if isinstance(self.value, list) and key < len(self.children) else None
        # Of a key that is there twice, programs take the last.
        places = [place for place, one in enumerate(self.keys) if one == key]
        return self.children[places[-1]][1] if places else None


class JsonText:
    """A JSON document and its text; raises `ValueError`, which names the line, for what is not JSON."""

    def __init__(self, text: str) -> None:
        self.text = text if text.strip("\ufeff \t\r\n") else "{}\n"
        self._root = _Reader(self.text).document()
        if not isinstance(self._root.value, dict):
            raise ValueError("is not a JSON object")
        self._newline = "\r\n" if "\r\n" in self.text else "\n"
        self._unit = self._indent_of(self._root.children[0][0]) if self._root.children else ""
        self._unit = self._unit or "  "

    @property
    def value(self) -> dict[str, Any]:
        """What it says."""
        return self._root.value

    def get(self, path: Path) -> Any:
        """The value at a path; `MISSING` if there is none."""
        node = self._at(path)
        return MISSING if node is None else node.value

    def set(self, path: Path, value: Any) -> "JsonText":
        """The document with that value at the path; objects on the way are made. Raises `ValueError` if one is none."""
        *way, last = path
        depth = 0
        while depth < len(way) and self._at(path[: depth + 1]) is not None:
            depth += 1
        place = self._at(path[:depth])
        if place is None or not isinstance(place.value, dict):
            raise ValueError(f"holds no object at {shown(path[:depth])}, where one was expected")
        key, new = (last, value) if depth == len(way) else (way[depth], _nested(path[depth + 1 :], value))
        there = place.child(key)
        if there is not None:
            text = self._replaced(there.start, there.end, self._dumped(new, self._indent_of(there.start)))
        else:
            text = self._inserted(place, f"{json.dumps(key, ensure_ascii=False)}: ", new)
        expected = deepcopy(self.value)
        _walk(expected, path[:depth])[key] = new
        return self._checked(text, expected)

    def append(self, path: Path, value: Any) -> "JsonText":
        """The document with that value at the end of the list at the path, which is made."""
        place = self._at(path)
        if place is None:
            return self.set(path, [value])
        if not isinstance(place.value, list):
            raise ValueError(f"holds no list at {shown(path)}, where one was expected")
        expected = deepcopy(self.value)
        _walk(expected, path).append(value)
        return self._checked(self._inserted(place, "", value), expected)

    def remove(self, path: Path) -> "JsonText":
        """The document without the value at the path."""
        place, key = self._at(path[:-1]), path[-1]
        if place is None or place.child(key) is None:
            return self
        expected = deepcopy(self.value)
        del _walk(expected, path[:-1])[key]
        made = self
        # A key that is there twice is removed twice.
        while (place := made._at(path[:-1])) is not None and key in place.keys:
            made = JsonText(made._without(place, place.keys.index(key)))
        return made._checked(made.text, expected)

    def remove_items(self, path: Path, which: Callable[[Any], bool]) -> "JsonText":
        """The document without those items of the list at the path."""
        made = self
        while True:
            place = made._at(path)
            if place is None or not isinstance(place.value, list):
                return made
            at = next((n for n, (_, one) in enumerate(place.children) if which(one.value)), None)
            if at is None:
                return made
            expected = deepcopy(made.value)
            del _walk(expected, path)[at]
            made = made._checked(made._without(place, at), expected)

    # ---- text ----

    def _at(self, path: Path) -> _Node | None:
        node: _Node | None = self._root
        for key in path:
            node = node.child(key) if node is not None else None
        return node

    def _replaced(self, start: int, end: int, new: str) -> str:
        return self.text[:start] + new + self.text[end:]

    def _checked(self, text: str, expected: Any) -> "JsonText":
        made = JsonText(text)
        if made.value != expected:
            raise ValueError("cannot be edited without changing something else; edit it by hand")
        return made

    def _indent_of(self, place: int) -> str:
        """The space before the first character of the line of that place."""
        line = self.text[self.text.rfind("\n", 0, place) + 1 : place]
        return line[: len(line) - len(line.lstrip(" \t"))]

    def _dumped(self, value: Any, indent: str) -> str:
        lines = json.dumps(value, indent=self._unit, ensure_ascii=False).split("\n")
        return (self._newline + indent).join(lines)

    def _inserted(self, place: _Node, key: str, value: Any) -> str:
        """The text with one more child of an object or a list, at its end."""
        close = place.end - 1
        outer = self._indent_of(place.start)
        if not place.children:
            inner = self.text[place.start + 1 : close].rstrip(" \t\r\n")
            own = outer + self._unit
            new = f"{inner}{self._newline}{own}{key}{self._dumped(value, own)}{self._newline}{outer}"
            return self._replaced(place.start + 1, close, new)
        first, (_, last) = place.children[0][0], place.children[-1]
        on_lines = "\n" in self.text[place.start : first]
        own = self._indent_of(first) if on_lines else ""
        new = key + (self._dumped(value, own) if on_lines else json.dumps(value, ensure_ascii=False))
        apart = self._newline + own if on_lines else " "
        comma = _comma_after(self.text, last.end)
        after = comma + 1 if comma is not None else last.end
        # A comment at the end of the line is about what stands before it.
        comment = _SAME_LINE.match(self.text, after) if on_lines else None
        place_of_new = comment.end() if comment else after
        if comma is not None:
            return self._replaced(place_of_new, place_of_new, f"{apart}{new},")
        return self._replaced(after, place_of_new, f",{self.text[after:place_of_new]}{apart}{new}")

    def _without(self, place: _Node, at: int) -> str:
        """The text without one child of an object or a list, and without the comma that parted it."""
        start, node = place.children[at]
        comma = _comma_after(self.text, node.end)
        if len(place.children) == 1:
            begin, end = place.start + 1, comma + 1 if comma is not None else node.end
            inside = self.text[begin:start].rstrip() + self.text[end : place.end - 1].rstrip()
            kept = f"{inside}{self._newline}{self._indent_of(place.start)}" if inside.strip() else ""
            return self._replaced(begin, place.end - 1, kept)
        end = comma + 1 if comma is not None else node.end
        if at == len(place.children) - 1:
            before = _comma_after(self.text, place.children[at - 1][1].end)
            assert before is not None, "another child stands before"
            # A trailing comma stays, as the one of the child before; comments between the two stay too.
            kept = ("," if comma is not None else "") + self.text[before + 1 : start].rstrip()
            if "//" in kept.rpartition("\n")[2] and not self.text[end:].lstrip(" \t").startswith(("\n", "\r")):
                kept += self._newline
            return self._replaced(before, end, kept)
        assert comma is not None, "there is another child"
        blank = re.compile(r"[ \t]*\r?\n?[ \t]*").match(self.text, end)
        return self._replaced(start, blank.end() if blank else end, "")


def _comma_after(text: str, place: int) -> int | None:
    """Where the comma stands that follows a value, behind space and comments; None if there is none."""
    found = _BLANK.match(text, place)
    at = found.end() if found else place
    return at if text[at : at + 1] == "," else None


def shown(path: Path) -> str:
    """A path in words."""
    return ".".join(str(one) for one in path) or "the top"


def _nested(path: Path, value: Any) -> Any:
    for key in reversed(path):
        value = {key: value}
    return value


def _walk(value: Any, path: Path) -> Any:
    for key in path:
        value = value[key]
    return value


class _Reader:
    """Reads a text into nodes."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def document(self) -> _Node:
        self._skip()
        node = self._value(0)
        self._skip()
        if self._at != len(self._text):
            raise self._wrong("there is something after the document")
        return node

    def _value(self, depth: int) -> _Node:
        if depth > _DEEPEST:
            raise self._wrong("it is nested too deeply")
        start, sign = self._at, self._text[self._at : self._at + 1]
        if sign == "{":
            return self._object(start, depth)
        if sign == "[":
            return self._list(start, depth)
        if sign == '"':
            text = self._string()
            return _Node(start, self._at, text)
        found = _SCALAR.match(self._text, start)
        if found is None:
            raise self._wrong("a value was expected")
        self._at = found.end()
        return _Node(start, self._at, json.loads(found.group()))

    def _object(self, start: int, depth: int) -> _Node:
        node = _Node(start, start, {})
        for begin in self._parts("}"):
            if self._text[begin] != '"':
                raise self._wrong("a key was expected")
            key = self._string()
            self._skip()
            if self._text[self._at : self._at + 1] != ":":
                raise self._wrong("a colon was expected")
            self._at += 1
            self._skip()
            child = self._value(depth + 1)
            node.keys.append(key)
            node.children.append((begin, child))
            node.value[key] = child.value
        return _Node(start, self._at, node.value, node.children, node.keys)

    def _list(self, start: int, depth: int) -> _Node:
        children = [(begin, self._value(depth + 1)) for begin in self._parts("]")]
        return _Node(start, self._at, [child.value for _, child in children], children)

    def _parts(self, close: str) -> Iterator[int]:
        """Yield the place of each child, up to the closing sign; a comma may follow the last."""
        self._at += 1
        self._skip()
        while self._text[self._at : self._at + 1] != close:
            if self._at >= len(self._text):
                raise self._wrong(f"it ends before the closing {close}")
            yield self._at
            self._skip()
            sign = self._text[self._at : self._at + 1]
            if sign == ",":
                self._at += 1
                self._skip()
            elif sign != close:
                raise self._wrong(f"a comma or {close} was expected")
        self._at += 1

    def _string(self) -> str:
        found = _STRING.match(self._text, self._at)
        if found is None:
            raise self._wrong("a string does not end")
        try:
            text: str = json.loads(found.group())
        except ValueError:
            raise self._wrong("a string has a wrong escape") from None
        self._at = found.end()
        return text

    def _skip(self) -> None:
        found = _BLANK.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _wrong(self, why: str) -> ValueError:
        line = self._text.count("\n", 0, self._at) + 1
        return ValueError(f"is not JSON: line {line}: {why}")
