"""An English stemmer: a few rules and a list of exceptions, no dictionary."""

import re

from muniment.language.assertion.lexicon import INFLECTIONS, PARTICIPLES, PAST, UNINFLECTED
from muniment.language.known_words import kept_if_known

_VOWEL = re.compile(r"[aeiouy]")
_ONE_SYLLABLE_CVC = re.compile(r"^[^aeiouy]*[aeiouy][^aeiouywx]$")
_DOUBLED = re.compile(r"([bdfgklmnprtvz])\1$")
_SIBILANT = ("ses", "xes", "zes", "ches", "shes")


@kept_if_known
def stem(word: str) -> str:
    """Return the stem of a lower-case word; it is the same for `ride`, `rides`, `riding` and `rode`."""
    return _trimmed(INFLECTIONS.get(word) or _uninflected(word))


def is_past(word: str) -> bool:
    """Say whether the word is a past tense or a past participle."""
    return word in PAST or word in PARTICIPLES or (len(word) > 4 and word.endswith("ed") and word not in UNINFLECTED)


def is_present_participle(word: str) -> bool:
    """Say whether the word is a verb form in -ing."""
    return len(word) > 4 and word.endswith("ing") and word not in UNINFLECTED


def _uninflected(word: str) -> str:
    if len(word) < 4 or word in UNINFLECTED:
        return word
    if word.endswith("ing"):
        return _from_verb(word, word[:-3])
    if word.endswith("ied"):
        return word[:-3] + "y"
    if word.endswith("ed") and not word.endswith("eed"):
        return _from_verb(word, word[:-2])
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return _singular(word)
    return word


def _from_verb(word: str, rest: str) -> str:
    if len(rest) < 2 or not _VOWEL.search(rest):
        return word
    if _DOUBLED.search(rest) and not rest.endswith(("ll", "ss", "zz")):
        return rest[:-1]
    return rest + "e" if _ONE_SYLLABLE_CVC.match(rest) else rest


def _singular(word: str) -> str:
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(_SIBILANT):
        return word[:-2]
    return word[:-1]


def _trimmed(word: str) -> str:
    # `decide` and `deciding` must meet although the rule cannot know of the e.
    return word[:-1] if len(word) > 4 and word.endswith("e") and not word.endswith("ee") else word
