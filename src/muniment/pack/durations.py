"""Durations as a pack writes them: `30d`, `4h`, `15m`, `90s`, or ISO 8601 (`P30D`, `PT4H`)."""

import re
from datetime import timedelta
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from muniment.pack.wording import describe

# Added to any date of this century, it stays within the dates of Python and PostgreSQL.
LONGEST = timedelta(days=36_500)

_SHORT = re.compile(r"([0-9]{1,12})([dhms])")
_ISO = re.compile(
    r"P(?:([0-9]{1,12})W|(?=[0-9T])(?:([0-9]{1,12})D)?"
    r"(?:T(?=[0-9])(?:([0-9]{1,12})H)?(?:([0-9]{1,12})M)?(?:([0-9]{1,12})S)?)?)"
)
_ISO_CALENDAR = re.compile(r"P[0-9]+[YM].*")
_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_EXPECTED = "expected a duration such as 30d, 4h, 15m, 90s or P30D"
_PATTERN = f"^(?:{_SHORT.pattern}|{_ISO.pattern})$"


def parse_duration(text: str) -> timedelta:
    """Parse a duration; raises `ValueError` if the text is none, or one that is not positive."""
    seconds = _seconds(text)
    if seconds is None:
        if _ISO_CALENDAR.fullmatch(text):
            raise ValueError(f"{_EXPECTED}; months and years have no fixed length, write days")
        raise ValueError(f"{_EXPECTED}, got {describe(text)}")
    if seconds > LONGEST.total_seconds():
        raise ValueError(f"expected a duration of at most {LONGEST.days}d")
    return _positive(timedelta(seconds=seconds))


def format_duration(duration: timedelta) -> str:
    """Write the duration in the largest unit that divides it; `parse_duration` reads it back."""
    seconds = int(duration.total_seconds())
    for unit, size in _SECONDS.items():
        if seconds % size == 0:
            return f"{seconds // size}{unit}"
    raise AssertionError("every whole number of seconds is divided by one")


def _seconds(text: str) -> int | None:
    if found := _SHORT.fullmatch(text):
        return int(found[1]) * _SECONDS[found[2]]
    if found := _ISO.fullmatch(text):
        weeks, days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
        return (weeks * 7 + days) * 86_400 + hours * 3_600 + minutes * 60 + seconds
    return None


def _positive(duration: timedelta) -> timedelta:
    if duration <= timedelta(0):
        raise ValueError("expected a duration longer than nothing")
    return duration


def _read(value: Any) -> timedelta:
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, timedelta):
        if value.microseconds or value > LONGEST:
            raise ValueError(f"expected whole seconds, at most {LONGEST.days}d")
        return _positive(value)
    raise ValueError(f"{_EXPECTED}, got {describe(value)}")


Duration = Annotated[
    timedelta,
    BeforeValidator(_read),
    PlainSerializer(format_duration, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "pattern": _PATTERN, "examples": ["30d", "4h", "15m", "90s", "P30D"]}),
]
