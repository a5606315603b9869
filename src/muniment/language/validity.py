"""Reads from a sentence when what it says holds in the world: "since 2019", "until June", "from May to July" (REC-14).

What is not sure is left open, because a fact that is read to end too early is lost: several sentences, questions,
suppositions and what happens again and again are not read. A sentence in the past tense tells of what was, and stays
true. One in the future tense tells of a plan, which is known at once and ends with it: only its end is read.

Months and years are reached when they begin ("until June"), days when they are over ("until 5 June"); "to" and
"through" include what they name ("from May to July"). Times are in UTC.
"""

from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from muniment.language.assertion.lexicon import MONTHS, WEEKDAYS
from muniment.language.messages.sentences import sentences_of
from muniment.language.patterns import caseless

_TICK = timedelta(microseconds=1)
_MONTH = "|".join(sorted((name for name in MONTHS if len(name) > 2), key=len, reverse=True))
_WEEKDAY = "|".join(sorted((name for name in WEEKDAYS if len(name) > 2), key=len, reverse=True))
_YEAR = r"(?:19|20|21)[0-9]{2}"
_DAY = r"[0-3]?[0-9](?:st|nd|rd|th)?"
_DATE = (
    rf"(?:{_YEAR}-[0-9]{{2}}(?:-[0-9]{{2}})?"
    rf"|(?:the )?{_DAY} (?:of )?(?:{_MONTH})\.?(?:,? {_YEAR})?"
    rf"|(?:{_MONTH})\.? {_DAY}(?:,? {_YEAR})?"
    rf"|(?:{_MONTH})\.?(?:,? {_YEAR})?"
    rf"|(?:last|this|next) (?:{_WEEKDAY}|{_MONTH}|week|month|year)"
    rf"|yesterday|today|tonight|tomorrow|{_YEAR})"
)
_EDGE = r"(?:the )?(?:(?P<{name}edge>end|beginning|start) of (?:the )?)?(?P<{name}>{date})\b"
_ANY_DATE = _EDGE.format(name="date", date=rf"(?:{_DATE}|{_WEEKDAY})")
# Most sentences have none of these words.
_MAY_SAY = caseless(r"\b(?:since|until|till|til|from|between|through|up to|starting|beginning|as of)\b")
_SINCE = caseless(rf"\bsince {_ANY_DATE}")
_UNTIL = caseless(rf"\b(?:(?P<through>through|up to and including)|until|till|til|up until|up to) {_ANY_DATE}")
_FROM_ON = caseless(
    rf"\b(?:(?:starting|beginning)(?: in| on| from)?|as of|as from|from) {_ANY_DATE}"
    r"(?P<on>,? on(?:wards?)?\b| forward\b)?"
)
_FROM_TO = caseless(
    rf"\b(?:from|between) {_EDGE.format(name='first', date=_DATE)}"
    rf" ?(?:to|and|until|till|til|through|-) ?{_EDGE.format(name='last', date=_DATE)}"
)
_PARTS = caseless(
    rf"^(?P<iso>{_YEAR}-[0-9]{{2}}(?:-[0-9]{{2}})?)$"
    rf"|^(?:the )?(?P<day>[0-3]?[0-9])(?:st|nd|rd|th)? (?:of )?(?P<month>{_MONTH})\.?(?:,? (?P<year>{_YEAR}))?$"
    rf"|^(?P<month2>{_MONTH})\.? (?P<day2>[0-3]?[0-9])(?:st|nd|rd|th)?(?:,? (?P<year2>{_YEAR}))?$"
    rf"|^(?P<month3>{_MONTH})\.?(?:,? (?P<year3>{_YEAR}))?$"
    rf"|^(?P<which>last|this|next) (?P<what>{_WEEKDAY}|{_MONTH}|week|month|year)$"
    rf"|^(?P<near>yesterday|today|tonight|tomorrow)$|^(?P<year4>{_YEAR})$|^(?P<weekday>{_WEEKDAY})$"
)
# A month, with or without a day, of a year that is not named.
_MONTH_ALONE = caseless(rf"^(?:(?:the )?{_DAY} (?:of )?)?(?:{_MONTH})\.?(?: {_DAY})?$")
# A verb right after the date: "since 2019 was hard" gives a reason.
_VERB_FOLLOWS = caseless(r"^ (?:is|was|were|are|has|had|will|would|turned|came|went|did|does)\b")
_UNSURE = caseless(
    r"\b(?:every|each|usually|normally|always|often|sometimes|rarely|daily|weekly|monthly|yearly|annually"
    rf"|if|unless|whether|would|could|might|maybe|perhaps|wish|probably|(?:{_WEEKDAY})s)\b"
)
_FUTURE = caseless(r"(?:\b(?:will|shall|won't|going to|gonna|plan to|plans to|planning to)\b|'ll\b)")
_PAST_WORDS = (
    "was|were|had|did|didn't|wasn't|weren't|hadn't|used|went|came|got|took|gave|made|said|told|left|kept|held|spent|sold"
    "|taught|met|led|ran|wrote|spoke|bought|ate|drove|slept|stood|sat|felt|became|began|lost|won|paid|sent|built|grew"
    "|knew|saw|thought|wore|couldn't"
)
_PAST = caseless(rf"\b(?:{_PAST_WORDS}|[a-z]{{2,}}ed)\b")
# A participle after one of these is no past tense: "is closed until June".
_BEFORE_PARTICIPLE = caseless(
    r"(?:\b(?:am|is|are|be|been|being|isn't|aren't|get|gets|getting|have|has|haven't|hasn't|stay|stays|remain|remains)"
    r"|'m|'s|'re|'ve)(?: [a-z']+){0,2} $"
)
_NO_VERBS = frozenset({"need", "bed", "red", "hundred", "speed", "feed", "seed", "indeed", "shed", "weed", "breed"})


class Validity(NamedTuple):
    """From when and until when a fact holds; None is open."""

    valid_from: datetime | None = None
    valid_until: datetime | None = None


OPEN = Validity()


class _Span(NamedTuple):
    """A stretch of time that a text names: its first moment, the first one after it, and whether it is one day."""

    start: datetime
    end: datetime
    is_day: bool = False


def read_validity(text: str, said_at: datetime) -> Validity:
    """Return when a sentence that was said at that time holds in the world; `OPEN` if it does not say, or is unsure."""
    if not _MAY_SAY.search(text):
        return OPEN
    sentences = sentences_of(text)
    if len(sentences) != 1 or sentences[0].is_question or _UNSURE.search(sentences[0].text):
        return OPEN
    sentence, said = sentences[0].text, said_at.astimezone(UTC)
    try:
        found = _read(sentence, said)
    except (ValueError, OverflowError):
        return OPEN  # There is no such date.
    if found.valid_from is not None and found.valid_until is not None and found.valid_from >= found.valid_until:
        return OPEN
    return found


def _read(sentence: str, said: datetime) -> Validity:
    between = list(_FROM_TO.finditer(sentence))
    until, since, starts = (list(one.finditer(sentence)) for one in (_UNTIL, _SINCE, _FROM_ON))
    if between:
        alone = len(between) == 1 and not since and len(until) <= 1
        return _between(between[0], sentence, said) if alone else OPEN
    starts = [one for one in starts if one.group("on") or not one.group(0).lower().startswith("from ")]
    if len(until) > 1 or len(since) + len(starts) > 1:
        return OPEN
    end = _end(until[0], sentence, said) if until else None
    start = _start(since[0], sentence, said) if since else _begin(starts[0], sentence, said) if starts else None
    return Validity(start, end)


def _between(match: Any, sentence: str, said: datetime) -> Validity:
    if _tells_of_the_past(sentence):
        return OPEN
    last = _named(match.group("last"), said, ahead=True)
    if last is None:
        return OPEN
    # "from May to July" names the next July, and the May before it.
    before_last = _MONTH_ALONE.search(match.group("first")) is not None
    first = _named(match.group("first"), last.start if before_last else said, ahead=not before_last)
    if first is None:
        return OPEN
    end = (last.start if match.group("lastedge") in ("start", "beginning") else last.end) - _TICK
    if end <= said:
        return OPEN
    start = first.end if match.group("firstedge") == "end" else first.start
    return Validity(None if _FUTURE.search(sentence) else start, end)


def _end(match: Any, sentence: str, said: datetime) -> datetime | None:
    if _tells_of_the_past(sentence):
        return None
    named = _named(match.group("date"), said, ahead=True)
    if named is None:
        return None
    edge = match.group("dateedge")
    whole = edge == "end" or (edge is None and (named.is_day or match.group("through") is not None))
    end = named.end - _TICK if whole else named.start
    return end if end > said else None


def _start(match: Any, sentence: str, said: datetime) -> datetime | None:
    if _VERB_FOLLOWS.search(sentence[match.end() :]) or "had" in sentence.lower().split():
        return None
    named = _named(match.group("date"), said, ahead=False)
    if named is None:
        return None
    start = named.end if match.group("dateedge") == "end" else named.start
    return start if start <= said else None


def _begin(match: Any, sentence: str, said: datetime) -> datetime | None:
    if _FUTURE.search(sentence) or _tells_of_the_past(sentence):
        return None
    named = _named(match.group("date"), said, ahead=True)
    if named is None:
        return None
    return named.end if match.group("dateedge") == "end" else named.start


def _tells_of_the_past(sentence: str) -> bool:
    for found in _PAST.finditer(sentence):
        is_participle = _BEFORE_PARTICIPLE.search(sentence[: found.start()]) is not None
        if found.group(0).lower() not in _NO_VERBS and not is_participle:
            return True
    return False


# ---- dates ----


def _named(text: str, said: datetime, *, ahead: bool) -> _Span | None:
    """Return the time that words name, seen from when they were said: the next one that is not over, or the last."""
    match = _PARTS.search(text)
    if match is None:
        return None
    parts = {name: value.lower() for name, value in match.groupdict().items() if value}
    today = said.replace(hour=0, minute=0, second=0, microsecond=0)
    if "iso" in parts:
        year, month, *day = (int(part) for part in parts["iso"].split("-"))
        return _day(datetime(year, month, day[0], tzinfo=UTC)) if day else _month(year, month)
    if "near" in parts:
        return _day(today + timedelta(days={"yesterday": -1, "tomorrow": 1}.get(parts["near"], 0)))
    if "weekday" in parts:
        return _weekday(parts["weekday"], today, ahead=ahead)
    if "which" in parts:
        return _beside(parts["which"], parts["what"], today, ahead=ahead)
    if "year4" in parts:
        return _year(int(parts["year4"]))
    month = MONTHS[parts.get("month") or parts.get("month2") or parts["month3"]]
    day_of_month = parts.get("day") or parts.get("day2")
    year = parts.get("year") or parts.get("year2") or parts.get("year3")
    if year is not None:
        return _on(int(year), month, day_of_month)
    if ahead:
        spans = [_on(said.year + off, month, day_of_month) for off in (0, 1)]
        return next(one for one in spans if one.end > said)
    spans = [_on(said.year - off, month, day_of_month) for off in (0, 1)]
    return next(one for one in spans if one.start <= said)


def _on(year: int, month: int, day: str | None) -> _Span:
    return _day(datetime(year, month, int(day), tzinfo=UTC)) if day is not None else _month(year, month)


def _day(start: datetime) -> _Span:
    return _Span(start, start + timedelta(days=1), is_day=True)


def _month(year: int, month: int) -> _Span:
    return _Span(datetime(year, month, 1, tzinfo=UTC), datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC))


def _year(year: int) -> _Span:
    return _Span(datetime(year, 1, 1, tzinfo=UTC), datetime(year + 1, 1, 1, tzinfo=UTC))


def _weekday(name: str, today: datetime, *, ahead: bool) -> _Span:
    """Return the next day of that name after today, or the last one up to today."""
    away = (WEEKDAYS[name] - today.weekday()) % 7
    return _day(today + timedelta(days=(away or 7) if ahead else (away - 7 if away else 0)))


def _beside(which: str, what: str, today: datetime, *, ahead: bool) -> _Span | None:
    step = {"last": -1, "this": 0, "next": 1}[which]
    if what in WEEKDAYS:
        return _weekday(what, today - timedelta(days=1) if step < 0 else today, ahead=step >= 0)
    if what in MONTHS:
        found = _named(what, today, ahead=step > 0 or (step == 0 and ahead))
        within = found is not None and found.start <= today < found.end
        return None if within and step else found
    if what == "year":
        return _year(today.year + step)
    if what == "month":
        months = today.year * 12 + today.month - 1 + step
        return _month(months // 12, months % 12 + 1)
    monday = today - timedelta(days=today.weekday()) + timedelta(days=7 * step)
    return _Span(monday, monday + timedelta(days=7))
