"""Spans: the part of a capture that a candidate came from, to highlight it."""

import re
from difflib import SequenceMatcher
from typing import Any

from pydantic_core import to_json

from muniment.model.candidate import Candidate

# A common run of at least so many words counts as the source.
WORDS_AT_LEAST = 3
_WORD = re.compile(r"\w+")
# Finding the longest run takes time in the product of both lengths.
_LIMIT = 400_000


def span_in_text(text: str, candidate: Candidate) -> tuple[int, int] | None:
    """Find a candidate in a capture's text: its text, its value, or the longest run of words that both share."""
    return _phrase(text, candidate.text) or _phrase(text, _plain(candidate.value)) or _longest_run(text, candidate.text)


def span_in_payload(shown: str, candidate: Candidate) -> tuple[int, int] | None:
    """Find the candidate's value in a payload as `pretty` shows it."""
    if candidate.value is None:
        return None
    wanted = pretty(candidate.value)
    if isinstance(candidate.value, dict | list):
        found = re.search(r"\s*".join(map(re.escape, wanted.split())), shown)
        return found.span() if found is not None else None
    found = re.search(rf"(?<![\w.]){re.escape(wanted)}(?![\w.])", shown)
    return found.span() if found is not None else None


def pretty(value: Any) -> str:
    """Indented JSON."""
    return to_json(value, indent=2, inf_nan_mode="constants").decode()


def _plain(value: Any) -> str:
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _phrase(text: str, wanted: str) -> tuple[int, int] | None:
    """Find a phrase as whole words, ignoring case and spacing."""
    words = wanted.split()
    if not words or len(words) * len(text) > 50 * _LIMIT:
        return None
    begin = r"\b" if words[0][0].isalnum() else ""
    end = r"\b" if words[-1][-1].isalnum() else ""
    found = re.search(begin + r"\s+".join(map(re.escape, words)) + end, text, re.IGNORECASE)
    return found.span() if found is not None else None


def _longest_run(text: str, wanted: str) -> tuple[int, int] | None:
    places = list(_WORD.finditer(text))
    there, here = [one.group().casefold() for one in places], [w.casefold() for w in _WORD.findall(wanted)]
    if len(there) * len(here) > _LIMIT:
        return None
    run = SequenceMatcher(None, there, here, autojunk=False).find_longest_match()
    if run.size < WORDS_AT_LEAST:
        return None
    return places[run.a].start(), places[run.a + run.size - 1].end()
