"""Words: what a text is found by. Letters folded, English endings cut off, words that say nothing left out."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import Stemmer

from muniment.language.instructions import as_seen

# Runs of letters, their marks and digits; of scripts written without spaces every pair of signs is a word.
_SIGNS = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_MARKS = "".join(chr(n) for n in range(0x300, 0x3040) if unicodedata.category(chr(n)).startswith("M"))
_WORD = re.compile(rf"[{_SIGNS}]+|(?:(?![{_SIGNS}])[^\W_]|[{_MARKS}])+")
_UNSPACED = re.compile(rf"[{_SIGNS}]")
_APOSTROPHES = str.maketrans("", "", "'\u2019\u02bc")
# What a language model or a person asks with, and what holds a sentence together.
_SAYS_NOTHING = frozenset(
    """
    a an the and or but if then of to in on at by for with about into from up down out over under is are was were be
    been being am do does did doing have has had having i you he she it we they me him her us them my your his its our
    their this that these those what which who whom whose when where why how not no so than too very can will just
    should would could s t d ll m re ve
    """.split()  # noqa: SIM905  a list of them would take a page
)
_MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
MOST_QUERY_WORDS = 64
_LONGEST = 64
_MOST_TIMES = 255


@dataclass(frozen=True)
class Word:
    """A word as it was written, and the term it is found by."""

    written: str
    term: str


def words_of(text: str) -> list[Word]:
    """The words of a text in their order, but for those that say nothing."""
    found: list[Word] = []
    stem = _stemmer()
    for written in _WORD.findall(as_seen(text).translate(_APOSTROPHES)):
        folded = written.casefold()
        if folded in _SAYS_NOTHING:
            continue
        if _UNSPACED.search(folded):
            found += [Word(pair, pair) for pair in _pairs(folded)]
        else:
            found.append(Word(written, stem(folded[:_LONGEST])))
    return found


def query_words(query: str) -> list[Word]:
    """The words of a query, each term once."""
    by_term: dict[str, Word] = {}
    for word in words_of(query):
        by_term.setdefault(word.term, word)
    return list(by_term.values())[:MOST_QUERY_WORDS]


@dataclass(frozen=True)
class Index:
    """What a memory is found by: how often it says each term, and how long it is."""

    terms: dict[str, int]
    words: int


def index_of(text: str, observed_at: datetime) -> Index:
    """The terms of a text, and of the day that it is about: "in May" finds what was seen in May."""
    counted = Counter(word.term for word in words_of(text))
    said = min(sum(counted.values()), 2**15 - 1)
    for word in words_of(f"{observed_at.day} {_MONTHS[observed_at.month - 1]} {observed_at.year}"):
        counted[word.term] += 1
    terms = {term: min(times, _MOST_TIMES) for term, times in counted.items()}
    return Index(terms, max(said, *terms.values()))


def _stemmer() -> Callable[[str], str]:
    # A stemmer holds a buffer, so that no two threads may share one; making one takes two microseconds.
    made: Any = cast("Any", Stemmer).Stemmer("english", 0)  # The package has no types.
    return made.stemWord


def _pairs(signs: str) -> list[str]:
    return [signs[n : n + 2] for n in range(len(signs) - 1)] if len(signs) > 1 else [signs]
