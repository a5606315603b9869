"""Dates and times: the parts that a text names, whatever the order and form it names them in."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields

from muniment.language.assertion.lexicon import words
from muniment.language.assertion.lexicon.numbers import AMBIGUOUS, MONTHS, WEEKDAYS
from muniment.language.assertion.tokens import Token

_YEAR = re.compile(r"^(?:1[5-9]|20|21)\d\d$")
_DAY = re.compile(r"^([0-3]?\d)(?:st|nd|rd|th)?$")
_HOUR = re.compile(r"^(\d{1,2})(am|pm)$")
_PARTED = re.compile(r"^(\d{1,4})([./])(\d{1,2})\2(\d{2,4})$")
_YEAR_AFTER = words("in since until till by from before after during of year for through")
_AFTER_YEAR = _YEAR_AFTER | words("on at")
_NAMES = frozenset((*MONTHS, *WEEKDAYS, *(name + "s" for name in WEEKDAYS), "noon"))


@dataclass(frozen=True, slots=True)
class Date:
    """What is known of a moment; parts that the text leaves open are None."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    weekday: int | None = None
    minute: int | None = None

    @property
    def key(self) -> str:
        """What two equal dates share."""
        return f"@{self.year}|{self.month}|{self.day}|{self.weekday}|{self.minute}"

    def excludes(self, other: "Date") -> bool:
        """Whether a part that both name differs."""
        return any(
            one is not None and two is not None and one != two
            for one, two in ((getattr(self, part.name), getattr(other, part.name)) for part in fields(self))
        )


def date_at(found: Sequence[Token], place: int) -> tuple[int, Date] | None:
    """The date or time that begins here and how many tokens it takes; None where none does."""
    token = found[place]
    if token.kind == "word" and token.low not in _NAMES:
        return None
    if token.kind == "iso":
        year, month, day = (int(part) for part in token.low.split("-"))
        return 1, Date(year, month, day)
    if token.kind == "mixed":
        return _parted(token.low)
    clock = _clock(found, place)
    if clock is not None:
        return clock
    if token.kind == "word":
        return _named(found, place)
    if token.kind == "number":
        return _numbered(found, place)
    return None


def _parted(text: str) -> tuple[int, Date] | None:
    match = _PARTED.match(text)
    if match is None:
        return None
    one, sign, two, three = int(match[1]), match[2], int(match[3]), int(match[4])
    if one > 31:
        return 1, Date(one, two, three)
    # A day before a month is certain with points, or where the other order gives no month.
    if sign == "." or one > 12:
        return 1, Date(_century(three), two, one)
    return (1, Date(_century(three), one, two)) if two > 12 else None


def _century(year: int) -> int:
    return year if year > 99 else 2000 + year


def _clock(found: Sequence[Token], place: int) -> tuple[int, Date] | None:
    token = found[place]
    following = found[place + 1].low if place + 1 < len(found) else ""
    half = following if following in ("am", "pm") else ""
    if token.kind == "clock":
        hours, minutes = (int(part) for part in token.low.split(":")[:2])
        return 1 + bool(half), Date(minute=_minutes(hours, half) + minutes)
    if token.kind != "number":
        return (1, Date(minute=720)) if token.low == "noon" else None
    glued = _HOUR.match(token.low)
    if glued is not None:
        return 1, Date(minute=_minutes(int(glued[1]), glued[2]))
    if half and token.low.isdigit():
        return 2, Date(minute=_minutes(int(token.low), half))
    return (2, Date(minute=_minutes(int(token.low), ""))) if following == "o'clock" and token.low.isdigit() else None


def _minutes(hours: int, half: str) -> int:
    return 60 * (hours % 12 + (12 if half == "pm" else 0) if half else hours)


def _named(found: Sequence[Token], place: int) -> tuple[int, Date] | None:
    token = found[place]
    weekday = WEEKDAYS.get(token.low, WEEKDAYS.get(token.low.removesuffix("s"))) if len(token.low) > 2 else None
    if weekday is not None and (token.low not in AMBIGUOUS or (token.capital and not token.first)):
        return 1, Date(weekday=weekday)
    month = MONTHS.get(token.low)
    if month is None:
        return None
    length, day, year = 1, None, None
    following = found[place + 1] if place + 1 < len(found) else None
    if following is not None and following.kind == "number" and (found_day := _DAY.match(following.low)):
        day, length = int(found_day[1]), 2
    year, used = _year_after(found, place + length)
    if token.low in AMBIGUOUS and day is None and year is None and (token.first or not token.capital):
        return None
    return length + used, Date(year, month, day)


def _numbered(found: Sequence[Token], place: int) -> tuple[int, Date] | None:
    token = found[place]
    day = _DAY.match(token.low)
    if day is not None:
        at = place + 1 + (place + 1 < len(found) and found[place + 1].low == "of")
        if at < len(found) and found[at].low in MONTHS and not (found[at].low == "may" and not found[at].capital):
            year, used = _year_after(found, at + 1)
            return at + 1 - place + used, Date(year, MONTHS[found[at].low], int(day[1]))
    if _YEAR.match(token.low) and place > 0 and found[place - 1].low in _YEAR_AFTER:
        following = found[place + 1] if place + 1 < len(found) else None
        if following is None or following.kind != "word" or following.low in _AFTER_YEAR:
            return 1, Date(int(token.low))
    return None


def _year_after(found: Sequence[Token], place: int) -> tuple[int | None, int]:
    at = place + (place < len(found) and found[place].low == ",")
    if at < len(found) and found[at].kind == "number" and _YEAR.match(found[at].low):
        return int(found[at].low), at + 1 - place
    return None, 0
