"""Splits a text into index terms: letters folded, English words stemmed, stop words left out."""

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, cast

import Stemmer

from muniment.language.data_files import word_set
from muniment.language.instructions import visible_text
from muniment.language.known_words import kept_if_known

# Runs of letters, marks and digits; in scripts without spaces every pair of characters is a word.
_SIGNS = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_MARKS = "".join(chr(n) for n in range(0x300, 0x3040) if unicodedata.category(chr(n)).startswith("M"))
_WORD = re.compile(rf"[{_SIGNS}]+|(?:(?![{_SIGNS}])[^\W_]|[{_MARKS}])+")
_UNSPACED = re.compile(rf"[{_SIGNS}]")
_APOSTROPHES = str.maketrans("", "", "'\u2019\u02bc")
_STOP_WORDS = word_set("""
    a an the and or but if then of to in on at by for with about into from up down out over under is are was were be
    been being am do does did doing have has had having i you he she it we they me him her us them my your his its our
    their this that these those what which who whom whose when where why how not no so than too very can will just
    should would could s t d ll m re ve
""")
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
MOST_QUERY_WORDS = 64
_LONGEST = 64
_MOST_OCCURRENCES = 255


class Word(NamedTuple):
    """A word as it was written, and the term that it is indexed by."""

    written: str
    term: str


def words_of(text: str) -> list[Word]:
    """Return the words of a text in order, without stop words."""
    found: list[Word] = []
    for written in _split(text):
        if (term := _term(written)) is not None:
            found.append(Word(written, term))
        elif _UNSPACED.search(written):
            found += [Word(pair, pair) for pair in _pairs(written.casefold())]
    return found


def terms_of(text: str) -> list[str]:
    """Return the terms of a text in order, each as often as it occurs."""
    written = _split(text)
    terms = list(map(_term, written))
    if None in terms and _UNSPACED.search(" ".join(written)):
        return [term for _, term in words_of(text)]
    return [term for term in terms if term is not None]


def _split(text: str) -> list[str]:
    return _WORD.findall(visible_text(text).translate(_APOSTROPHES))


@kept_if_known
def _term(written: str) -> str | None:
    """Return the term of a word; None for a stop word, and for one that is read as pairs of characters."""
    folded = written.casefold()
    if folded in _STOP_WORDS or _UNSPACED.search(folded):
        return None
    # Made for each word: it has a buffer that threads must not share. The package has no types.
    stemmer: Any = cast("Any", Stemmer).Stemmer("english", 0)
    return stemmer.stemWord(folded[:_LONGEST])


def query_words(query: str) -> list[Word]:
    """Return the words of a query, each term once."""
    by_term: dict[str, Word] = {}
    for word in words_of(query):
        by_term.setdefault(word.term, word)
    return list(by_term.values())[:MOST_QUERY_WORDS]


@dataclass(frozen=True)
class Index:
    """The index entry of a memory: how often it has each term (negative: how often beside it), and how many words."""

    terms: dict[str, int]
    words: int


def index_of(text: str, observed_at: datetime, speaker: str = "", context: str = "") -> Index:
    """Count the terms of a text and of the date it was observed, so that "in May" finds what was seen in May.

    The name of who said it counts like its words. A term that only its `context` has, the other sentences of its
    message, counts half: it stands with a negative number, minus how often it occurs there (CAN-11).
    """
    counted = Counter(terms_of(text))
    words = min(sum(counted.values()), 2**15 - 1)
    counted.update(_date_terms(observed_at.day, observed_at.month, observed_at.year))
    counted.update(terms_of(speaker))
    terms = {term: min(times, _MOST_OCCURRENCES) for term, times in counted.items()}
    beside = Counter(term for term in terms_of(context) if term not in terms) if context else Counter[str]()
    return Index(
        {**terms, **{term: -min(times, _MOST_OCCURRENCES) for term, times in beside.items()}},
        max(words, *terms.values()),
    )


@lru_cache(maxsize=1024)
def _date_terms(day: int, month: int, year: int) -> tuple[str, ...]:
    return tuple(terms_of(f"{day} {_MONTHS[month - 1]} {year}"))


def _pairs(signs: str) -> list[str]:
    return [signs[n : n + 2] for n in range(len(signs) - 1)] if len(signs) > 1 else [signs]
