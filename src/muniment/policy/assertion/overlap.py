"""A first look at two texts: whether they share enough words for a full reading to find more than a difference."""

import re
from functools import lru_cache

from muniment.policy.assertion.lexicon import function_words
from muniment.policy.assertion.lexicon.numbers import CARDINALS, MONTHS, UNITS
from muniment.policy.assertion.stemming import stem
from muniment.policy.assertion.vocabulary import key

_WORD = re.compile(r"\w+")
_EMPTY = frozenset((
    *function_words.DROPPED, *function_words.PREPOSITIONS, *function_words.PRONOUNS, *function_words.NEGATORS,
    *function_words.FUTURE, *function_words.HEDGES, *function_words.QUESTION_WORDS, *CARDINALS, *UNITS, *MONTHS,
    "s", "t", "d", "m", "re", "ve", "ll",
))  # fmt: skip
# Of fewer words than this a phrase or a number may be all that two texts share.
_FEWEST = 3
_MANY = 5
_SHARE = 0.4


def may_relate(a: str, b: str) -> bool:
    """False where so few content words are shared that the texts neither say the same nor contradict one another.

    Names and numbers do not count: other ones may be just what two texts differ in.
    """
    ours, theirs = _content(a), _content(b)
    fewest = min(len(ours), len(theirs))
    if fewest < _FEWEST:
        return True
    shared = len(ours & theirs)
    return shared > 0 and (fewest < _MANY or shared >= _SHARE * fewest)


def _content(text: str) -> set[str]:
    found = _WORD.findall(text)
    # The first word has its capital from the sentence.
    keys = {_key(word) for word in found[1:] if word[0].islower()}
    if found:
        keys.add(_key(found[0].lower()))
    keys.discard("")
    return keys


@lru_cache(maxsize=1 << 14)
def _key(word: str) -> str:
    return "" if word in _EMPTY else key(stem(word))
