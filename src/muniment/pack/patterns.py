"""Patterns of a pack: RE2, so that no pattern takes more than linear time, whoever wrote it."""

from functools import lru_cache
from itertools import product
from typing import Any, cast

import re2

_re2 = cast("Any", re2)
# What may stand beside a place; a pattern that matches nothing there would match nothing everywhere.
_NEIGHBOURS = ("", "a", " ", "\n")


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """The pattern, ready to search; raises `ValueError` saying why it cannot be used."""
    options = _re2.Options()
    options.log_errors = False
    try:
        found = _re2.compile(pattern, options)
    except _re2.error as error:
        raise ValueError(f"expected a regular expression in RE2 syntax: {_told(error)}") from None
    for left, right in product(_NEIGHBOURS, repeat=2):
        if found.fullmatch(left + right, len(left), len(left)):
            raise ValueError("matches the empty text; expected a pattern that matches at least one character")
    return found


def usable(pattern: str) -> str:
    """The pattern, unchanged; raises `ValueError` where it does not compile or matches the empty text."""
    compiled(pattern)
    return pattern


def _told(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
