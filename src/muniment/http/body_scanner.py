"""Scans bodies as they arrive, before they are parsed (ISO-6): how many values or fields, how deep, how long.

A scan reads each chunk once, in well under a millisecond, and raises at the first one that goes past a limit; the rest
of that body is never read.
"""

import re
from typing import Protocol

from muniment.errors import InvalidInput, TooLarge

# Bytes outside of strings: brackets, numbers, spaces.
OUTSIDE_LIMIT = 4 * 1024 * 1024
# Digits of one number, for which a parser may take quadratic time.
DIGITS_LIMIT = 1000
_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_STRING_REST = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % DIGITS_LIMIT)
_BRACKETS = b"[]{}"
_NOT_BRACKETS = bytes(code for code in range(256) if code not in _BRACKETS)
_OPENING = b"[{"


class Scan(Protocol):
    """The check of one body."""

    def feed(self, chunk: bytes) -> None:
        """Check the next chunk; raises `TooLarge` or `InvalidInput`."""
        ...


class JsonScan:
    """Limits the values of a JSON text, their nesting, and the length of its strings.

    It leaves the syntax to the parser: of a text that is not JSON it may count wrongly.
    """

    def __init__(self, *, values: int, depth: int, string: int) -> None:
        self._values_limit = values
        self._string_limit = string
        self._depth_limit = depth
        self._values = 0
        self._outside = 0
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._string = 0
        self._tail = b""

    def feed(self, chunk: bytes) -> None:
        """Check the next chunk; raises `TooLarge` for too many values, `InvalidInput` for too deep a nesting."""
        outside = self._without_strings(chunk)
        if not outside:
            return
        self._outside += len(outside)
        if self._outside > OUTSIDE_LIMIT:
            raise TooLarge(f"holds more than {OUTSIDE_LIMIT} bytes outside of its texts", field="body")
        # The first value of a list or object follows a bracket, each other one a comma.
        self._values += outside.count(b",") + outside.count(b"{") + outside.count(b"[")
        if self._values > self._values_limit:
            raise TooLarge(f"holds more than {self._values_limit} values; send it in parts", field="body")
        for bracket in outside.translate(None, _NOT_BRACKETS):
            self._depth += 1 if bracket in _OPENING else -1
            if self._depth > self._depth_limit:
                raise InvalidInput(f"is nested deeper than {self._depth_limit} levels", field="body")
            if self._depth < 0:
                raise InvalidInput("is not JSON", field="body")
        joined = self._tail + outside
        if _LONG_NUMBER.search(joined):
            raise InvalidInput(f"holds a number of more than {DIGITS_LIMIT} digits", field="body")
        self._tail = joined[-DIGITS_LIMIT:]

    def _without_strings(self, chunk: bytes) -> bytes:
        begin = 0
        if self._in_string:
            # If the last chunk ended with a backslash, the first byte of this one is escaped.
            begin = 1 if self._escaped else 0
            found = _STRING_REST.match(chunk, begin)
            self._string += len(chunk) if found is None else found.end()
            if self._string > self._string_limit:
                raise TooLarge(f"holds a text of more than {self._string_limit} bytes", field="body")
            if found is None:
                self._escaped = _ends_escaped(chunk[begin:])
                return b""
            begin = found.end()
            self._in_string = self._escaped = False
        outside, quote, unfinished = _STRINGS.sub(b"", chunk[begin:]).partition(b'"')
        if quote:
            self._in_string, self._escaped = True, _ends_escaped(unfinished)
            self._string = len(unfinished)
        return outside


def _ends_escaped(text: bytes) -> bool:
    return (len(text) - len(text.rstrip(b"\\"))) % 2 == 1


class FormScan:
    """Limits the fields of a URL-encoded form."""

    def __init__(self, *, fields: int) -> None:
        self._fields_limit = fields
        self._fields = 0

    def feed(self, chunk: bytes) -> None:
        """Check the next chunk; raises `TooLarge`."""
        self._fields += chunk.count(b"&") + chunk.count(b";")
        if self._fields > self._fields_limit:
            raise TooLarge(f"holds more than {self._fields_limit} fields", field="body")
