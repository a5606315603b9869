"""Recognises plain update words: a sentence that says of itself that something has changed."""

import re

# Words that people use when what they said before is no longer so; not those of a mere wish or a question.
_UPDATE = re.compile(
    r"\b(?:no longer|not any ?more|not any longer|any ?more|now|nowadays|these days|actually|instead"
    r"|from today|as of (?:today|now)|changed my mind|used to)\b",
    re.IGNORECASE,
)


def has_update_words(text: str) -> bool:
    """Say whether a text has plain update words, such as "no longer", "now" or "actually"."""
    return bool(_UPDATE.search(text)) and "?" not in text
