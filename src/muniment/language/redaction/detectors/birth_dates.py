"""Finds dates of birth: a date that exists, beside a word for birth."""

import re
from collections.abc import Iterator

from muniment.language.redaction.normalised import Span, after, before, is_date, is_letter_before, lowered

_BIRTH = re.compile(
    r"(?:birth(?:[ _]?-?(?:dates?|days?))?|b-?days?|born|(?<=\()b\.|dob|d\.o\.b\.?"
    r"|geburtsdatum|geburtstag|geboren|geb\.?|gebdat|n[ée]e?s? le|n[ée]e|naissance|anniversaire"
    r"|nacid[oa]|naci[óo]|nacimiento|cumplea[ñn]os|nat[oa] il|nat[oa] a|nascita|compleanno|nascid[oa]|nascimento"
    r"|anivers[áa]rio|geboortedatum|f[öo]delsedatum|f[öo]dd|f[øo]dt|f[øo]dselsdato|urodzon[ya]"
    r"|data urodzenia)(?![a-zà-ÿ])"
)
_MONTHS = (
    r"jan(?:uary|uar|vier|v)?|jänner|enero|ene|gennaio|janeiro|feb(?:ruary|ruar|r)?|f[ée]v(?:rier)?|febrero|febbraio"
    r"|fevereiro|mar(?:ch|s|zo|ço)?|märz|mrz|apr(?:il|ile)?|avr(?:il)?|abr(?:il)?|may|mai|mayo|maggio|maio|june?|juni|juin"
    r"|junio|giugno|junho|july?|juli|juillet|julio|luglio|julho|aug(?:ust)?|ao[uû]t|agosto|ago|sept?(?:ember|embre)?"
    r"|septiembre|settembre|setembro|o[ck]t(?:ober|obre)?|octubre|ottobre|outubro|nov(?:ember|embre|iembre|embro)?"
    r"|de[czs](?:ember|embre|embro)?|d[ée]c(?:embre)?|diciembre|dicembre"
)
_OF = r"(?:st|nd|rd|th|er|\.|º|ª)?,?(?: ?(?:of|de|del|di))? ?-?"
_YEAR = r"(?:18|19|20)[0-9]{2}"
_DATE = re.compile(
    rf"(?i)(?<![0-9A-Za-z])(?:(?P<y1>{_YEAR})(?P<s1>[-./])(?P<m1>[0-9]{{1,2}})(?P=s1)(?P<d1>[0-9]{{1,2}})"
    rf"|(?P<a2>[0-9]{{1,2}}) ?(?P<s2>[-./]) ?(?P<b2>[0-9]{{1,2}}) ?(?P=s2) ?(?P<y2>{_YEAR}|[0-9]{{2}})"
    rf"|(?P<y3>{_YEAR})(?P<m3>[0-9]{{2}})(?P<d3>[0-9]{{2}})"
    rf"|(?P<d4>[0-9]{{1,2}}){_OF}(?P<n4>{_MONTHS})(?![a-zà-ÿ])"
    rf"(?:\.?,?(?: ?(?:of|de|del|di))?[ -]?(?:{_YEAR}|'[0-9]{{2}}))?"
    rf"|(?P<n5>{_MONTHS})\.?[ -](?:the )?(?P<d5>[0-9]{{1,2}})(?:st|nd|rd|th)?(?![0-9])(?:,? ?(?:of )?{_YEAR})?)"
    r"(?![0-9A-Za-z])(?![-./][0-9])"
)
_SENTENCE_END = re.compile(r"[.!?]\s+(?=[A-ZÀ-Ý])|\n\s*\n|;")
_AHEAD, _BEHIND, _LONGEST = 48, 32, 28
_HAS_YEAR = re.compile(rf"{_YEAR}|'[0-9]{{2}}$")
_DIGIT = re.compile(r"[0-9]")


def find_birth_dates(text: str) -> Iterator[Span]:
    """Return the date nearest to each word for birth: after it, or else shortly before it."""
    if not _DIGIT.search(text):
        return
    for word in _BIRTH.finditer(lowered(text)):
        # `Saudi-born` is followed by no date of birth.
        if is_letter_before(text, word.start()) or text[max(0, word.start() - 1) : word.start()] == "-":
            continue
        ahead = after(text, word.end(), _AHEAD + _LONGEST)
        found = next(_dates(ahead), None)
        if found and found.start() <= _reach(found, _AHEAD) and not _SENTENCE_END.search(ahead[: found.start()]):
            yield word.end() + found.start(), word.end() + found.end()
            continue
        behind = before(text, word.start(), _BEHIND + _LONGEST)
        start = word.start() - len(behind)
        *_, last = [None, *_dates(behind)]
        if (
            last
            and last.end() >= len(behind) - _reach(last, _BEHIND)
            and not _SENTENCE_END.search(behind[last.end() :])
        ):
            yield start + last.start(), start + last.end()


def _reach(found: re.Match[str], usual: int) -> int:
    """Return how far the word may be: nearer where the date has no year, as most such dates are no births."""
    return usual if found["y1"] or found["y2"] or found["y3"] or _HAS_YEAR.search(found.group()) else usual // 2


def _dates(text: str) -> Iterator[re.Match[str]]:
    if not _DIGIT.search(text):
        return iter(())
    return (found for found in _DATE.finditer(text) if _is_real(found))


def _is_real(found: re.Match[str]) -> bool:
    if found["y1"]:
        return is_date(found["y1"], found["m1"], found["d1"])
    if found["y2"]:
        # A short year may mean two centuries; that the date exists in one of them is enough.
        year = found["y2"] if len(found["y2"]) == 4 else f"20{found['y2']}"
        return is_date(year, found["b2"], found["a2"]) or is_date(year, found["a2"], found["b2"])
    if found["y3"]:
        return is_date(found["y3"], found["m3"], found["d3"])
    return 1 <= int(found["d4"] or found["d5"]) <= 31
