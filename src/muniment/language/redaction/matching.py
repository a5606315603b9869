"""Searching a text with a pack's pattern, in time that grows with the text alone."""

import re
from collections.abc import Iterator
from itertools import islice
from typing import Any, cast

from muniment.language.redaction.sight import NormalisedText, Span

# Each search is linear, but a pattern may look to the end of the text before every match. The first matches may;
# after so many, each looks only so far.
_FREE, _REACH = 64, 2048
_HALF = re.compile("[\ud800-\udfff]")


def find_pattern(pattern: Any, text: str, sight: NormalisedText) -> Iterator[Span]:
    """Where the pattern matches the text as it is, and as it reads with cheap disguises undone."""
    yield from _find(pattern, text)
    if sight.text != text:
        yield from (sight.span(*found) for found in _find(pattern, sight.text))


def _find(pattern: Any, text: str) -> Iterator[Span]:
    if not text.isascii():
        text = _HALF.sub("\ufffd", text)
    place = 0
    first = [_span(found) for found in islice(cast("Iterator[Any]", pattern.finditer(text)), _FREE)]
    for start, place in first:
        if start < place:
            yield start, place
    while len(first) == _FREE and place < len(text):
        # One character before the window is seen, so that the pattern knows whether a word begins there.
        low = max(0, place - 1)
        window = text[low : place + 2 * _REACH]
        last = place + 2 * _REACH >= len(text)
        limit = len(window) if last else place - low + _REACH
        after = place + _REACH
        for found in pattern.finditer(window, place - low):
            start, end = _span(found)
            if start >= limit:
                break
            after = max(after, low + end)
            if start < end:
                yield low + start, low + end
        if last:
            return
        place = after


def _span(found: Any) -> Span:
    return found.span()
