"""Rendering: the Jinja environment with its filters, the page frame with its menu, and the headers of a page."""

from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Any, cast

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from muniment import __version__
from muniment.access.roles import Right
from muniment.console.dangers import marked, recommendation_text, seen_by, shown, tone_of
from muniment.console.differences import differences
from muniment.console.spans import pretty
from muniment.console.urls import console_url, time_input_value
from muniment.console.visitors import Visitor
from muniment.model.validity import validity_text

# Only the console's own files and nothing inline: text in a memory cannot run, load or send anything.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; font-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    # Without it browsers send no origin with the console's own forms, which would then be refused as cross-site.
    "Referrer-Policy": "same-origin",
}
# The sections in the order of the menu, with the verb that each needs.
MENU: tuple[tuple[str, str, Right], ...] = (
    ("queue", "Queue", "read_queue"),
    ("contradictions", "Contradictions", "read_queue"),
    ("state", "State and correct", "correct"),
    ("captures", "Captures", "read_captures"),
    ("memory", "Memory", "read_memory"),
    ("why", "Why visible", "read_memory"),
    ("people", "People", "erase"),
    ("consent", "Consent", "read_consent"),
    ("erasures", "Erasure", "read_erasures"),
    ("audit", "Audit", "audit"),
    ("metrics", "Metrics", "metrics"),
    ("packs", "Packs", "read_packs"),
    ("admin", "Administration", "keys"),
    ("me", "My memory", "me"),
    ("notices", "Notices", "notices"),
)


@cache
def environment() -> Environment:
    """The Jinja environment; undefined names are errors."""
    made = Environment(
        loader=PackageLoader("muniment.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters, names = cast("dict[str, Any]", made.filters), cast("dict[str, Any]", made.globals)
    for one in (time, parsed_time, ago, duration, percent, number, label):
        filters[one.__name__] = one
    names |= {"url": console_url, "pretty": pretty, "time_input_value": time_input_value, "differences": differences}
    names |= {"dangers_shown": shown, "danger_tone": tone_of, "marked": marked}
    names |= {"recommendation_text": recommendation_text, "seen_by": seen_by}
    names["validity_text"] = validity_text
    return made


def page(
    template: str, visitor: Visitor | None, *, status: int | None = None, problem: object = None, **context: Any
) -> HTMLResponse:
    """Render a page; with a `problem`, which the page shows, the status is 400 unless another is given."""
    frame: dict[str, Any] = {
        "visitor": visitor,
        "menu": menu(visitor),
        "version": __version__,
        "now": visitor.fabric.access.now() if visitor is not None else datetime.now(UTC),
        "form_token": visitor.form_token if visitor is not None else "",
        "problem": problem,
    }
    body = environment().get_template(template).render(frame | context)
    return HTMLResponse(body, status or (400 if problem else 200), headers=HEADERS)


def menu(visitor: Visitor | None) -> list[tuple[str, str]]:
    """The sections that a visitor may see: path and title."""
    return [(name, title) for name, title, verb in MENU if visitor.may(verb)] if visitor is not None else []


@lru_cache(maxsize=1024)
def time(at: datetime | None) -> Markup:
    """A time, in UTC; a script shows it in the viewer's zone."""
    return _time_tag(at, f"{at.astimezone(UTC):%Y-%m-%d %H:%M}") if at is not None else Markup("")


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
    return "" if value is None else f"{value * 100:.1f} %"


def number(value: float | None) -> str:
    """A number with thousands separators."""
    if value is None:
        return ""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def label(name: str | None) -> str:
    """An identifier as words."""
    return _LABELS.get(name or "", (name or "").replace("_", " "))


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


def highlight(text: str, span: tuple[int, int] | None) -> Markup | str:
    """A text with a span of it marked."""
    if span is None:
        return text
    begin, end = span
    return Markup("{}<mark>{}</mark>{}").format(escape(text[:begin]), escape(text[begin:end]), escape(text[end:]))
