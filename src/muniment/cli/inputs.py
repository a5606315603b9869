"""What commands read: texts, JSON, and files of many lines."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from pydantic_core import from_json

from muniment.errors import InvalidInput, TooLarge
from muniment.model.fields import PAYLOAD_LIMIT, TEXT_LIMIT

# A line holds a text, a payload and their circumstances; escaped, each character may take six.
LINE_LIMIT = 2 * (PAYLOAD_LIMIT + TEXT_LIMIT) * 6


def text_of(argument: str | None, file: Path | None) -> str | None:
    """The text given, from stdin for `-`, or from a file; raises `InvalidInput`."""
    if argument is not None and file is not None:
        raise InvalidInput("give a text or a file, not both", field="text")
    source = Path("-") if argument == "-" else file
    if source is None:
        return argument
    with opened(source, "text") as stream:
        return _text(stream.read(TEXT_LIMIT + 3))


def _text(found: bytes) -> str:
    # The last line end is the file's, not the text's.
    found = found.removesuffix(b"\n").removesuffix(b"\r")
    if len(found) > TEXT_LIMIT:
        raise TooLarge(f"is longer than {TEXT_LIMIT} bytes", field="text")
    try:
        return found.decode()
    except UnicodeDecodeError:
        raise InvalidInput("is not UTF-8", field="text") from None


def payload_of(given: str | None) -> Any:
    """JSON as given, or from a file named `@path`; raises `InvalidInput`."""
    if given is None:
        return None
    if not given.startswith("@"):
        return parsed(given, "payload")
    with opened(Path(given[1:]), "payload") as stream:
        found = stream.read(6 * PAYLOAD_LIMIT + 1)
    if len(found) > 6 * PAYLOAD_LIMIT:
        raise TooLarge(f"is longer than {PAYLOAD_LIMIT} bytes", field="payload")
    return parsed(found, "payload")


def json_value(text: str | None, as_json: str | None) -> Any:
    """A value given as a text or as JSON; raises `InvalidInput`."""
    if text is not None and as_json is not None:
        raise InvalidInput("give it as a text or as JSON, not both", field="value")
    return text if as_json is None else parsed(as_json, "value")


def parsed(given: str | bytes, field: str | None) -> Any:
    """One JSON document; raises `InvalidInput` saying where it goes wrong."""
    try:
        return from_json(given, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidInput(f"is not JSON: {error}", field=field) from None


def opened(path: Path, field: str) -> BinaryIO:
    """A file to read, stdin for `-`; raises `InvalidInput`."""
    if str(path) == "-":
        if sys.stdin is None:  # closed by whoever started us
            raise InvalidInput("there is nothing on stdin", field=field)
        return sys.stdin.buffer
    try:
        return path.open("rb")
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or "it is no path").lower()
        raise InvalidInput(f"cannot read {path}: {reason}", field=field) from None


def size_of(stream: BinaryIO) -> int | None:
    """How long a file is, if it has an end."""
    try:
        return os.fstat(stream.fileno()).st_size or None
    except OSError:
        return None


def objects_in(stream: BinaryIO) -> Iterator[tuple[int, int, dict[str, Any] | InvalidInput]]:
    """The objects of a JSON lines file with the number and length of their lines; one that holds none as its error.

    Empty lines count but are passed over.
    """
    number = 0
    while line := stream.readline(LINE_LIMIT + 1):
        number += 1
        if len(line) > LINE_LIMIT:
            yield number, len(line), TooLarge(f"is longer than {LINE_LIMIT} bytes")
            return
        if not line.strip():
            continue
        try:
            found = parsed(line, None)
        except InvalidInput as error:
            yield number, len(line), error
            return
        if not isinstance(found, dict):
            yield number, len(line), InvalidInput("expected a JSON object with the fields of a capture or a proposal")
            return
        yield number, len(line), cast("dict[str, Any]", found)
