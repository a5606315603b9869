"""Quick checks of two texts beside the trained judge: whether they may have one subject, and whether words recur."""

import re
from math import log1p

from muniment.language.assertion import lexicon
from muniment.language.assertion.overlap import content_words
from muniment.language.assertion.stemming import stem
from muniment.language.assertion.vocabulary import CLASSES, synonym_key

_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
# Share of the content words that two texts must have in common to repeat one another.
_SHARE = 0.4
# How likely two texts are to be about one thing, by their similarity and the words that they share; fitted by
# `python -m training.pairs.filter` on pairs that contradict one another against neighbours in plain talk.
_WEIGHTS = (3.56, 5.86, 1.13, 5.77, -3.26, -2.13, -0.32)
# From this score on, the logarithm of the odds, a pair is read.
_LEAST = -1.4
# Below this similarity two things that people say of themselves, without a word in common, are not read.
_LEAST_OF_SELF = 0.15
_SELF = re.compile(r"\b(?:i|me|my|mine|we|us|our|ours)\b", re.IGNORECASE)
# The end of a sentence that is no question.
_STATED = re.compile(r"[.!]\s")
# What belongs to somebody of somebody: "Niko's sister's bicycle".
_OWNED_TWICE = re.compile(r"\b\w+['\u2019]s \w+['\u2019]s\b")
_GREETING = re.compile(
    r"(?:hi|hello|hey|thanks|thank you|good (?:morning|afternoon|evening|night)|(?:good)?bye|ok(?:ay)?|sure|welcome)\b"
    r"(?:\W+\w+){0,3}\W*",
    re.IGNORECASE,
)
# A first name or a company's before its verb ("Anna lives ..."), or a name of several words ("Paul Weber ...").
_NAME = re.compile(r"([A-Z][\w-]+(?: [A-Z][\w-]+)+)\b|([A-Z][\w-]{2,})(?='s\b| (?:is|was|has|had|[a-z]{2,}s)\b)")
# Endings of common nouns, which are no names.
_COMMON = re.compile(r"(?:tions?|ments?|ings?|ness|ery|ity|ance|ence|s)$")
_FUNCTION_WORDS = frozenset(
    (*lexicon.DROPPED, *lexicon.PREPOSITIONS, *lexicon.PRONOUNS, *lexicon.NEGATORS, *lexicon.QUESTION_WORDS)
)


def may_state(text: str) -> bool:
    """Return False for a question or a greeting, which conflicts with nothing; a question may follow a statement."""
    text = text.strip()
    asks = text.endswith("?") and _STATED.search(text) is None
    return not asks and _GREETING.fullmatch(text) is None


def have_other_owners(a: str, b: str) -> bool:
    """Whether one text is about what belongs to somebody of somebody, and the other is not."""
    return (_OWNED_TWICE.search(a) is None) != (_OWNED_TWICE.search(b) is None)


def same_subject(a: str, b: str) -> bool:
    """Return False where two texts cannot conflict: a question, a greeting, or two owners or names."""
    if not may_state(a) or not may_state(b) or have_other_owners(a, b):
        return False
    one, other = _named_subject(a), _named_subject(b)
    return one is None or other is None or not one.isdisjoint(other)


def share_enough_words(a: str, b: str, similarity: float) -> bool:
    """Return False where two texts share too little for their length to be about one thing.

    What people say of themselves always has one subject, so that the judge cannot tell two things apart by it: such
    texts must share a word, or be a little similar.
    """
    if similarity < _LEAST_OF_SELF and _SELF.search(a) and _SELF.search(b) and not _shared_words(a, b):
        return False
    return sum(w * x for w, x in zip(_WEIGHTS, overlap_features(a, b, similarity), strict=True)) >= _LEAST


def overlap_features(a: str, b: str, similarity: float) -> tuple[float, ...]:
    """Return what `share_enough_words` weighs: a constant, the similarity, shared words and numbers of words."""
    ours, theirs = _all_words(a), _all_words(b)
    shared, fewest, most = len(ours & theirs), *sorted((len(ours), len(theirs)))
    return (
        1.0,
        similarity,
        shared / max(1, fewest),
        shared / max(1, most),
        log1p(shared),
        log1p(fewest),
        log1p(most),
    )


def _shared_words(a: str, b: str) -> set[str]:
    return _all_words(a) & _all_words(b)


def _all_words(text: str) -> set[str]:
    words, names = content_words(text)
    return words | names


def _named_subject(text: str) -> frozenset[str] | None:
    """Return the words of the name that a text begins with, None if it begins with none."""
    found = _NAME.match(text)
    if found is None:
        return None
    words = frozenset(found[0].lower().split())
    if found[1] is not None:
        return words - _FUNCTION_WORDS or None
    word = found[2].lower()
    stemmed = stem(word)
    known = word in _FUNCTION_WORDS or stemmed in CLASSES or synonym_key(stemmed) != stemmed
    return None if known or _COMMON.search(word) else words


def repeats_words(a: str, b: str) -> bool:
    """Whether two texts share enough words, and have the same numbers, to say the same."""
    if sorted(_NUMBER.findall(a)) != sorted(_NUMBER.findall(b)):
        return False
    ours, theirs = (words | names for words, names in map(content_words, (a, b)))
    return len(ours & theirs) >= _SHARE * max(len(ours), len(theirs), 1)


def differ_in_one_word(a: str, b: str) -> bool:
    """Whether two texts are alike but for one word, which no known synonym replaces: most such pairs differ in fact."""
    ours, theirs = (_WORD.findall(text.lower()) for text in (a, b))
    if len(ours) != len(theirs):
        return False
    others = [(one, other) for one, other in zip(ours, theirs, strict=True) if one != other]
    if len(others) != 1:
        return False
    one, other = (frozenset[str]().union(*content_words(word)) for word in others[0])
    return bool(one and other) and one.isdisjoint(other)
