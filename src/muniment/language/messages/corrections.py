"""Recognises corrections: sentences in which the speaker corrects or updates something."""

from muniment.language.patterns import PatternFile

_PATTERNS = PatternFile(__package__ or "", "patterns/corrections.txt")
_LONGEST = 200


def opens_correction(text: str) -> bool:
    """Say whether a sentence begins like a correction."""
    return bool(_PATTERNS["opening"].search(text))


def is_bare_correction(text: str) -> bool:
    """Say whether a sentence that corrects something also says what is right."""
    body = _PATTERNS["lead"].sub("", text)
    states = _PATTERNS["states"].search(body)
    if not states or len(body) > _LONGEST:
        return False
    specific = _PATTERNS["specific"].search(body[states.end() :])
    if not specific or (states.start() > 0 and not _PATTERNS["contrast"].search(body)):
        return False
    return not _PATTERNS["unsure"].search(body)
