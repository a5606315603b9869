"""What the command line writes: the only module that writes to stdout and stderr.

Stored text is hostile: it is never read as markup, and characters that move the cursor, hide text or change its
direction are written as escapes (`\\x1b`, `\\u202e`) wherever people read.
"""

import contextlib
import json
import os
import sys
import unicodedata
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TextIO, cast

from pydantic_core import to_jsonable_python

if TYPE_CHECKING:
    from rich.progress import Progress as ProgressBar
    from rich.table import Table
    from rich.text import Text

# A file or a pipe gets its lines unbroken.
_UNBROKEN = 100_000
_SHORT_TEXT = 160
_INDENT = 4
# Joiners are part of how some scripts and emoji are written; variation selectors 1 to 16 choose a shape.
_HARMLESS_FORMAT = frozenset("\u200c\u200d")
_HIDDEN_MARKS = range(0xE0100, 0xE01F0)

Fields = Sequence[tuple[str, object]]


class OutputClosed(Exception):
    """The reader of the output has gone (`| head`)."""


class OutputFailed(Exception):
    """The result could not be written."""


class Screen:
    """A stream for people: coloured and wrapped on a terminal, plain elsewhere; at most `columns` wide."""

    def __init__(self, stream: TextIO | None = None, *, columns: int | None = None) -> None:
        from rich.console import Console

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
        """Columns of a line."""
        return self._console.width

    def line(self, *parts: str | tuple[str, str], indent: int = 0) -> None:
        """Write one line, wrapped where it is too long; a part may be `(text, style)`."""
        from rich.text import Text

        text = Text()
        for part in parts:
            words, style = part if isinstance(part, tuple) else (part, "")
            text.append(escape(words), style)
        self._wrap("", text, indent)

    def heading(self, id_: str, state: str = "", style: str = "bold", rest: str = "") -> None:
        """Write the first line of one record: its id, its state in colour, and the rest of the line."""
        self.line((id_, "bold cyan"), "  " if state else "", (state, style), f"  {rest}" if rest else "")

    def fields(self, fields: Fields, *, indent: int = _INDENT, column: int = 0) -> None:
        """Write names and values, aligned at `column` or further; values that are None or empty are left out.

        The value of `token` is never broken, so that it can be copied.
        """
        from rich.text import Text

        shown = [(name, _plain(value)) for name, value in fields if value not in (None, "", (), [], {})]
        column = max([column, *(len(name) + 2 for name, _ in shown)])
        for name, value in shown:
            self._wrap(name, Text(escape(value, lines=True)), indent, column, fold=name != "token")

    def item(self, mark: str, text: str) -> None:
        """Write a text of one or more lines with a mark before it."""
        from rich.text import Text

        self._wrap(mark, Text(escape(text, lines=True), "bold"), 0, _INDENT)

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """Write a table of short values; None is an empty cell."""
        from rich import box
        from rich.table import Table
        from rich.text import Text

        cells = [["" if value is None else escape(_plain(value)) for value in row] for row in rows]
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

    def records(self, columns: str, found: Iterable[object]) -> None:
        """Write a table of these attributes of each record; an attribute's name without `_` is its heading."""
        names = columns.split()
        rows = [[getattr(one, name) for name in names] for one in found]
        if rows:
            self.table([name.replace("_", " ") for name in names], rows)

    def _wrap(self, name: str, text: "Text", indent: int, column: int = 0, *, fold: bool = True) -> None:
        from rich.text import Text

        room = max(self.width - indent - column, 20)
        lead = Text(" " * indent).append(name.ljust(column), "dim")
        # An empty text is an empty line.
        for line in text.wrap(self._console, room, overflow="fold" if fold else "ignore") or [Text()]:
            whole = lead.append_text(line)
            whole.rstrip()
            self._print(whole)
            lead = Text(" " * (indent + column))

    def _print(self, what: "Text | Table") -> None:
        from rich.text import Text

        with self._console.capture() as captured:
            self._console.print(what, soft_wrap=isinstance(what, Text))
        self.write(captured.get())

    def write(self, text: str) -> None:
        """Write these characters unchanged; raises `OutputClosed` or `OutputFailed`."""
        _write(self._stream, text)


# Draws a result for people.
Draw = Callable[[Screen, Any], None]


def each(draw: Draw) -> Draw:
    """Return what draws every record of a list."""

    def draw_all(screen: Screen, found: Iterable[object]) -> None:
        for one in found:
            draw(screen, one)

    return draw_all


def draw_document(screen: Screen, document: object) -> None:
    """Write a document that is exchanged as it is: JSON, for people too."""
    screen.write(json.dumps(to_jsonable_python(document), indent=2) + "\n")


def table(columns: str) -> Draw:
    """Return what draws a record, or a list of them, as a table of these attributes."""

    def draw(screen: Screen, found: object) -> None:
        screen.records(columns, cast("Sequence[object]", found) if isinstance(found, list | tuple) else [found])

    return draw


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        raise OutputClosed from None
    except OSError as error:
        raise OutputFailed((error.strerror or "it failed").lower()) from None


def escape(text: str, *, lines: bool = False) -> str:
    """Replace characters that a terminal would obey, or a reader would not see, by their escapes.

    Line ends and tabs stay only with `lines`.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_escape_char(char, lines) for char in text)


def _escape_char(char: str, lines: bool) -> str:
    if char in "\n\t":
        return char.replace("\t", "    ") if lines else " "
    category = unicodedata.category(char)
    harmless = category not in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") or char in _HARMLESS_FORMAT
    if harmless and ord(char) not in _HIDDEN_MARKS:
        return char
    return char.encode("unicode_escape").decode("ascii")


def shorten(text: str, length: int = _SHORT_TEXT) -> str:
    """Cut a text to one line of at most `length` characters."""
    line = " ".join(escape(text).split())
    return line if len(line) <= length else line[: length - 3].rstrip() + "..."


def format_time(at: datetime) -> str:
    """Format a time in UTC, to the second."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def format_due(at: datetime) -> str:
    """Format how long there is until a time, or how long ago it was due."""
    minutes = round((at - datetime.now(UTC)).total_seconds() / 60)
    return f"due in {_length(minutes)}" if minutes >= 0 else f"overdue by {_length(-minutes)}"


def format_age(at: datetime) -> str:
    """Format how long ago a time was."""
    return f"{_length(max(0, round((datetime.now(UTC) - at).total_seconds() / 60)))} ago"


def _length(minutes: int) -> str:
    hours, rest = divmod(minutes, 60)
    return f"{hours} h" if hours else f"{rest} min"


def by_and_at(who: str | None, at: datetime | None) -> str | None:
    """Format who did something and when; None if nobody has."""
    return None if at is None else f"{f'by {who} ' if who else ''}at {format_time(at)}"


def fields_of(record: object, names: str) -> Fields:
    """Return the fields of a record that are its attributes: `label=attribute`, or an attribute that is its own label.

    Lists of names are joined; a label has spaces for `_`.
    """
    found: list[tuple[str, object]] = []
    for label, _, attribute in (one.partition("=") for one in names.split()):
        value: Any = getattr(record, attribute or label)
        if isinstance(value, list | tuple | set | frozenset):
            value = joined(map(str, cast("Iterable[object]", value)))
        found.append((label.replace("_", " "), value))
    return found


def draw_figures(screen: Screen, figures: Mapping[str, Any]) -> None:
    """Draw a JSON document of figures: plain ones as fields, nested ones as tables of the same columns."""
    plain = [(name, format_figure(one)) for name, one in figures.items() if not isinstance(one, dict | list)]
    screen.fields(plain, indent=0)
    tables: dict[tuple[str, ...], list[tuple[object, ...]]] = {}
    for name, columns in _figure_rows("", figures):
        if name:
            tables.setdefault(("", *columns), []).append((name, *map(format_figure, columns.values())))
    for name, records in _figure_lists("", figures):
        rows = [_flatten(one) for one in records]
        tables[(name, *list(rows[0])[1:])] = [tuple(map(format_figure, one.values())) for one in rows]
    for columns, rows in tables.items():
        screen.line("")
        screen.table(columns, rows)


def _figure_rows(path: str, figures: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the plain figures of a document by their path: its own, and those of the mappings in it."""
    if own := {name: value for name, value in figures.items() if not isinstance(value, dict | list)}:
        yield path, own
    for name, value in figures.items():
        if isinstance(value, dict):
            yield from _figure_rows(f"{path} {name}".strip(), cast("dict[str, Any]", value))


def _flatten(record: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{path} {name}".strip(): value for path, own in _figure_rows("", record) for name, value in own.items()}


def format_figure(value: Any) -> Any:
    """Format a number with at most four decimals; anything else stays as it is."""
    if not isinstance(value, float):
        return value
    return f"{value:.1e}" if 0 < abs(value) < 0.001 else f"{value:.4f}".rstrip("0").rstrip(".")


def _figure_lists(path: str, figures: Mapping[str, Any]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the lists of records in a document by their path."""
    for name, value in figures.items():
        place = f"{path} {name}".strip()
        if isinstance(value, dict):
            yield from _figure_lists(place, cast("dict[str, Any]", value))
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            yield place, cast("list[dict[str, Any]]", value)


def joined(values: Iterable[str]) -> str:
    """Join names with commas."""
    return ", ".join(values)


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Format a number with its noun, in the plural unless it is one; `plural` for one that does not end in `s`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def write_json(value: object) -> None:
    """Write the JSON document of a command to stdout, in ASCII, so that it holds nothing that a terminal obeys."""
    if sys.stdout is None:  # closed by our caller
        raise OutputFailed("stdout is closed")
    _write(sys.stdout, json.dumps(to_jsonable_python(value), indent=2) + "\n")


def write_note(message: str, *, wrap: bool = True) -> None:
    """Write a message to stderr, beside the result; without `wrap` on one line, so that it can be copied."""
    with contextlib.suppress(OutputClosed, OutputFailed):
        screen = Screen(sys.stderr)
        if wrap:
            screen.line(message)
        else:
            screen.write(escape(message) + "\n")


def write_error(error: Mapping[str, object], *, as_json: bool) -> None:
    """Write an error to stderr, for people or as JSON: `code`, `message`, and its other keys."""
    if as_json:
        text = json.dumps({"error": {"field": None, **to_jsonable_python(error)}}) + "\n"
    else:
        # A place that is a proposal's id says all that the field proposal_id would.
        names = ("place",) if error.get("field") == "proposal_id" and error.get("place") else ("place", "field")
        place = "".join(f"{error[name]}: " for name in names if error.get(name))
        problems: Any = error.get("problems")
        message = "the pack is refused" if problems else error["message"]
        text = escape(f"error: {place}{message} ({error['code']})") + "\n"
        for problem in problems or ():
            where = f"line {problem['line']}: " if problem["line"] is not None else ""
            path = f"{problem['path']}: " if problem["path"] else ""
            text += escape(f"  {where}{path}{problem['message']}") + "\n"
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


class Progress:
    """The progress of long work, shown on stderr."""

    def __init__(self, bar: "ProgressBar | None", what: str, total: int | None) -> None:
        self._bar = bar
        self._what = what
        self._task = bar.add_task(what, total=total) if bar is not None else None

    def update(self, words: str, done: int | None = None) -> None:
        """Show how far the work is."""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, description=f"{self._what}: {words}", completed=done)


@contextlib.contextmanager
def progress(what: str, total: int | None = None, *, as_json: bool = False) -> Generator[Progress]:
    """Show progress while stderr is a terminal; a bar if the total is known, else a spinner."""
    if as_json or not sys.stderr.isatty():
        yield Progress(None, what, total)
        return
    from rich import progress as bars
    from rich.console import Console

    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    measure = bars.BarColumn() if total is not None else bars.SpinnerColumn()
    columns = (bars.TextColumn("{task.description}", markup=False), measure)
    with bars.Progress(*columns, console=console, transient=True) as bar:
        yield Progress(bar, what, total)


def _plain(value: Any) -> str:
    match value:
        case datetime():
            return format_time(value)
        case float():
            return f"{value:.2f}"
        case str():
            return value
        case _:
            return json.dumps(to_jsonable_python(value), ensure_ascii=False)
