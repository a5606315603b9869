"""Finds bank accounts (IBAN): by the length in the country and the check digits."""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

from stdnum import iban, numdb

from muniment.language.redaction.normalised import Span

_START = re.compile(r"(?<![0-9A-Za-z])[A-Za-z]{2}[0-9]{2}(?=[ ./-]{0,2}[0-9A-Za-z])")
_REST = re.compile(r"[ ./-]{0,2}([0-9A-Za-z])")


@lru_cache(maxsize=1024)
def _length(country: str) -> int | None:
    """Return the length of the accounts of a country; None where it has none."""
    form = cast("dict[str, Any]", numdb.get("iban").info(country)[0][1]).get("bban")
    return 4 + sum(int(size) for size in re.findall(r"(\d+)!?[a-z]", str(form))) if form else None


def find_ibans(text: str) -> Iterator[Span]:
    """Return accounts whose check digits are right, in one piece or in groups, in either case."""
    done = 0
    for start in _START.finditer(text):
        if start.start() < done or (length := _length(start.group()[:2].upper())) is None:
            continue
        number, end = start.group(), start.end()
        while len(number) < length and (step := _REST.match(text, end)):
            number, end = number + step.group(1), step.end()
        whole_word = end == len(text) or not (text[end].isascii() and text[end].isalnum())
        if len(number) == length and whole_word and iban.is_valid(number.upper(), check_country=False):
            done = end
            yield start.start(), end
