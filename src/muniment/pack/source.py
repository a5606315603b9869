"""A pack's text to plain values, each with the line it stands on.

YAML by its 1.2 rules, of which JSON is a part: `on`, `yes`, `010` and `2026-05-04` are texts, not booleans,
octals or dates. No aliases, no tags. Built from the parser's events and not by recursion, so that a deep text
is an error like any other. The parser is libyaml's where PyYAML has it, which is some ten times as fast as its own.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NoReturn, cast

import yaml

from muniment.errors import PackInvalid, PackProblem
from muniment.model.fields import clean_text
from muniment.pack.wording import Place, dotted, shown

TEXT_LIMIT = 1024 * 1024
DEPTH_LIMIT = 32
VALUE_LIMIT = 20_000
# Problems of one text; after so many it is given up.
PROBLEM_LIMIT = 100
# Directives (%YAML, %TAG): libyaml compares each with all before it.
DIRECTIVE_LIMIT = 2

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DIRECTIVE = re.compile("(?:^|[\n\r\x85\u2028\u2029])%")
_HALF_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_PAIR_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*+)\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_SLOWLY_READ = 64 * 1024
_PIECE = 64 * 1024
_NOT_TEXT = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_WHOLE = re.compile(r"-?(?:0|[1-9][0-9]*)")
_DECIMAL = re.compile(r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,4})?")
_ENDLESS = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|-?Infinity|NaN")
_DIGITS_LIMIT = 18
_SYNTAX = (
    ("mapping values are not allowed", "a second ':' in one value; put the text in quotes"),
    ("expected <block end>", "the indentation does not fit the lines above"),
    ("did not find expected key", "the indentation does not fit the lines above"),
    ("did not find expected '-' indicator", "the indentation does not fit the lines above"),
    ("could not find expected ':'", "expected ':' after the key"),
    ("found a tab character", "a tab where spaces belong; YAML is indented with spaces"),
    ("found character '\\t'", "a tab where spaces belong; YAML is indented with spaces"),
    ("that cannot start any token", "a value cannot begin with this character; put it in quotes"),
    ("invalid Unicode character escape code", "an escape is out of range, or half of a character; write the character"),
    ("found extremely long version number", "is not valid YAML: a number in it is out of range"),
    ("found unexpected end of stream", "a quoted text is not closed"),
    ("expected ',' or ']'", "a list opened with '[' is not closed, or a ',' is missing"),
    ("expected ',' or '}'", "a mapping opened with '{' is not closed, or a ',' is missing"),
    ("but found '<document start>'", "a second document begins; expected one"),
    ("did not find expected <document start>", "the text goes on after the pack has ended"),
    ("expected '<document start>'", "the text goes on after the pack has ended"),
)


@dataclass
class Written:
    """The values of a text, the lines they stand on, and what was wrong with the text itself."""

    value: Any = None
    problems: list[PackProblem] = field(default_factory=list[PackProblem])
    faulty: set[Place] = field(default_factory=set[Place])
    holders: set[Place] = field(default_factory=set[Place])
    lines: dict[Place, int] = field(default_factory=dict[Place, int])
    key_lines: dict[Place, int] = field(default_factory=dict[Place, int])

    def line_of(self, place: Place) -> int:
        """The line of the value, or of the nearest that holds it."""
        while place not in self.lines and place:
            place = place[:-1]
        return self.lines.get(place, 1)

    def is_faulty(self, place: Place) -> bool:
        """Whether a problem was noted at the place or around it: what is said there now is an echo."""
        return any(place[:length] in self.faulty for length in range(len(place) + 1))

    def add(self, line: int, place: Place, message: str) -> None:
        """Note a problem; what validation says of the same place is then left unsaid."""
        self.problems.append(PackProblem(line, dotted(place), message))
        self.faulty.add(place)
        self.holders.update(place[:length] for length in range(len(place)))
        self.give_up_at_the_limit(line)

    def give_up_at_the_limit(self, line: int) -> None:
        """Raises `PackInvalid` once there are as many problems as are told."""
        if len(self.problems) >= PROBLEM_LIMIT:
            rest = f"has {PROBLEM_LIMIT} problems up to here; the rest was not read"
            raise PackInvalid([*self.problems, PackProblem(line, "", rest)])


def refuse(message: str, *, line: int | None = 1) -> NoReturn:
    """Refuse the whole text for one reason."""
    raise PackInvalid([PackProblem(line, "", message)])


def decode(data: bytes) -> str:
    """The text of the bytes; raises `PackInvalid` when there are too many or they are not UTF-8."""
    if len(data) > TEXT_LIMIT:
        refuse(f"is larger than {TEXT_LIMIT} bytes, the most a pack may have", line=None)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        refuse("expected UTF-8 text", line=data.count(b"\n", 0, error.start) + 1)


def read_text(text: str) -> Written:
    """The values of the text with their lines; raises `PackInvalid` where no values can be had of it."""
    if len(text) > TEXT_LIMIT or len(text.encode("utf-8", "surrogatepass")) > TEXT_LIMIT:
        refuse(f"is larger than {TEXT_LIMIT} bytes, the most a pack may have", line=None)
    text = text.removeprefix("\ufeff")
    if found := _no_text_in(text):
        line = text.count("\n", 0, found.start()) + 1
        refuse(f"holds the character U+{ord(found.group()):04X}, which no text may hold", line=line)
    directives = islice(_DIRECTIVE.finditer(text), DIRECTIVE_LIMIT, None) if text.count("%") > DIRECTIVE_LIMIT else ()
    if (one_too_many := next(iter(directives), None)) is not None:
        line = text.count("\n", 0, one_too_many.end()) + 1
        refuse(f"has more than {DIRECTIVE_LIMIT} directives (lines that begin with %); expected none", line=line)
    return _Reader().read(_as_yaml(text))


def _no_text_in(text: str) -> re.Match[str] | None:
    # Piece by piece: a search through the whole of a long text would let no other thread run meanwhile.
    pieces = range(0, len(text), _PIECE)
    return next((found for at in pieces if (found := _NOT_TEXT.search(text, at, at + _PIECE))), None)


def _as_yaml(text: str) -> str:
    """A text of JSON as every YAML parser reads it; any other as it is."""
    by_parts = "\t" in text or _HALF_ESCAPE.search(text) is not None
    if by_parts and text.lstrip().startswith("{"):
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return text
        # PyYAML refuses tabs between the tokens of JSON. Inside its strings they are not allowed, so all can go.
        # libyaml refuses a character that is written as two escapes, as JSON does past U+FFFF; backslashes of JSON are
        # in its strings.
        return _PAIR_ESCAPE.sub(_one_escape, text.replace("\t", " "))
    return text


def _one_escape(pair: re.Match[str]) -> str:
    before, high, low = pair.groups()
    code = 0x10000 + ((int(high, 16) - 0xD800) << 10) + (int(low, 16) - 0xDC00)
    return f"{before}\\U{code:08X}"


def _events(text: str, written: Written) -> Iterator[Any]:
    # Only PyYAML's own parser takes a character as two escapes. It is slow, so that it gets no long texts.
    in_halves = len(text) <= _SLOWLY_READ and _HALF_ESCAPE.search(text) is not None
    parser: Any = (yaml.SafeLoader if in_halves else _Loader)(text)
    line = 1
    try:
        while parser.check_event():
            event = parser.get_event()
            line = event.start_mark.line + 1
            yield event
    except yaml.YAMLError as error:
        mark: Any = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        # libyaml takes the end of a text for a line of its own.
        line = min(mark.line + 1, text.count("\n") + 1) if mark is not None else line
        said = str(getattr(error, "problem", None) or "it cannot be read")
        if "cannot start any token" in said and mark is not None and text[mark.index : mark.index + 1] == "\t":
            said = "found a tab character"
        plain = next((ours for theirs, ours in _SYNTAX if theirs in said), f"is not valid YAML: {said}")
        written.add(line, (), plain)
    except (ValueError, OverflowError):
        # PyYAML lets these through for numbers past all bounds in escapes and directives.
        written.add(line, (), "is not valid YAML: a number in it is out of range")
    else:
        return
    raise PackInvalid(written.problems)


@dataclass
class _Frame:
    """A mapping or list that is being filled."""

    place: Place
    container: dict[str, Any] | list[Any]
    kept: bool
    key: str | None = None
    key_line: int = 0
    key_kept: bool = True


class _Reader:
    def __init__(self) -> None:
        self._written = Written()
        self._open: list[_Frame] = []
        self._values = 0
        self._documents = 0

    def read(self, text: str) -> Written:
        for event in _events(text, self._written):
            self._take(event)
        if not self._documents or (self._written.value is None and not self._written.problems):
            refuse("is empty; expected a mapping that begins with pack_meta")
        return self._written

    def _take(self, event: Any) -> None:
        line = event.start_mark.line + 1
        match event:
            case yaml.DocumentStartEvent():
                self._documents += 1
                if self._documents > 1:
                    self._give_up(line, "a second document begins; expected one")
            case yaml.MappingStartEvent():
                self._enter({}, event, line)
            case yaml.SequenceStartEvent():
                self._enter([], event, line)
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self._open.pop()
            case yaml.ScalarEvent():
                self._scalar(event, line)
            case yaml.AliasEvent():
                if self._awaits_key():
                    self._give_up(line, "an alias (*name) as a key; expected a plain word")
                place, _ = self._place(line)
                self._written.add(line, place, "an alias (*name) is not allowed; expected the value written out")
                self._put(None, line)
            case _:
                pass

    def _awaits_key(self) -> bool:
        return bool(self._open) and isinstance(self._open[-1].container, dict) and self._open[-1].key is None

    def _place(self, line: int) -> tuple[Place, int]:
        """Where the next value goes, and the line by which a container there is known."""
        if not self._open:
            return (), line
        frame = self._open[-1]
        if isinstance(frame.container, dict):
            return (*frame.place, frame.key or ""), frame.key_line
        return (*frame.place, len(frame.container)), line

    def _enter(self, container: dict[str, Any] | list[Any], event: Any, line: int) -> None:
        if self._awaits_key():
            self._give_up(line, "a mapping or list as a key; expected a plain word")
        place, known_line = self._place(line)
        if len(self._open) >= DEPTH_LIMIT:
            self._give_up(line, f"is nested deeper than {DEPTH_LIMIT} levels")
        if event.tag is not None:
            self._written.add(line, place, f"a tag ({shown(event.tag)}) is not allowed; leave it out")
        kept = self._put(container, known_line)
        self._open.append(_Frame(place, container, kept))

    def _scalar(self, event: Any, line: int) -> None:
        if self._awaits_key():
            self._key(event, line)
            return
        place, _ = self._place(line)
        try:
            value = _value(event)
        except ValueError as error:
            self._written.add(line, place, str(error))
            value = None
        self._put(value, line)

    def _key(self, event: Any, line: int) -> None:
        frame = self._open[-1]
        frame.key, frame.key_line, frame.key_kept = str(event.value), line, False
        place = (*frame.place, frame.key)
        try:
            key = _value(event)
        except ValueError as error:
            self._written.add(line, place, f"as a key: {error}")
            return
        if not isinstance(key, str):
            self._written.add(line, place, f'expected a text as key; write it as "{shown(frame.key)}"')
        elif key in frame.container:
            # Not a fault of the place: what stands there first is checked as ever.
            twice = "stands twice in one mapping; expected once"
            self._written.problems.append(PackProblem(line, dotted(place), twice))
            self._written.give_up_at_the_limit(line)
        else:
            frame.key, frame.key_kept = key, True

    def _put(self, value: Any, line: int) -> bool:
        """Put the value where it belongs; whether it is part of the result."""
        self._values += 1
        if self._values > VALUE_LIMIT:
            self._give_up(line, f"has more than {VALUE_LIMIT} values")
        place, _ = self._place(line)
        if not self._open:
            self._written.value = value
            self._written.lines[place] = line
            return True
        frame = self._open[-1]
        kept = frame.kept
        if isinstance(frame.container, list):
            frame.container.append(value)
        else:
            kept = kept and frame.key_kept
            if kept:
                frame.container[frame.key or ""] = value
                self._written.key_lines[place] = frame.key_line
            frame.key = None
        if kept:
            self._written.lines[place] = line
        return kept

    def _give_up(self, line: int, message: str) -> NoReturn:
        place: Place = self._open[-1].place if self._open else ()
        self._written.add(line, place, message)
        raise PackInvalid(self._written.problems)


def _value(event: Any) -> str | int | float | bool | None:
    """What a scalar means; raises ValueError where it means nothing a pack can hold."""
    if event.tag is not None:
        raise ValueError(f"a tag ({shown(event.tag)}) is not allowed; put a text in quotes instead")
    text = cast("str", event.value)
    if event.implicit[0]:
        return _plain(text)
    return _joined(text)


def _plain(text: str) -> str | int | float | bool | None:
    if text in _NULL:
        return None
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    if _ENDLESS.fullmatch(text):
        raise ValueError(f"expected a finite number, got {text}")
    if _WHOLE.fullmatch(text):
        if len(text) > _DIGITS_LIMIT:
            raise ValueError(f"expected a number of at most {_DIGITS_LIMIT} digits")
        return int(text)
    if _DECIMAL.fullmatch(text):
        number = float(text)
        if number in (float("inf"), float("-inf")):
            raise ValueError("expected a finite number")
        return number
    return _joined(text)


def _joined(text: str) -> str:
    # JSON writes characters past U+FFFF as two escapes; what is left of a pair alone is no character.
    if any("\ud800" <= character <= "\udfff" for character in text):
        try:
            text = text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            raise ValueError("holds half of a surrogate pair, which no text may hold") from None
    return clean_text(text)
