"""Finds telephone numbers: by their number plan or by the words around, never by their length alone.

With a country code the length must be possible. Without one, a number counts when it is written like a telephone
number and the plan of a common country has it, or when the words before it announce a telephone number.
"""

import re
from collections.abc import Iterator

from muniment.language.redaction.detectors import number_plans
from muniment.language.redaction.detectors.phone_context import PhoneContext, phone_context
from muniment.language.redaction.normalised import Span, after, before

_RUN = re.compile(
    r"(?<![0-9A-Za-z_@])(?<![0-9][.,:])(?<![0-9A-Za-z]-)[+(]{0,2}[0-9]{1,15}(?:[ ./()-]{1,3}[0-9]{1,14}){0,40}"
)
_PARTS = re.compile(r"[0-9+(]+(?:[./()-]{1,2}[0-9]+)*")
_INTERNATIONAL = re.compile(r"\+ ?|(?<![^ /(])(?:00|011)(?=[ (-]{0,2}[1-9])[ (-]{0,2}")
_NORTH_AMERICAN = re.compile(
    r"(?<![0-9])(?:1[ .-])?(?:\([2-9][0-9]{2}\) ?|[2-9][0-9]{2}([ .-]))[2-9][0-9]{2}(?:\1|[ .-])[0-9]{4}(?![0-9])"
)
_EXTENSION = re.compile(r"(?i)[ ,]{0,2}(?:x|ext\.?|extension|durchwahl|poste|anexo)[ :.]?[0-9]{1,6}(?![0-9A-Za-z])")
_NO_PHONE = re.compile(
    r"(?:(?:19|20)[0-9]{2}([-./])[0-9]{1,2}\1[0-9]{1,2}(?![0-9]).*"  # a date, perhaps with its time
    r"|[0-9]{1,2}([-./])[0-9]{1,2}\2(?:19|20)[0-9]{2}(?![0-9]).*"
    r"|[0-9]{1,2}/[0-9]{1,2}/[0-9]{2}(?![0-9]).*"
    r"|(?:19|20)[0-9]{2} ?[-/] ?(?:19|20)[0-9]{2}"  # years
    r"|[0-9]{3}[ -][0-9]{2}[ -][0-9]{4}"  # a social security number
    r"|(?:[1-9][0-9]{0,2}|0)(?:\.(?:[1-9][0-9]{0,2}|0)){3}"  # an address of a machine, or a version
    r"|[0-9]+\.[0-9]+)"  # an amount
)
_COMPACT_DATE = re.compile(r"(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])")
_MONEY_BEFORE = re.compile(r"(?i)(?:[$€£¥₹#]|\b(?:usd|eur|gbp|chf|rs|order|no)\.?) ?$")
_UNIT_AFTER = re.compile(
    r"(?i) ?(?:[%€$£¥]|(?:usd|eur|gbp|chf|sek|dollars?|euros?|pounds?|kg|km|cm|mm|ml|kb|mb|gb|tb|ms|bytes|people|users"
    r"|units|items|pieces|rows|records|times|miles)\b)"
)
# Dashes alone are also how articles are numbered; telephone numbers so written end in a longer group.
_DASHED = re.compile(r"0[0-9]{1,4}-(?:[0-9]{1,4}-[0-9]{4}|[0-9]{6,8})")
_LABEL_AFTER = re.compile(r"(?i)[ \t]{1,2}\(?(?:office|fax|mobile|cell|home|work|desk|phone|tel)\b")
_NEAR = 49
_SHORTEST, _LONGEST = 7, 15


def find_phones(text: str) -> Iterator[Span]:
    """Return telephone numbers."""
    for run in _RUN.finditer(text):
        if run.end() - run.start() < _SHORTEST:
            continue
        for start, end in _numbers_in(run.group()):
            yield from _checked(text, run.start() + start, run.start() + end)


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


def _checked(text: str, start: int, end: int) -> Iterator[Span]:
    run = text[start:end]
    extension = _EXTENSION.match(text, end)
    if not extension and end < len(text) and (text[end].isalnum() or text[end] in "_@"):
        return
    stop = extension.end() if extension else end
    international = _INTERNATIONAL.search(run)
    if international and (size := _international(run[international.start() :])):
        whole = international.start() + size == len(run)
        yield start + international.start(), stop if whole else start + international.start() + size
        return
    context = _context_of(text, start, end)
    if context is not PhoneContext.OTHER and (found := _NORTH_AMERICAN.search(run)):
        digits = _digits(found.group())
        if number_plans.is_north_american(digits[-10:]) and not _is_an_amount(text, start, end):
            whole = found.end() == len(run)
            yield start + found.start(), stop if whole else start + found.end()
            return
    if _is_national(
        text, start, end, PhoneContext.PHONE if extension and context is not PhoneContext.OTHER else context
    ):
        # A bracket before the first digit belongs to it only when it is closed again.
        yield start + (run.startswith("(") and ")" not in run), stop


def _international(run: str) -> int:
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
    if (
        context is PhoneContext.OTHER
        or not _SHORTEST <= len(digits) <= _LONGEST
        or _NO_PHONE.fullmatch(run.strip("( "))
    ):
        return False
    if _is_an_amount(text, start, end) or len(set(digits)) == 1:
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


def _context_of(text: str, start: int, end: int) -> PhoneContext:
    """Return what the words around a number announce."""
    return PhoneContext.PHONE if _LABEL_AFTER.match(after(text, end, 12)) else phone_context(before(text, start, _NEAR))


def _is_an_amount(text: str, start: int, end: int) -> bool:
    follows = after(text, end, 10)
    return bool(
        _MONEY_BEFORE.search(before(text, start, 8)) or _UNIT_AFTER.match(follows) or re.match(r"[.,:][0-9]", follows)
    )


def _digits(run: str) -> str:
    return re.sub(r"[^0-9]", "", run)
