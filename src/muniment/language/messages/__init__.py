"""Reads what people say of themselves in messages.

`statements_of(sentence)` takes a sentence and returns what its speaker states of themselves: profile facts, standing
requests, likings and dislikes, each as a `Statement` in the third person. `sentences_of(text)` splits a message into
sentences, and `speakers` tells which of its words are the user's own.
"""

from muniment.language.messages.attitudes import attitudes_of
from muniment.language.messages.profile import profile_of
from muniment.language.messages.requests import requests_of
from muniment.language.messages.sentences import Sentence, sentences_of
from muniment.language.messages.statement import LIKELY, Statement

__all__ = ["LIKELY", "Sentence", "Statement", "sentences_of", "statements_of"]


def statements_of(sentence: Sentence) -> list[Statement]:
    """Return what the speaker of a sentence states of themselves, in order."""
    first = [*profile_of(sentence), *requests_of(sentence)]
    attitudes = attitudes_of(sentence, after=[one.end for one in first])
    others = [one for one in attitudes if not any(other.position <= one.position < other.end for other in first)]
    return sorted((*first, *others), key=lambda one: one.position)
