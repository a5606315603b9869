"""Console URLs: reading their query, building them, and times in them."""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

from fastapi import Request

from muniment.errors import InvalidInput


def query_fields(request: Request, *names: str) -> dict[str, str]:
    """Those fields of the query without surrounding space; an absent one is empty."""
    return {name: request.query_params.get(name, "").strip() for name in names}


def console_url(path: str, **query: str | int | datetime | None) -> str:
    """The URL of a console page; empty query fields are left out."""
    texts = {
        name: format_time(value) if isinstance(value, datetime) else str(value)
        for name, value in query.items()
        if value
    }
    return f"/console/{path}" + (f"?{urlencode(texts)}" if texts else "")


def format_time(at: datetime) -> str:
    """A time as a query carries it: UTC, to the microsecond."""
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")


def parse_time(text: str, field: str) -> datetime | None:
    """Parse a time, UTC unless it names a zone; None if it is empty; raises `InvalidInput`."""
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise InvalidInput("expected a date and a time, such as 2026-01-31T12:00", field=field) from None


def time_input_value(text: str) -> str:
    """A time as the value of a `datetime-local` input, in UTC; empty for what is not a time.

    Rounded up to the milliseconds that the input can hold, so that it is never before what began at that time.
    """
    try:
        at = parse_time(text, "")
        if at is None:
            return ""
        local = (at + timedelta(microseconds=-at.microsecond % 1000)).replace(tzinfo=None)
    except (InvalidInput, OverflowError):
        return ""
    return local.isoformat(timespec="milliseconds" if local.microsecond else "seconds")
