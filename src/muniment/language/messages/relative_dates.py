"""Relative dates: yesterday, last Monday, next month, three weeks ago."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from muniment.language.patterns import caseless, either

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SPELT = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_COUNTS = {
    **dict.fromkeys(("a", "an", "one"), 1),
    **{word: place for place, word in enumerate(_SPELT, 2)},
}
_COUNT = rf"([0-9]{{1,3}}|{either(' '.join(_COUNTS))})"
_UNIT = r"(day|week|month|year)s?"
_RELATIVE = (
    r"(?:(yesterday|today|tomorrow|tonight|this morning)"
    rf"|(last|next|this past|this coming) ({'|'.join(_WEEKDAYS)}|week|month|year)"
    rf"|(this) (week|month|year)|{_COUNT} {_UNIT} (ago)|(in) {_COUNT} {_UNIT}(?: time)?)\b"
)
_PATTERN = caseless(rf"\b{_RELATIVE}")
_WITH_PREPOSITION = caseless(rf"\b(?:(?:since|until|till|from|by|on|before|after|as of|starting) )?{_RELATIVE}")


def resolve_dates(text: str, now: datetime) -> dict[str, str]:
    """Return the relative dates of a text, as they are written, with the calendar dates that they mean at `now`."""
    found = ((match.group(), _resolved(match, now)) for match in _PATTERN.finditer(text))
    return {said: date for said, date in found if date is not None}


def remove_dates(text: str) -> str:
    """Return the text without its relative dates, which are no part of its topic."""
    return str(_WITH_PREPOSITION.sub(" ", text)).strip()


def _resolved(match: Any, now: datetime) -> str | None:
    """Return the calendar date as text; None where there is no such date."""
    day = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        if match.group(1):
            off = {"yesterday": -1, "tomorrow": 1}.get(match.group(1).lower(), 0)
            return _as_day(day + timedelta(days=off))
        if match.group(2):
            ahead = match.group(2).lower() in ("next", "this coming")
            return _neighbour(day, match.group(3).lower(), ahead=ahead)
        if match.group(4):
            return _FORMS[match.group(5).lower()](day)
        back = bool(match.group(8))
        count, unit = (match.group(6), match.group(7)) if back else (match.group(10), match.group(11))
        number = _COUNTS.get(count.lower()) or int(count)
        return _FORMS[unit.lower()](_moved(day, -number if back else number, unit.lower()))
    except (OverflowError, ValueError):
        return None


def _neighbour(day: datetime, what: str, *, ahead: bool) -> str:
    if what not in _WEEKDAYS:
        return _FORMS[what](_moved(day, 1 if ahead else -1, what))
    off = (_WEEKDAYS.index(what) - day.weekday()) % 7
    return _as_day(day + timedelta(days=(off or 7) if ahead else (off or 7) - (7 if off else 14)))


def _moved(day: datetime, by: int, unit: str) -> datetime:
    if unit in ("day", "week"):
        return day + timedelta(days=by * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 + by * (12 if unit == "year" else 1)
    return day.replace(year=months // 12, month=months % 12 + 1, day=min(day.day, 28))


def _as_day(day: datetime) -> str:
    return f"{day:%Y-%m-%d}"


def _as_week(day: datetime) -> str:
    monday = day - timedelta(days=day.weekday())
    return f"the week of {monday:%Y-%m-%d}"


def _as_month(day: datetime) -> str:
    return f"{day:%Y-%m}"


def _as_year(day: datetime) -> str:
    return f"{day:%Y}"


_FORMS: dict[str, Callable[[datetime], str]] = {
    "day": _as_day,
    "week": _as_week,
    "month": _as_month,
    "year": _as_year,
}
