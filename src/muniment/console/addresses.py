"""Addresses: what a page was asked for in its query, and links that ask for a page."""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from fastapi import Request

from muniment.errors import InvalidInput


def asked(request: Request, *names: str) -> dict[str, str]:
    """Those parts of the query, as they were typed; what is not there is empty."""
    return {name: request.query_params.get(name, "").strip() for name in names}


def address(path: str, **query: str | int | datetime | None) -> str:
    """A link to a page of the console; what is None or empty is left out."""
    told = {name: stamp(value) if isinstance(value, datetime) else str(value) for name, value in query.items() if value}
    return f"/console/{path}" + (f"?{urlencode(told)}" if told else "")


def stamp(at: datetime) -> str:
    """A moment as it stands in an address, none of it lost."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def instant(written: str, field: str) -> datetime | None:
    """A moment; without a zone it is one of UTC; None if it was left empty; raises `InvalidInput`."""
    if not written:
        return None
    try:
        found = datetime.fromisoformat(written)
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput("expected a date and a time, such as 2026-01-31T12:00", field=field) from None


def field(written: str) -> str:
    """A moment as a field for a date and a time shows it, in UTC; empty for what is none.

    Rounded up to what such a field can hold, so that what began at it has begun.
    """
    try:
        at = instant(written, "")
        if at is None:
            return ""
        up = -at.microsecond % 1000
        local = (at + timedelta(microseconds=up)).replace(tzinfo=None)
    except (InvalidInput, OverflowError):
        return ""
    return local.isoformat(timespec="milliseconds" if local.microsecond else "seconds")
