"""What commands read: texts, JSON, times, files of JSON lines."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

from pydantic_core import from_json

from muniment.errors import InvalidInput, TooLarge
from muniment.model.fields import PAYLOAD_LIMIT, TEXT_LIMIT

# A line holds a text, a payload and their circumstances; escaped, each character may take six.
LINE_LIMIT = 2 * (PAYLOAD_LIMIT + TEXT_LIMIT) * 6


def read_text(argument: str | None, file: Path | None) -> str | None:
    """Return the text of the argument, of stdin for `-`, or of a file; raises `InvalidInput`."""
    if argument is not None and file is not None:
        raise InvalidInput("give a text or a file, not both", field="text")
    source = Path("-") if argument == "-" else file
    if source is None:
        return argument
    with open_input(source, "text") as stream:
        # The last line end is the file's, not the text's.
        found = stream.read(TEXT_LIMIT + 3).removesuffix(b"\n").removesuffix(b"\r")
    if len(found) > TEXT_LIMIT:
        raise TooLarge(f"is longer than {TEXT_LIMIT} bytes", field="text")
    try:
        return found.decode()
    except UnicodeDecodeError:
        raise InvalidInput("is not UTF-8", field="text") from None


def read_payload(given: str | None) -> Any:
    """Parse a payload of JSON, or the file that `@path` names; raises `InvalidInput`."""
    if given is None or not given.startswith("@"):
        return None if given is None else parse_json(given, "payload")
    with open_input(Path(given[1:]), "payload") as stream:
        found = stream.read(6 * PAYLOAD_LIMIT + 1)
    if len(found) > 6 * PAYLOAD_LIMIT:
        raise TooLarge(f"is longer than {PAYLOAD_LIMIT} bytes", field="payload")
    return parse_json(found, "payload")


def read_object(path: Path, field: str) -> dict[str, Any]:
    """Read one JSON object from a file, or from stdin for `-`; raises `InvalidInput`."""
    with open_input(path, field) as stream:
        found = stream.read(LINE_LIMIT + 1)
    if len(found) > LINE_LIMIT:
        raise TooLarge(f"is longer than {LINE_LIMIT} bytes", field=field)
    whole = parse_json(found, field)
    if not isinstance(whole, dict):
        raise InvalidInput("expected a JSON object", field=field)
    return cast("dict[str, Any]", whole)


def parse_value(text: str | None, as_json: str | None) -> Any:
    """Return a value given as text or as JSON; raises `InvalidInput`."""
    if text is not None and as_json is not None:
        raise InvalidInput("give it as a text or as JSON, not both", field="value")
    return text if as_json is None else parse_json(as_json, "value")


def parse_json(given: str | bytes, field: str | None) -> Any:
    """Parse one JSON document; raises `InvalidInput` with the place of the error."""
    try:
        return from_json(given, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidInput(f"is not JSON: {error}", field=field) from None


def parse_pairs(given: Sequence[str] | None, field: str) -> dict[str, str]:
    """Parse `name=value` arguments; raises `InvalidInput`."""
    found: dict[str, str] = {}
    for one in given or ():
        name, sign, value = one.partition("=")
        if not sign or not name or not value:
            raise InvalidInput(f"expected NAME=VALUE, such as region=de, got {one}", field=field)
        if found.setdefault(name, value) != value:
            raise InvalidInput(f"{name} is given two values", field=field)
    return found


def parse_time(given: str | None, field: str) -> datetime | None:
    """Parse a time in ISO 8601; raises `InvalidInput`. The fabric checks its time zone."""
    try:
        return None if given is None else datetime.fromisoformat(given)
    except ValueError:
        raise InvalidInput("expected a time in ISO 8601, such as 2027-01-31T12:00:00Z", field=field) from None


def parse_since(given: str | None, end: datetime | None = None) -> datetime | None:
    """Parse a time in ISO 8601, or how long before the end, which is by default now; raises `InvalidInput`."""
    from muniment.pack.durations import parse_duration

    if given is None:
        return None
    with suppress(ValueError, OverflowError):
        return (end or datetime.now(UTC)) - parse_duration(given)
    try:
        return datetime.fromisoformat(given)
    except ValueError:
        raise InvalidInput("expected how long ago, such as 30d, or a time in ISO 8601", field="since") from None


def parse_as_of(given: str | None) -> datetime | int | None:
    """Parse a sequence number or a time in ISO 8601; raises `InvalidInput`."""
    if given is not None and given.isascii() and given.isdecimal():
        return int(given)
    return parse_time(given, "as_of")


def open_input(path: Path, field: str) -> BinaryIO:
    """Open a file to read, stdin for `-`; raises `InvalidInput`."""
    if str(path) == "-":
        if sys.stdin is None:  # closed by our caller
            raise InvalidInput("there is nothing on stdin", field=field)
        return sys.stdin.buffer
    try:
        return path.open("rb")
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or "it is no path").lower()
        raise InvalidInput(f"cannot read {path}: {reason}", field=field) from None


def write_file(path: Path, text: str, field: str) -> None:
    """Write a text file; raises `InvalidInput`."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {(error.strerror or 'it failed').lower()}", field=field) from None


def file_size(stream: BinaryIO) -> int | None:
    """Return the length of a file; None if it has none, as a pipe."""
    try:
        return os.fstat(stream.fileno()).st_size or None
    except OSError:
        return None


def read_json_lines(stream: BinaryIO) -> Iterator[tuple[int, int, dict[str, Any] | InvalidInput]]:
    """Yield the number, the length and the object of each line, or the error of one that has none.

    Empty lines are counted and skipped.
    """
    number = 0
    while line := stream.readline(LINE_LIMIT + 1):
        number += 1
        if line.strip() or len(line) > LINE_LIMIT:
            found = _parse_line(line)
            yield number, len(line), found
        while len(line) > LINE_LIMIT and not line.endswith(b"\n"):
            line = stream.readline(LINE_LIMIT + 1)


def _parse_line(line: bytes) -> dict[str, Any] | InvalidInput:
    if len(line) > LINE_LIMIT:
        return TooLarge(f"is longer than {LINE_LIMIT} bytes")
    try:
        found = parse_json(line, None)
    except InvalidInput as error:
        return error
    if not isinstance(found, dict):
        return InvalidInput("expected a JSON object")
    return cast("dict[str, Any]", found)
