"""Regular expressions of a pack: RE2, so that none takes more than linear time, whoever wrote it."""

from functools import lru_cache
from itertools import product
from typing import Any, cast

import re2

_re2 = cast("Any", re2)
# Characters around a position; a pattern that matches the empty text there would match it everywhere.
_NEIGHBOURS = ("", "a", " ", "\n")


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """Compile the pattern; raises `ValueError` saying why it cannot be used."""
    options = _re2.Options()
    options.log_errors = False
    try:
        found = _re2.compile(pattern, options)
    except _re2.error as error:
        raise ValueError(f"expected a regular expression in RE2 syntax: {_reason(error)}") from None
    for left, right in product(_NEIGHBOURS, repeat=2):
        if found.fullmatch(left + right, len(left), len(left)):
            raise ValueError("matches the empty text; expected a pattern that matches at least one character")
    return found


def check_pattern(pattern: str) -> str:
    """Return the pattern; raises `ValueError` if it does not compile or matches the empty text."""
    compiled(pattern)
    return pattern


def _reason(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
