"""When a fact holds in the world, in words (REC-14)."""

from datetime import UTC, datetime, time


def validity_text(valid_from: datetime | None, valid_until: datetime | None) -> str | None:
    """Return "from May 2026 until 3 July 2026" for two times, each as exactly as it is; None if both are open."""
    words = [
        f"{word} {_time_text(at)}" for word, at in (("from", valid_from), ("until", valid_until)) if at is not None
    ]
    return " ".join(words) or None


def _time_text(at: datetime) -> str:
    at = _in_utc(at)
    return date_text(at) or f"{at.day} {_MONTHS[at.month - 1]} {at.year} {at:%H:%M} UTC"


def date_text(at: datetime) -> str | None:
    """Return the first moment of a year or a month as that, the first or last of a day as the day, in UTC.

    None for a time within a day. A day that was said is the same in every time zone.
    """
    at = _in_utc(at)
    if at.time() not in (time.min, time.max):
        return None
    if at.time() == time.min and at.day == 1:
        return str(at.year) if at.month == 1 else f"{_MONTHS[at.month - 1]} {at.year}"
    return f"{at.day} {_MONTHS[at.month - 1]} {at.year}"


def _in_utc(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)


# Not by `strftime`, which writes them in the language of the process.
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
