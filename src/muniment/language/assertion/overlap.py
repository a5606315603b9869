"""A quick check that comes before parsing: whether two texts share enough words to be related at all."""

import re

from muniment.language.assertion import lexicon
from muniment.language.assertion.stemming import stem
from muniment.language.assertion.vocabulary import synonym_key
from muniment.language.known_words import kept_if_known

_WORD = re.compile(r"\w+")
_EMPTY = frozenset((
    *lexicon.DROPPED, *lexicon.PREPOSITIONS, *lexicon.PRONOUNS, *lexicon.NEGATORS,
    *lexicon.FUTURE, *lexicon.QUESTION_WORDS, *lexicon.CARDINALS, *lexicon.UNITS, *lexicon.MONTHS,
    *["may", "might", "could", "would", "should", "can", "must", "if", "s", "t", "d", "m", "re", "ve", "ll"],
))  # fmt: skip
# From so many words on, some must be shared; from so many on, a share of them.
_SOME = 2
_MANY = 4
_SHARE = 0.4


def may_relate(a: str, b: str, *, whole: bool = False) -> bool:
    """Return False where two texts share so few content words that they cannot agree or contradict one another.

    Where many shared words are needed, names and numbers do not count: they may be just what the texts differ in.
    With `whole` at least one word must be shared, however short the texts are.
    """
    ours, our_names = content_words(a)
    theirs, their_names = content_words(b)
    fewest = min(len(ours), len(theirs))
    if fewest < _SOME and not whole:
        return True
    shared = len(ours & theirs)
    if fewest < _MANY:
        return shared > 0 or not (ours | our_names).isdisjoint(theirs | their_names)
    return shared >= _SHARE * fewest


def content_words(text: str) -> tuple[set[str], set[str]]:
    """Return the content words of a text, and those of its words that may be names or numbers."""
    found = _WORD.findall(text)
    bare_words = {_key(word) for word in found if word[0].islower()}
    names = {_key(word.lower()) for word in found if not word[0].islower()}
    if found:
        # The first word has its capital from the sentence.
        bare_words.add(_key(found[0].lower()))
    bare_words.discard("")
    names.discard("")
    return bare_words, names


@kept_if_known
def _key(word: str) -> str:
    return "" if word in _EMPTY else synonym_key(stem(word))
