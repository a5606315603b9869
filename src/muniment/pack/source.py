"""Reads the text of a pack into plain values and remembers the line of each.

The text is YAML by its 1.2 rules, of which JSON is a subset: `on`, `yes`, `010` and `2026-05-04` are strings, not
booleans, octal numbers or dates. Aliases and tags are refused. The parser is libyaml; the values are built here from
its events, because `yaml.compose` recurses without a depth limit, expands aliases and resolves by the rules of 1.1.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NoReturn, cast

import yaml
from yaml.reader import ReaderError

from muniment.errors import PackInvalid, PackProblem
from muniment.model.fields import clean_text
from muniment.pack.wording import KeyPath, dotted, shorten

TEXT_LIMIT = 1024 * 1024
DEPTH_LIMIT = 32
VALUE_LIMIT = 20_000
# Reading stops after this many problems.
PROBLEM_LIMIT = 100
# Directives (%YAML, %TAG): libyaml compares each with all before it.
DIRECTIVE_LIMIT = 2

_DIRECTIVE = re.compile("(?:^|[\n\r\x85\u2028\u2029])%")
_PAIR_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*+)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|-?Infinity|NaN")
_DIGITS_LIMIT = 18
_INDENTATION = "the indentation does not fit the lines above"
_TAB = "a tab where spaces belong; YAML is indented with spaces"
_SYNTAX = (
    ("mapping values are not allowed", "a second ':' in one value; put the text in quotes"),
    ("did not find expected key", _INDENTATION),
    ("did not find expected '-' indicator", _INDENTATION),
    ("could not find expected ':'", "expected ':' after the key"),
    ("found a tab character", _TAB),
    ("that cannot start any token", "a value cannot begin with this character; put it in quotes"),
    ("invalid Unicode character escape code", "an escape is out of range, or half of a character; write the character"),
    ("found extremely long version number", "is not valid YAML: a number in it is out of range"),
    ("found unexpected end of stream", "a quoted text is not closed"),
    ("expected ',' or ']'", "a list opened with '[' is not closed, or a ',' is missing"),
    ("expected ',' or '}'", "a mapping opened with '{' is not closed, or a ',' is missing"),
    ("did not find expected <document start>", "the text continues after the end of the document"),
)


@dataclass
class ParsedText:
    """The values of a text, their lines, and the problems of the text itself."""

    value: Any = None
    problems: list[PackProblem] = field(default_factory=list[PackProblem])
    # Paths that have a problem, and the paths of the mappings and lists around them.
    faulty: set[KeyPath] = field(default_factory=set[KeyPath])
    holders: set[KeyPath] = field(default_factory=set[KeyPath])
    lines: dict[KeyPath, int] = field(default_factory=dict[KeyPath, int])
    key_lines: dict[KeyPath, int] = field(default_factory=dict[KeyPath, int])

    def line_of(self, path: KeyPath) -> int:
        """The line of the value at the path, or of the nearest value around it."""
        while path not in self.lines and path:
            path = path[:-1]
        return self.lines.get(path, 1)

    def is_faulty(self, path: KeyPath) -> bool:
        """Whether the path or a value around it has a problem, so that a further message would only repeat it."""
        return any(path[:length] in self.faulty for length in range(len(path) + 1))

    def add(self, line: int, path: KeyPath, message: str) -> None:
        """Add a problem and mark its path as faulty; raises `PackInvalid` at the limit."""
        self.faulty.add(path)
        self.holders.update(path[:length] for length in range(len(path)))
        self.add_message(line, path, message)

    def add_message(self, line: int, path: KeyPath, message: str) -> None:
        """Add a problem without marking its path: the value there is still validated."""
        self.problems.append(PackProblem(line, dotted(path), message))
        if len(self.problems) >= PROBLEM_LIMIT:
            rest = f"has {PROBLEM_LIMIT} problems up to here; the rest was not read"
            raise PackInvalid([*self.problems, PackProblem(line, "", rest)])

    def give_up(self, line: int, path: KeyPath, message: str) -> NoReturn:
        """Add a problem after which nothing more can be read."""
        self.add(line, path, message)
        raise PackInvalid(self.problems)


def refuse(message: str, *, line: int | None = 1) -> NoReturn:
    """Refuse the whole text for one reason."""
    raise PackInvalid([PackProblem(line, "", message)])


def decode(data: bytes) -> str:
    """Decode UTF-8; raises `PackInvalid` if the bytes are not UTF-8 or longer than `TEXT_LIMIT`."""
    _check_size(data)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        refuse("expected UTF-8 text", line=data.count(b"\n", 0, error.start) + 1)


def read_text(text: str) -> ParsedText:
    """Parse the text; raises `PackInvalid` if it cannot be parsed to the end."""
    _check_size(text)
    text = text.removeprefix("\ufeff")
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        _refuse_character(ord(text[error.start]), text.count("\n", 0, error.start) + 1)
    _check_size(data)
    if text.count("%") > DIRECTIVE_LIMIT:
        for surplus in islice(_DIRECTIVE.finditer(text), DIRECTIVE_LIMIT, None):
            line = text.count("\n", 0, surplus.end()) + 1
            refuse(f"has more than {DIRECTIVE_LIMIT} directives (lines that begin with %); expected none", line=line)
    return _Reader(_join_escapes(text)).read()


def _check_size(text: str | bytes) -> None:
    if len(text) > TEXT_LIMIT:
        refuse(f"is larger than {TEXT_LIMIT} bytes, the most a pack may have", line=None)


def _refuse_character(code: int, line: int) -> NoReturn:
    refuse(f"holds the character U+{code:04X}, which no text may hold", line=line)


def _join_escapes(text: str) -> str:
    """Join the two escapes by which JSON writes a character past U+FFFF: libyaml refuses each as half a character.

    Texts that are not JSON stay as they are: there a backslash may be outside of quotes.
    """
    if "\\u" not in text or not text.lstrip().startswith("{"):
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return _PAIR_ESCAPE.sub(_joined_escape, text)


def _joined_escape(pair: re.Match[str]) -> str:
    before, high, low = pair.groups()
    code = 0x10000 + ((int(high, 16) - 0xD800) << 10) + (int(low, 16) - 0xDC00)
    return f"{before}\\U{code:08X}"


class _Reader:
    """Builds the values of one text. A path is as long as the mappings and lists around it are deep."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._parsed = ParsedText()
        self._events = self._parse()
        self._values = 0

    def read(self) -> ParsedText:
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._parsed.give_up(_line(event), (), "a second document begins; expected one")
            elif isinstance(event, yaml.NodeEvent):
                self._parsed.value = self._value(event, (), _line(event), keep=True)
        if self._parsed.value is None and not self._parsed.problems:
            refuse("is empty; expected a mapping that begins with pack_meta")
        return self._parsed

    def _parse(self) -> Iterator[Any]:
        try:
            yield from cast("Any", yaml).parse(self._text, Loader=yaml.CSafeLoader)
        except ReaderError as error:
            before = self._text.encode()[: cast("int", error.position)]
            _refuse_character(cast("int", error.character), before.count(b"\n") + 1)
        except yaml.MarkedYAMLError as error:
            mark: Any = error.problem_mark
            # libyaml counts the end of a text as a line of its own.
            line = min(mark.line, self._text.count("\n")) + 1
            problem = str(error.problem)
            message = next((ours for theirs, ours in _SYNTAX if theirs in problem), f"is not valid YAML: {problem}")
            if "cannot start any token" in problem and self._text[mark.index : mark.index + 1] == "\t":
                message = _TAB
            self._parsed.give_up(line, (), message)

    def _value(self, event: Any, path: KeyPath, line: int, *, keep: bool) -> Any:
        """Build the value that begins with this event; `line` is that of its key, or its own in a list.

        `keep` is false below a key that is refused: problems there count, lines do not.
        """
        self._values += 1
        if self._values > VALUE_LIMIT:
            self._parsed.give_up(line, path[:-1], f"has more than {VALUE_LIMIT} values")
        is_collection = isinstance(event, yaml.CollectionStartEvent)
        if keep:
            self._parsed.lines[path] = line if is_collection else _line(event)
        if is_collection:
            if len(path) >= DEPTH_LIMIT:
                self._parsed.give_up(_line(event), path[:-1], f"is nested deeper than {DEPTH_LIMIT} levels")
            if event.tag is not None:
                self._parsed.add(_line(event), path, f"a tag ({shorten(event.tag)}) is not allowed; leave it out")
            build = self._mapping if isinstance(event, yaml.MappingStartEvent) else self._list
            return build(path, keep=keep)
        try:
            if isinstance(event, yaml.AliasEvent):
                raise ValueError("an alias (*name) is not allowed; expected the value written out")
            return _scalar(event)
        except ValueError as error:
            self._parsed.add(_line(event), path, str(error))
            return None

    def _list(self, path: KeyPath, *, keep: bool) -> list[Any]:
        items: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._value(event, (*path, len(items)), _line(event), keep=keep))
        return items

    def _mapping(self, path: KeyPath, *, keep: bool) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            line = _line(event)
            if not isinstance(event, yaml.ScalarEvent):
                kind = "an alias (*name)" if isinstance(event, yaml.AliasEvent) else "a mapping or list"
                self._parsed.give_up(line, path, f"{kind} as a key; expected a plain word")
            key_path = (*path, event.value)
            is_new = self._check_key(event, key_path, found)
            value = self._value(next(self._events), key_path, line, keep=keep and is_new)
            if is_new:
                found[event.value] = value
                if keep:
                    self._parsed.key_lines[key_path] = line
        return found

    def _check_key(self, event: Any, path: KeyPath, found: dict[str, Any]) -> bool:
        """Whether the key is a string that the mapping does not have yet; adds the problem if not."""
        line = _line(event)
        try:
            key = _scalar(event)
        except ValueError as error:
            self._parsed.add(line, path, f"as a key: {error}")
            return False
        if not isinstance(key, str):
            self._parsed.add(line, path, f'expected a text as key; write it as "{shorten(event.value)}"')
            return False
        if key in found:
            self._parsed.add_message(line, path, "appears twice in one mapping; expected once")
            return False
        return True


def _line(event: Any) -> int:
    return event.start_mark.line + 1


def _scalar(event: Any) -> str | int | float | bool | None:
    """The value of a scalar; raises `ValueError` for a tag and for what a pack cannot hold."""
    if event.tag is not None:
        raise ValueError(f"a tag ({shorten(event.tag)}) is not allowed; put a text in quotes instead")
    text = cast("str", event.value)
    is_plain = event.implicit[0]
    if is_plain and text in _CONSTANTS:
        return _CONSTANTS[text]
    if is_plain and _NOT_FINITE.fullmatch(text):
        raise ValueError(f"expected a finite number, got {text}")
    if is_plain and _INTEGER.fullmatch(text):
        if len(text) > _DIGITS_LIMIT:
            raise ValueError(f"expected a number of at most {_DIGITS_LIMIT} digits")
        return int(text)
    if is_plain and _DECIMAL.fullmatch(text):
        if (number := float(text)) in (float("inf"), float("-inf")):
            raise ValueError("expected a finite number")
        return number
    return clean_text(text)
