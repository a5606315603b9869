"""Spans: the part of a capture that a candidate came from, to highlight it."""

import re
from difflib import SequenceMatcher
from itertools import islice
from typing import Any

from pydantic_core import to_json

from muniment.model.candidate import Candidate

# A common run of at least so many words counts as the source.
WORDS_AT_LEAST = 3
_WORD = re.compile(r"\w+")
# Values that are equal and looked at in one payload, and characters of a name.
_MOST_PLACES, _LONGEST_NAME = 1_000, 200
_NAME_BEFORE = re.compile(r'"([^"\\]*)":\s*\Z')
_NAME_WORD = re.compile(r"[A-Z]*[^\W_A-Z]+|[A-Z]+")
# Finding the longest run takes time in the product of both lengths.
_LIMIT = 400_000


def span_in_text(text: str, candidate: Candidate) -> tuple[int, int] | None:
    """Find a candidate in a capture's text: its text, its value, or the longest run of words that both share."""
    return _phrase(text, candidate.text) or _phrase(text, _plain(candidate.value)) or _longest_run(text, candidate.text)


def span_in_payload(shown: str, candidate: Candidate) -> tuple[int, int] | None:
    """Find the candidate's value in a payload as `pretty` shows it.

    Where it is there several times, it is the one whose name has most in common with the predicate; nothing if no name
    decides.
    """
    if candidate.value is None:
        return None
    wanted = pretty(candidate.value)
    if isinstance(candidate.value, dict | list):
        found = re.search(r"\s*".join(map(re.escape, wanted.split())), shown)
        return found.span() if found is not None else None
    places = [
        one.span() for one in islice(re.finditer(rf"(?<![\w.]){re.escape(wanted)}(?![\w.])", shown), _MOST_PLACES)
    ]
    if len(places) < 2:
        return places[0] if places else None
    # What is submitted as a fact names its value so.
    predicate = _words_of(candidate.predicate or "") | {"value"}
    shared = [len(predicate & _words_of(_name_before(shown, begin))) for begin, _ in places]
    best = max(shared)
    return places[shared.index(best)] if best and shared.count(best) == 1 else None


def _name_before(shown: str, begin: int) -> str:
    """Return the name of a value that begins there; empty in a list."""
    found = _NAME_BEFORE.search(shown, max(0, begin - _LONGEST_NAME), begin)
    return found[1] if found is not None else ""


def _words_of(name: str) -> set[str]:
    return {word.casefold() for word in _NAME_WORD.findall(name)}


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
