"""Quick checks of two texts beside the trained judge: whether they may have one subject, whether words are repeated."""

import re

from muniment.language.assertion import lexicon
from muniment.language.assertion.overlap import content_words
from muniment.language.assertion.stemming import stem
from muniment.language.assertion.vocabulary import CLASSES, synonym_key

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
# Share of the content words that two texts must have in common to repeat one another.
_SHARE = 0.4
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


def same_subject(a: str, b: str) -> bool:
    """Return False where two texts cannot conflict: a question, a greeting, or two names that are spoken of."""
    if any(text.rstrip().endswith("?") or _GREETING.fullmatch(text.strip()) for text in (a, b)):
        return False
    one, other = _named_subject(a), _named_subject(b)
    return one is None or other is None or not one.isdisjoint(other)


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
