"""Finds telephone numbers: by their number plan or by the words around, never by their length alone.

With a country code the length must be possible. Without one, a number counts when it is written like a telephone
number and the plan of a common country has it, or when the words before it announce a telephone number.
"""

import re
from collections.abc import Iterator

from muniment.language.redaction.detectors import number_plans
from muniment.language.redaction.detectors.announcements import Announcements
from muniment.language.redaction.detectors.phone_context import PhoneContext, phone_context
from muniment.language.redaction.normalised import Span, after, before

_RUN = re.compile(
    # A full stop and a space end a sentence.
    r"(?<![0-9A-Za-z_@])(?<![0-9][.:])(?<![0-9A-Za-z]-)[+(]{0,2}[0-9]{1,15}"
    r"(?:(?:\.(?! )|[ /()-]){1,3}[0-9]{1,14}){0,40}"
)
_PARTS = re.compile(r"[0-9+(]+(?:[./()-]{1,2}[0-9]+)*")
_INTERNATIONAL = re.compile(r"\+ ?|(?<![^ /(])(?:00|011)(?=[ (-]{0,2}[1-9])[ (-]{0,2}")
_NORTH_AMERICAN = re.compile(
    r"(?<![0-9])(?:1[ .-])?(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}([ .-]))[2-9][0-9]{2}(?:\1|[ .-])[0-9]{4}(?![0-9])"
)
# An area code in brackets is how telephones are written, whether the plan has it or not.
_BRACKETED = re.compile(r"\([0-9]{3}\)[ .-]?[0-9]{3}[ .-][0-9]{4}")
_EXTENSION = re.compile(
    r"(?i)[ ,]{0,2}(?:x|;?ext[.=]?|extension|durchwahl|poste|anexo|#)[ :.]?[0-9]{1,6}(?![0-9A-Za-z])"
)
_NO_PHONE = re.compile(
    r"(?:(?:19|20)[0-9]{2}([-./])[0-9]{1,2}\1[0-9]{1,2}(?![0-9]).*"  # a date, perhaps with its time
    r"|[0-9]{1,2}([-./])[0-9]{1,2}\2(?:19|20)[0-9]{2}(?![0-9]).*"
    r"|[0-9]{1,2}/[0-9]{1,2}/[0-9]{2}(?![0-9/]).*"
    r"|(?:19|20)[0-9]{2} ?[-/] ?(?:19|20)[0-9]{2}"  # years
    r"|[0-9]{3}[ .-][0-9]{2}[ .-][0-9]{4}"  # a social security number
    r"|(?:[1-9][0-9]{0,2}|0)(?:\.(?:[1-9][0-9]{0,2}|0)){3}"  # an address of a machine, or a version
    r"|[0-9]+\.[0-9]+)"  # an amount
)
_COMPACT_DATE = re.compile(r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])")
_MONEY_BEFORE = re.compile(r"(?i)(?:[$€£¥₹#]|\b(?:usd|eur|gbp|chf|rs)\.?) ?$")
_UNIT_AFTER = re.compile(
    r"(?i) ?(?:[%€$£¥]|(?:usd|eur|gbp|chf|sek|dollars?|euros?|pounds?|kg|km|cm|mm|ml|kb|mb|gb|tb|ms|bytes|people|users"
    r"|units|items|pieces|rows|records|times|miles)\b)"
)
# Dashes alone are also how articles are numbered; telephone numbers so written end in a longer group.
_DASHED = re.compile(r"0[0-9]{1,4}-(?:[0-9]{1,4}-[0-9]{4}|[0-9]{6,8})")
_LABEL_AFTER = re.compile(r"(?i)[ \t]{0,2}[(-]?(?:office|fax|mobile|cell|home|work|desk|phone|tel)\b(?! ?[:=])")
# The number fills a cell or a line, and there is an address of mail in the lines around it.
_CELL_BEFORE = re.compile(r"(?:^|[|,;\t\n])[ ]{0,3}$")
_CELL_AFTER = re.compile(r"[ ]{0,3}(?:$|[|,;\t\r\n])")
_MAIL_AFTER = re.compile(r"[ ,;|/]{1,3}[^\s@]{1,40}@")
# Six digits are a telephone only in this form, and where one is announced.
_IN_PAIRS = re.compile(r"[0-9]{2} [0-9]{2} [0-9]{2}")
_NEAR, _BESIDE = 49, 60
_SHORTEST, _LONGEST = 7, 15


def find_phones(text: str) -> Iterator[Span]:
    """Return telephone numbers."""
    announcements = Announcements(text)
    for run in _RUN.finditer(text):
        if run.end() - run.start() < _SHORTEST:
            continue
        for start, end in _numbers_in(run.group()):
            yield from _checked(text, run.start() + start, run.start() + end, announcements)


def _numbers_in(run: str) -> Iterator[Span]:
    """Return a run of digits as one number where it can be one, else the parts between its spaces."""
    if sum(map(str.isdigit, run)) <= _LONGEST and "+" not in run[1:]:
        yield 0, len(run)
        return
    if run.count("+") == 1 or _INTERNATIONAL.match(run):
        sign = max(run.find("+"), 0)
        if sign:
            yield from _numbers_in(run[:sign].rstrip(" -/"))
        yield sign, len(run)
        return
    yield from (part.span() for part in _PARTS.finditer(run) if len(part.group()) >= _SHORTEST)


def _checked(text: str, start: int, end: int, announcements: Announcements) -> Iterator[Span]:
    run = text[start:end]
    extension = _EXTENSION.match(text, end)
    stop = extension.end() if extension else end
    named_after = _LABEL_AFTER.match(after(text, stop, 12)) is not None
    goes_on = stop < len(text) and (text[stop].isalnum() or text[stop] in "_@")
    if goes_on and not named_after:
        return
    context = PhoneContext.PHONE if named_after else _context_of(text, start, end, announcements)
    found = _international(run, context) or _north_american(text, start, end, context)
    if found:
        yield start + found[0], stop if found[1] == len(run) else start + found[1]
        return
    if extension and context is not PhoneContext.OTHER:
        context = PhoneContext.PHONE
    if _is_national(text, start, end, context):
        # A bracket before the first digit belongs to it only when it is closed again.
        yield start + (run.startswith("(") and ")" not in run), stop


def _north_american(text: str, start: int, end: int, context: PhoneContext) -> Span | None:
    if context is PhoneContext.OTHER or _is_an_amount(text, start, end, context):
        return None
    run = text[start:end]
    found = _NORTH_AMERICAN.search(run)
    if found and number_plans.is_north_american(_digits(found.group())[-10:]):
        return found.span()
    return (0, len(run)) if _BRACKETED.fullmatch(run) else None


def _international(run: str, context: PhoneContext) -> Span | None:
    """Return what is an international number in a run; without a sign it may be announced as another thing."""
    prefix = _INTERNATIONAL.search(run)
    if prefix is None or (context is PhoneContext.OTHER and "+" not in run):
        return None
    size = _international_length(run[prefix.start() :])
    return (prefix.start(), prefix.start() + size) if size else None


def _international_length(run: str) -> int:
    """Return the length of the international number that a run begins with; 0 where it is none."""
    prefix = _INTERNATIONAL.match(run)
    groups = list(re.finditer(r"[0-9]+", run[prefix.end() :])) if prefix else []
    for last in range(len(groups), 0, -1):
        digits = "".join(group.group() for group in groups[:last])
        if not _SHORTEST <= len(digits) <= _LONGEST + 1 or not (split := number_plans.split_country(digits)):
            continue
        code, national = split
        # `+44 (0)20` keeps the digit that is dialled inside the country.
        for spelled in dict.fromkeys((national, national.removeprefix("0"))):
            loose = last > 1 or "+" in run[:2]
            if number_plans.is_assigned(code, spelled) or (
                loose and spelled[:1] not in ("", "0") and number_plans.is_possible(code, spelled)
            ):
                return (prefix.end() if prefix else 0) + groups[last - 1].end()
    return 0


def _is_national(text: str, start: int, end: int, context: PhoneContext) -> bool:
    run = text[start:end]
    digits = _digits(run)
    short = context is PhoneContext.PHONE and _IN_PAIRS.fullmatch(run) is not None
    if (
        context is PhoneContext.OTHER
        or not (_SHORTEST <= len(digits) <= _LONGEST or short)
        or _NO_PHONE.fullmatch(run.strip("( "))
    ):
        return False
    if _is_an_amount(text, start, end, context) or len(set(digits)) == 1:
        return False
    grouped = len(re.findall(r"[0-9]+", run)) > 1
    if context is PhoneContext.PHONE:
        return grouped or not _COMPACT_DATE.fullmatch(digits)
    if context is PhoneContext.POSSIBLE:
        # In one piece it may be any number: the plan must have it.
        return (
            grouped or number_plans.is_north_american(digits) or (digits[0] == "0" and number_plans.is_national(digits))
        )
    dialled = digits[0] == "0" or re.match(r"\([0-9]{2,5}\)", run) is not None
    if "-" in run and not re.search(r"[ ./()]", run) and not _DASHED.fullmatch(run):
        return False
    return grouped and dialled and len(digits) >= 9 and number_plans.is_national(digits)


def _context_of(text: str, start: int, end: int, announcements: Announcements) -> PhoneContext:
    """Return what announces a number: the heading of its column, the words before it, or a mail address beside it."""
    context = phone_context(announcements.before(start, _NEAR))
    if context is PhoneContext.UNKNOWN and _is_beside_mail(text, start, end):
        return PhoneContext.POSSIBLE
    return context


def _is_beside_mail(text: str, start: int, end: int) -> bool:
    ahead, behind = after(text, end, _BESIDE), before(text, start, _BESIDE)
    if _MAIL_AFTER.match(ahead):
        return True
    return bool(_CELL_BEFORE.search(behind) and _CELL_AFTER.match(ahead)) and "@" in behind + ahead


def _is_an_amount(text: str, start: int, end: int, context: PhoneContext) -> bool:
    follows = after(text, end, 10)
    # What follows a comma belongs to the number, unless the number is announced: then it is the next cell or item.
    fraction = r"[.:][0-9]" if context is PhoneContext.PHONE else r"[.,:][0-9]"
    return bool(
        _MONEY_BEFORE.search(before(text, start, 8)) or _UNIT_AFTER.match(follows) or re.match(fraction, follows)
    )


def _digits(run: str) -> str:
    return re.sub(r"[^0-9]", "", run)
