"""Recognises dates and times in a list of tokens, in whatever order and form they are written."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields

from muniment.language.assertion.lexicon import AMBIGUOUS_DATES, MONTHS, WEEKDAYS
from muniment.language.assertion.tokens import Token
from muniment.language.data_files import word_set

_YEAR = re.compile(r"^(?:1[5-9]|20|21)\d\d$")
_DAY = re.compile(r"^([0-3]?\d)(?:st|nd|rd|th)?$")
_HOUR = re.compile(r"^(\d{1,2})(am|pm)$")
_PARTED = re.compile(r"^(\d{1,4})([./])(\d{1,2})\2(\d{2,4})$")
_YEAR_AFTER = word_set("in since until till by from before after during of year for through")
_AFTER_YEAR = _YEAR_AFTER | word_set("on at")
_NAMES = frozenset((*MONTHS, *WEEKDAYS, *(name + "s" for name in WEEKDAYS), "noon"))


@dataclass(frozen=True, slots=True)
class Date:
    """The parts of a date or time that a text names; the others are None."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    weekday: int | None = None
    minute: int | None = None

    @property
    def key(self) -> str:
        """A text that equal dates share."""
        return f"@{self.year}|{self.month}|{self.day}|{self.weekday}|{self.minute}"

    def excludes(self, other: "Date") -> bool:
        """Say whether the two differ in a part that both name."""
        return any(
            one is not None and two is not None and one != two
            for one, two in ((getattr(self, part.name), getattr(other, part.name)) for part in fields(self))
        )


def date_at(tokens: Sequence[Token], position: int) -> tuple[int, Date] | None:
    """Return the length in tokens and the value of the date that begins at this position; None where none does."""
    token = tokens[position]
    if token.kind == "word" and token.lower not in _NAMES:
        return None
    if token.kind == "iso":
        year, month, day = (int(part) for part in token.lower.split("-"))
        return 1, Date(year, month, day)
    if token.kind == "mixed":
        return _parted(token.lower)
    clock = _clock(tokens, position)
    if clock is not None:
        return clock
    if token.kind == "word":
        return _named(tokens, position)
    if token.kind == "number":
        return _numbered(tokens, position)
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


def _clock(tokens: Sequence[Token], position: int) -> tuple[int, Date] | None:
    token = tokens[position]
    following = tokens[position + 1].lower if position + 1 < len(tokens) else ""
    half = following if following in ("am", "pm") else ""
    if token.kind == "clock":
        hours, minutes = (int(part) for part in token.lower.split(":")[:2])
        return 1 + bool(half), Date(minute=_minutes(hours, half) + minutes)
    if token.kind != "number":
        return (1, Date(minute=720)) if token.lower == "noon" else None
    glued = _HOUR.match(token.lower)
    if glued is not None:
        return 1, Date(minute=_minutes(int(glued[1]), glued[2]))
    if half and token.lower.isdigit():
        return 2, Date(minute=_minutes(int(token.lower), half))
    return (
        (2, Date(minute=_minutes(int(token.lower), ""))) if following == "o'clock" and token.lower.isdigit() else None
    )


def _minutes(hours: int, half: str) -> int:
    return 60 * (hours % 12 + (12 if half == "pm" else 0) if half else hours)


def _named(tokens: Sequence[Token], position: int) -> tuple[int, Date] | None:
    token = tokens[position]
    weekday = WEEKDAYS.get(token.lower, WEEKDAYS.get(token.lower.removesuffix("s"))) if len(token.lower) > 2 else None
    if weekday is not None and (token.lower not in AMBIGUOUS_DATES or (token.capitalised and not token.sentence_start)):
        return 1, Date(weekday=weekday)
    month = MONTHS.get(token.lower)
    if month is None:
        return None
    length, day, year = 1, None, None
    following = tokens[position + 1] if position + 1 < len(tokens) else None
    if following is not None and following.kind == "number" and (found_day := _DAY.match(following.lower)):
        day, length = int(found_day[1]), 2
    year, used = _year_after(tokens, position + length)
    if (
        token.lower in AMBIGUOUS_DATES
        and day is None
        and year is None
        and (token.sentence_start or not token.capitalised)
    ):
        return None
    return length + used, Date(year, month, day)


def _numbered(tokens: Sequence[Token], position: int) -> tuple[int, Date] | None:
    token = tokens[position]
    day = _DAY.match(token.lower)
    if day is not None:
        at = position + 1 + (position + 1 < len(tokens) and tokens[position + 1].lower == "of")
        if (
            at < len(tokens)
            and tokens[at].lower in MONTHS
            and not (tokens[at].lower == "may" and not tokens[at].capitalised)
        ):
            year, used = _year_after(tokens, at + 1)
            return at + 1 - position + used, Date(year, MONTHS[tokens[at].lower], int(day[1]))
    if _YEAR.match(token.lower) and position > 0 and tokens[position - 1].lower in _YEAR_AFTER:
        following = tokens[position + 1] if position + 1 < len(tokens) else None
        if following is None or following.kind != "word" or following.lower in _AFTER_YEAR:
            return 1, Date(int(token.lower))
    return None


def _year_after(tokens: Sequence[Token], position: int) -> tuple[int | None, int]:
    at = position + (position < len(tokens) and tokens[position].lower == ",")
    if at < len(tokens) and tokens[at].kind == "number" and _YEAR.match(tokens[at].lower):
        return int(tokens[at].lower), at + 1 - position
    return None, 0
