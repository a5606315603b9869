"""Time zones by their names, such as Europe/Vienna: where the day of a person begins, and what their clock shows."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, StringConstraints

UTC_NAME = "UTC"
# A zone of the database has an area and a place; names without one, such as `localtime`, depend on the machine.
ZONE_PATTERN = r"^(?:UTC|[A-Za-z]+(?:/[A-Za-z0-9_+-]+){1,2})$"
EXPECTED_ZONE = "expected the name of a time zone, such as Europe/Vienna, or UTC"
TIME_PATTERN = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"
EXPECTED_TIME = "expected a time of the day, such as 07:00"


def known_zone(name: str) -> str:
    """Return the name of a zone that the time zone database has; raises `ValueError`."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(EXPECTED_ZONE) from None
    return name


ZoneName = Annotated[
    str, StringConstraints(strict=True, max_length=64, pattern=ZONE_PATTERN), AfterValidator(known_zone)
]
# A time of the day as a clock shows it.
TimeOfDay = Annotated[str, StringConstraints(strict=True, max_length=5, pattern=TIME_PATTERN)]


def zone_here(name: str) -> str:
    """Return the name of a zone, or UTC where this machine's time zone database lacks what another's has."""
    try:
        return known_zone(name)
    except ValueError:
        return UTC_NAME


def midnight_in(zone: str, at: datetime) -> datetime:
    """Return when the day of that time began in a zone."""
    return at.astimezone(ZoneInfo(zone)).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)


def next_midnight_in(zone: str, at: datetime) -> datetime:
    """Return when the day after that of this time begins in a zone, in UTC."""
    return time_on(at.astimezone(ZoneInfo(zone)).date() + timedelta(days=1), time(), zone)


def time_on(day: date, at: time, zone: str) -> datetime:
    """Return when a zone's clock shows a time on a day, in UTC.

    A time that it shows twice is the first of the two. One that it skips, as clocks are put forward, is as much later
    as they are put forward: 02:30 is 03:30.
    """
    # INVARIANT: in UTC, as Python compares two times of one zone by what the clock shows.
    return datetime.combine(day, at, ZoneInfo(zone)).replace(fold=0).astimezone(UTC)


def next_hour_in(zone: str, at: datetime) -> datetime:
    """Return when a zone's clock next shows a full hour, in UTC."""
    shown = at.astimezone(ZoneInfo(zone))
    past = timedelta(minutes=shown.minute, seconds=shown.second, microseconds=shown.microsecond)
    hour = (at - past + timedelta(hours=1)).astimezone(UTC)
    # Where clocks are put back by half an hour meanwhile, that is not yet a full one.
    left = -hour.astimezone(ZoneInfo(zone)).minute % 60
    return hour + timedelta(minutes=left)


def next_time_in(zone: str, at: time, now: datetime) -> datetime:
    """Return when a zone's clock next shows a time of the day, in UTC; never now."""
    day = now.astimezone(ZoneInfo(zone)).date()
    # A day can be missing in a zone, and a time that is skipped can lie on the day after.
    times = (time_on(day + timedelta(days=number), at, zone) for number in range(-1, 4))
    return min(one for one in times if one > now)
