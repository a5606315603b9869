"""A first look at two texts: whether they share enough words for a full reading to find more than a difference."""

import re
from functools import lru_cache

from muniment.language.assertion.lexicon import function_words
from muniment.language.assertion.lexicon.numbers import CARDINALS, MONTHS, UNITS
from muniment.language.assertion.stemming import stem
from muniment.language.assertion.vocabulary import key

_WORD = re.compile(r"\w+")
_EMPTY = frozenset((
    *function_words.DROPPED, *function_words.PREPOSITIONS, *function_words.PRONOUNS, *function_words.NEGATORS,
    *function_words.FUTURE, *function_words.QUESTION_WORDS, *CARDINALS, *UNITS, *MONTHS,
    *["may", "might", "could", "would", "should", "can", "must", "if", "s", "t", "d", "m", "re", "ve", "ll"],
))  # fmt: skip
# From so many words on, some must be shared; from so many on, a share of them.
_SOME = 2
_MANY = 4
_SHARE = 0.4


def may_relate(a: str, b: str, *, whole: bool = False) -> bool:
    """False where so few content words are shared that the texts neither say the same nor contradict one another.

    Where many are needed names and numbers do not count: other ones may be just what two texts differ in. With
    `whole` nothing may be left over of either, and a word must be shared however few there are.
    """
    ours, our_names = _content(a)
    theirs, their_names = _content(b)
    fewest = min(len(ours), len(theirs))
    if fewest < _SOME and not whole:
        return True
    shared = len(ours & theirs)
    if fewest < _MANY:
        return shared > 0 or not (ours | our_names).isdisjoint(theirs | their_names)
    return shared >= _SHARE * fewest


def _content(text: str) -> tuple[set[str], set[str]]:
    """The content words of a text, and those that may be names or numbers."""
    found = _WORD.findall(text)
    plain = {_key(word) for word in found if word[0].islower()}
    names = {_key(word.lower()) for word in found if not word[0].islower()}
    if found:
        # The first word has its capital from the sentence.
        plain.add(_key(found[0].lower()))
    plain.discard("")
    names.discard("")
    return plain, names


@lru_cache(maxsize=1 << 14)
def _key(word: str) -> str:
    return "" if word in _EMPTY else key(stem(word))
