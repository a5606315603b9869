"""Recognises corrections: sentences in which the speaker corrects or updates something."""

from muniment.language.messages.third_person import as_sentence, turn_pronouns
from muniment.language.patterns import PatternFile

_PATTERNS = PatternFile(__package__ or "", "patterns/corrections.txt")
_LONGEST = 200


def opens_correction(text: str) -> bool:
    """Say whether a sentence begins like a correction."""
    return bool(_PATTERNS["opening"].search(text))


def bare_correction(text: str) -> str | None:
    """Return the correction as a sentence; None where it does not say what is right."""
    body = _PATTERNS["lead"].sub("", text)
    states = _PATTERNS["states"].search(body)
    if not states or len(body) > _LONGEST:
        return None
    specific = _PATTERNS["specific"].search(body[states.end() :])
    if (
        not specific
        or (states.start() > 0 and not _PATTERNS["contrast"].search(body))
        or _PATTERNS["unsure"].search(body)
    ):
        return None
    return as_sentence(f"The user corrected what was said before: {turn_pronouns(body)}")
