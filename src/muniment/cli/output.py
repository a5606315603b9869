"""What people and programs are shown: the only module that writes to stdout and stderr.

Stored text is hostile: it is never read as markup, and characters that move the cursor, hide text or turn its
direction are spelled out (`\\x1b`, `\\u202e`) wherever people look.
"""

import contextlib
import json
import os
import sys
import unicodedata
from collections.abc import Generator, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TextIO

from pydantic_core import to_jsonable_python
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Table
from rich.text import Text

# What is not a terminal takes lines as they are: whoever reads a file or a pipe wants no line broken in two.
_UNBROKEN = 100_000
_LIST_TEXT = 160
_INDENT = 4
# Joiners are part of how some scripts and emoji are written; variation selectors 1 to 16 choose a shape.
_HARMLESS_FORMAT = frozenset("\u200c\u200d")
_HIDDEN_MARKS = range(0xE0100, 0xE01F0)

Value = object
Facts = Sequence[tuple[str, Value]]


class OutputClosed(Exception):
    """Whoever read our output has gone (`| head`)."""


class OutputFailed(Exception):
    """The result could not be written."""


class Screen:
    """One stream, as wide and as colourful as what is at its other end, or at most `columns` wide."""

    def __init__(self, stream: TextIO | None = None, *, columns: int | None = None) -> None:
        if stream is None and sys.stdout is None:  # closed by our caller
            raise OutputFailed("stdout is closed")
        self._stream = stream or sys.stdout
        self._console = Console(file=self._stream, markup=False, highlight=False, emoji=False)
        self.is_terminal = self._console.is_terminal
        if not self.is_terminal and "COLUMNS" not in os.environ:
            self._console.width = _UNBROKEN
        if columns is not None:
            self._console.width = min(self._console.width, columns)

    @property
    def width(self) -> int:
        """Columns that a line may take."""
        return self._console.width

    def line(self, *parts: str | tuple[str, str], indent: int = 0) -> None:
        """A line of our own words and stored ones; a part may be `(text, style)`. Broken where it is too long."""
        text = Text()
        for part in parts:
            words, style = part if isinstance(part, tuple) else (part, "")
            text.append(visible(words), style)
        self._wrapped("", text, indent)

    def facts(self, facts: Facts, *, indent: int = _INDENT, column: int = 0) -> None:
        """Names and values, the values aligned at `column` or further; those that are None or empty are left out."""
        shown = [(name, _plain(value)) for name, value in facts if value not in (None, "", (), [], {})]
        column = max([column, *(len(name) + 2 for name, _ in shown)])
        for name, value in shown:
            self._wrapped(name, Text(visible(value, lines=True)), indent, column)

    def item(self, mark: str, text: str) -> None:
        """One text of several, of as many lines as it has, with its mark before it."""
        self._wrapped(mark, Text(visible(text, lines=True), "bold"), 0, _INDENT)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Value]]) -> None:
        """A table of short values."""
        cells = [[visible(_plain(value)) for value in row] for row in rows]
        if self.is_terminal:
            table = Table(*columns, box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
            for row in cells:
                table.add_row(*(Text(cell, overflow="fold") for cell in row))
            self._print(table)
            return
        widths = [max(len(row[place]) for row in [columns, *cells]) for place in range(len(columns))]
        for row in [columns, *cells]:
            padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            self.write("  ".join(padded).rstrip() + "\n")

    def _wrapped(self, name: str, text: Text, indent: int, column: int = 0) -> None:
        room = max(self.width - indent - column, 20)
        lead = Text(" " * indent).append(name.ljust(column), "dim")
        # A line of nothing is a line all the same.
        for line in text.wrap(self._console, room, overflow="fold") or [Text()]:
            whole = lead.append_text(line)
            whole.rstrip()
            self._print(whole)
            lead = Text(" " * (indent + column))

    def _print(self, what: Text | Table) -> None:
        with self._console.capture() as captured:
            self._console.print(what, soft_wrap=isinstance(what, Text))
        self.write(captured.get())

    def write(self, text: str) -> None:
        """These characters as they are; raises `OutputClosed` or `OutputFailed`."""
        try:
            self._stream.write(text)
            self._stream.flush()
        except BrokenPipeError:
            raise OutputClosed from None
        except OSError as error:
            raise OutputFailed((error.strerror or "it failed").lower()) from None


def visible(text: str, *, lines: bool = False) -> str:
    """The text with whatever a terminal would obey, or a reader would not see, spelled out.

    Line ends and tabs stay only with `lines`.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(char, lines) for char in text)


def _shown(char: str, lines: bool) -> str:
    if char in "\n\t":
        return char.replace("\t", "    ") if lines else " "
    category = unicodedata.category(char)
    harmless = category not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") or char in _HARMLESS_FORMAT
    if harmless and ord(char) not in _HIDDEN_MARKS:
        return char
    return char.encode("unicode_escape").decode("ascii")


def shortened(text: str, length: int = _LIST_TEXT) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(visible(text).split())
    return line if len(line) <= length else line[: length - 3].rstrip() + "..."


def moment(at: datetime) -> str:
    """A time as people are told it."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def due(at: datetime) -> str:
    """How long there is until then."""
    minutes = round((at - datetime.now(UTC)).total_seconds() / 60)
    return f"due in {_length(minutes)}" if minutes >= 0 else f"overdue by {_length(-minutes)}"


def age(at: datetime) -> str:
    """How long ago that was."""
    return f"{_length(max(0, round((datetime.now(UTC) - at).total_seconds() / 60)))} ago"


def _length(minutes: int) -> str:
    hours, rest = divmod(minutes, 60)
    return f"{hours} h" if hours else f"{rest} min"


def listed(values: Iterable[str]) -> str:
    """Several names in a row."""
    return ", ".join(values)


def document(value: object) -> None:
    """Write the one JSON document of a command to stdout, in ASCII, so that no terminal is led astray by it."""
    Screen().write(json.dumps(to_jsonable_python(value), indent=2) + "\n")


def note(message: str) -> None:
    """A message beside the result."""
    with contextlib.suppress(OutputClosed, OutputFailed):
        Screen(sys.stderr).line(message)


def failure(error: Mapping[str, object], *, as_json: bool) -> None:
    """An error to stderr, for people or for programs: `code`, `message`, and what else is known of it."""
    if as_json:
        text = json.dumps({"error": {"field": None, **to_jsonable_python(error)}}) + "\n"
    else:
        # The field says no more where the place is its value.
        names = ("place",) if error.get("field") == "proposal_id" and error.get("place") else ("place", "field")
        place = "".join(f"{error[name]}: " for name in names if error.get(name))
        problems: Any = error.get("problems")
        message = "the pack is refused" if problems else error["message"]
        text = visible(f"error: {place}{message} ({error['code']})") + "\n"
        for problem in problems or ():
            where = f"line {problem['line']}: " if problem["line"] is not None else ""
            path = f"{problem['path']}: " if problem["path"] else ""
            text += visible(f"  {where}{path}{problem['message']}") + "\n"
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


class Steps:
    """A line that says how far the work is."""

    def __init__(self, bar: Progress | None, what: str, total: int | None) -> None:
        self._bar = bar
        self._what = what
        self._task = bar.add_task(what, total=total) if bar is not None else None

    def at(self, words: str, done: int | None = None) -> None:
        """Say how far it is."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=f"{self._what}: {words}", completed=done)


@contextlib.contextmanager
def progress(what: str, total: int | None = None, *, as_json: bool = False) -> Generator[Steps]:
    """Progress of long work on stderr, where a person watches it; a bar where the whole is known."""
    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    if as_json or not sys.stderr.isatty():
        yield Steps(None, what, total)
        return
    measure = BarColumn() if total is not None else SpinnerColumn()
    columns = (TextColumn("{task.description}", markup=False), measure)
    with Progress(*columns, console=console, transient=True) as bar:
        yield Steps(bar, what, total)


def _plain(value: Any) -> str:
    match value:
        case datetime():
            return moment(value)
        case float():
            return f"{value:.2f}"
        case str():
            return value
        case _:
            return json.dumps(to_jsonable_python(value), ensure_ascii=False)
