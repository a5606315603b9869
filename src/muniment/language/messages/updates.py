"""Recognises what replaces an earlier statement: plain update words, and that somebody speaks of themselves (CTR-4)."""

import re

from muniment.language.special.persons import mentions_in
from muniment.language.special.tokens import Tokens

# Words that people use when what they said before is no longer so; not those of a mere wish or a question.
_UPDATE = re.compile(
    r"\b(?:no longer|not any ?more|not any longer|any ?more|now|nowadays|these days|actually|instead"
    r"|from today|as of (?:today|now)|changed my mind|used to)\b",
    re.IGNORECASE,
)


def has_update_words(text: str) -> bool:
    """Say whether a text has plain update words, such as "no longer", "now" or "actually"."""
    return bool(_UPDATE.search(text)) and "?" not in text


_QUOTED = re.compile(r"[\"\u201c\u201d\u201e\u00ab\u00bb]")


def is_about_speaker(text: str) -> bool:
    """Say whether a sentence is about whoever says it: its subject is "I" or "we", or a thing of theirs.

    Whoever else it mentions stands behind a preposition, behind "is" or at its end: in "I heard my sister moved" they
    may be the subject. What is quoted is somebody else's.
    """
    tokens = Tokens.of(_UPDATE.sub("", text))
    found = mentions_in(tokens)
    subjects = [one for one in found if not tokens.is_in(one.first - 1, "prepositions", "since")]
    if not subjects or subjects[0].mention.kind != "self" or _QUOTED.search(text):
        return False
    last = len(tokens.low) - 1
    return all(
        one.mention.kind == "self" or one.last == last or tokens.is_in(one.first - 1, "be") for one in subjects[1:]
    )
