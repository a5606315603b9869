"""Reads what people say of themselves in messages.

`statements_of(sentence)` takes a sentence and returns what its speaker states of themselves: profile facts, standing
requests, likings and dislikes, each as a `Statement`. `sentences_of(text)` splits a message into
sentences, and `speakers` tells which of its words are the user's own.
"""

from collections.abc import Sequence

from muniment.language.messages.attitudes import attitudes_of
from muniment.language.messages.profile import profile_of
from muniment.language.messages.requests import requests_of
from muniment.language.messages.sentences import Sentence, sentences_of
from muniment.language.messages.statement import HEDGED, LIKELY, Statement
from muniment.language.patterns import caseless
from muniment.language.words import words_of

# A question behind a statement.
_ASKED = caseless(
    r"(?:^|[,;] |\b(?:and|so|but) )(?:can|could|would|will|do|does|did|is|are|what|how|which|where|any|should|may)\b"
)
# Content words, beside those of its statements, that a sentence which says no more may have: "By the way".
_MOST_LEFT = 1

__all__ = ["HEDGED", "LIKELY", "Sentence", "Statement", "are_whole", "sentences_of", "statements_of"]


def statements_of(sentence: Sentence) -> list[Statement]:
    """Return what the speaker of a sentence states of themselves, in order."""
    first = [*profile_of(sentence), *requests_of(sentence)]
    attitudes = attitudes_of(sentence, after=[one.end for one in first])
    others = [one for one in attitudes if not any(other.position <= one.position < other.end for other in first)]
    return sorted((*first, *others), key=lambda one: one.position)


def are_whole(sentence: Sentence, statements: Sequence[Statement]) -> bool:
    """Say whether statements leave next to nothing of a sentence unsaid, apart from a question that follows them."""
    rest = list(sentence.text)
    for one in statements:
        rest[one.position : one.end] = " " * (one.end - one.position)
    left = "".join(rest)
    if sentence.is_question and (asked := _ASKED.search(left)):
        left = left[: asked.start()]
    return len(words_of(left)) <= _MOST_LEFT
