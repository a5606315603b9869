"""How times, numbers and names are written on pages."""

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from markupsafe import Markup

from muniment.model.validity import date_text


@lru_cache(maxsize=1024)
def time(at: datetime | None) -> Markup:
    """A time, in UTC; a script shows it in the viewer's zone."""
    return _time_tag(at, f"{at.astimezone(UTC):%Y-%m-%d %H:%M}") if at is not None else Markup("")


def validity(valid_from: datetime | None, valid_until: datetime | None) -> Markup:
    """When a fact holds in the world: days, months and years as they are, a time of day in the viewer's zone."""
    ends = (("from", valid_from), ("until", valid_until))
    return Markup(" ").join(
        Markup("{} {}").format(word, date_text(at) or time(at)) for word, at in ends if at is not None
    )


def parsed_time(text: str) -> Markup | str:
    """A time given as text; any other text unchanged."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return text
    return time(at) if at.tzinfo is not None else text


def ago(at: datetime | None, now: datetime) -> Markup:
    """How long ago a time was, or how far ahead it is; the time itself on hover."""
    if at is None:
        return Markup("")
    passed = now - at
    text = f"{duration(passed)} ago" if passed >= timedelta(0) else f"in {duration(-passed)}"
    return _time_tag(at, text, Markup(" data-relative"))


def _time_tag(at: datetime, text: str, attribute: Markup | None = None) -> Markup:
    utc = at.astimezone(UTC)
    return Markup('<time datetime="{}" title="{:%Y-%m-%d %H:%M:%S UTC}"{}>{}</time>').format(
        utc.isoformat(), utc, attribute or "", text
    )


def duration(length: timedelta | float | None) -> str:
    """A length of time in its largest unit."""
    if length is None:
        return ""
    seconds = length.total_seconds() if isinstance(length, timedelta) else float(length)
    for size, unit, digits in ((86400, "d", 1), (3600, "h", 1), (60, "min", 0)):
        # 59.9 minutes are shown as an hour.
        if seconds >= 0.99 * size:
            return f"{seconds / size:.{digits}f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:.0f} s"


def percent(value: float | None) -> str:
    """A share between 0 and 1 as a percentage."""
    return "" if value is None else f"{value * 100:.1f}".removesuffix(".0") + " %"


def number(value: float | None) -> str:
    """A number with thousands separators."""
    if value is None:
        return ""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def label(name: str | None) -> str:
    """An identifier as words."""
    return _LABELS.get(name or "", (name or "").replace("_", " "))


def predicate_name(predicate: str) -> str:
    """A predicate as words, without the hash that tells apart what a person may have several of."""
    return label(_HASHED.sub("", predicate))


_HASHED = re.compile(r"\.[0-9a-f]{16}$")

# Identifiers that their own words do not explain.
_LABELS = {
    "approval_mode": "class needs a person's approval",
    "low_confidence": "below the confidence for automatic promotion",
    "operator_source": "from an operator",
    "ended": "retracted or expired",
    "held": "on hold",
    "other_value": "different value",
    "tombstoned": "erased",
}
