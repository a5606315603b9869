"""Recognises corrections: sentences in which the speaker corrects or updates something."""

from muniment.language.messages.third_person import as_sentence, turn_pronouns
from muniment.language.patterns import Pattern, caseless

_OPENING = caseless(
    r"^(?:(?:oh|well|hmm|um|hey|hi|ah|ok|okay|and|but|wait|sorry|no)[,.!]? )*(?:actually"
    r"|no, (?:it|that|my|I|we|the|not)|nope"
    r"|correction|sorry, (?:I|it|my)|wait, (?:I|it|no|my)|I meant|I mean,|scratch"
    r" that|on second thought|I misspoke|my mistake"
    r"|I (?:was|got (?:it|that)) wrong|that's (?:wrong|not right|incorrect|not correct|not true|outdated|out of date)"
    r"|that is (?:wrong|not right|incorrect|not correct|not true|outdated)|you(?:'re| are) (?:wrong|mistaken)"
    r"|to correct (?:myself|that)|I apologi[sz]e for the (?:mistake|confusion)|I(?:'ve"
    r"| have)? changed my mind|let me correct"
    r"|update:|not any ?more)\b"
)
# Without one of these it only says that something was wrong.
_CONTRAST = caseless(r"\b(?:not|instead of|rather than|isn't|wasn't|aren't|no longer)\b")
_SPECIFIC = Pattern(r"[0-9]| [A-Z][a-z]+|\b(?:one|two|three|four|five|six|seven|eight|nine|ten)\b")
_STATES = caseless(
    r"\b(?:it's|it is|it was|that's|they're|they are|there are|there's|the [a-z ]{2,40}"
    r" (?:is|are|was)|my [a-z ]{2,40} (?:is|are|was)"
    r"|I meant|I need|I have|I am|I'm|we have|we are|we're|should be)\b"
)
_LEAD = caseless(
    r"^(?:(?:oh|well|hmm|um|hey|hi|ah|ok|okay|and|but|wait|sorry|no|nope|actually|correction|update)[,.!:]* )+"
)
_UNSURE = caseless(r"\b(?:possible|maybe|perhaps|think|sure|guess|might|said|says|heard|if)\b")
_LONGEST = 200


def opens_correction(text: str) -> bool:
    """Say whether a sentence begins like a correction."""
    return bool(_OPENING.search(text))


def bare_correction(text: str) -> str | None:
    """Return the correction as a sentence; None where it does not say what is right."""
    body = _LEAD.sub("", text)
    states = _STATES.search(body)
    if not states or len(body) > _LONGEST:
        return None
    specific = _SPECIFIC.search(body[states.end() :])
    if not specific or (states.start() > 0 and not _CONTRAST.search(body)) or _UNSURE.search(body):
        return None
    return as_sentence(f"The user corrected what was said before: {turn_pronouns(body)}")
