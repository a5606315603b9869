"""Rendering: templates with everything escaped, what every page shows around itself, and the headers of a page."""

from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Any, cast

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from muniment import __version__
from muniment.access.roles import Verb
from muniment.console.visitors import Visitor

# Nothing from elsewhere, nothing inline: what a memory says cannot run, load or send anything.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; font-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    # Without one, a browser does not say where a form of ours came from, and it would be taken for another site's.
    "Referrer-Policy": "same-origin",
}
# The pages, in the order of the menu, with what each takes.
MENU: tuple[tuple[str, str, tuple[Verb, ...]], ...] = (
    ("queue", "Queue", ("read_queue",)),
    ("contradictions", "Contradictions", ("read_queue",)),
    ("captures", "Captures", ("read_captures",)),
    ("memory", "Memory", ("read_memory",)),
    ("why", "Why visible", ("read_memory",)),
    ("consent", "Consent", ("read_consent",)),
    ("erasures", "Erasure", ("read_erasures",)),
    ("audit", "Audit", ("audit",)),
    ("metrics", "Metrics", ("metrics",)),
    ("packs", "Packs", ("read_packs",)),
)


@cache
def environment() -> Environment:
    """The templates."""
    made = Environment(
        loader=PackageLoader("muniment.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = cast("dict[str, Any]", made.filters)
    for one in (moment, written_moment, ago, lasting, percent, number, label):
        filters[one.__name__] = one
    return made


def page(template: str, visitor: Visitor | None, *, status: int = 200, at: str = "", **shown: Any) -> HTMLResponse:
    """A page; `at` is the part of the menu it belongs to."""
    around: dict[str, Any] = {
        "visitor": visitor,
        "menu": menu(visitor),
        "at": at,
        "version": __version__,
        "now": visitor.fabric.access.now() if visitor is not None else datetime.now(UTC),
        "form_token": visitor.form_token if visitor is not None else "",
    }
    body = environment().get_template(template).render(around | shown)
    return HTMLResponse(body, status, headers=HEADERS)


def menu(visitor: Visitor | None) -> list[tuple[str, str]]:
    """The parts that a visitor may see."""
    if visitor is None:
        return []
    return [(name, title) for name, title, verbs in MENU if any(visitor.may(verb) for verb in verbs)]


@lru_cache(maxsize=1024)
def moment(at: datetime | None) -> Markup:
    """A time in the viewer's zone, which a script puts there; in UTC on hover, and where there is no script."""
    if at is None:
        return Markup("")
    utc = at.astimezone(UTC)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        utc.isoformat(), utc.strftime("%Y-%m-%d %H:%M:%S UTC"), utc.strftime("%Y-%m-%d %H:%M")
    )


def written_moment(written: str) -> Markup | str:
    """The same of one that is written; what is none stays as it is."""
    try:
        at = datetime.fromisoformat(written)
    except ValueError:
        return written
    return moment(at) if at.tzinfo is not None else written


def ago(at: datetime | None, now: datetime) -> Markup:
    """How long ago, or in how long; the time itself on hover."""
    if at is None:
        return Markup("")
    passed = now - at
    told = f"{lasting(passed)} ago" if passed >= timedelta(0) else f"in {lasting(-passed)}"
    utc = at.astimezone(UTC)
    return Markup('<time datetime="{}" title="{}" data-relative>{}</time>').format(
        utc.isoformat(), utc.strftime("%Y-%m-%d %H:%M:%S UTC"), told
    )


def lasting(of: timedelta | float | None) -> str:
    """A length of time in its largest unit."""
    if of is None:
        return ""
    seconds = of.total_seconds() if isinstance(of, timedelta) else float(of)
    for size, unit, digits in ((86400, "d", 1), (3600, "h", 1), (60, "min", 0)):
        # 59.9 minutes are an hour.
        if seconds >= 0.99 * size:
            return f"{seconds / size:.{digits}f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:.0f} s"


def percent(value: float | None) -> str:
    """A share."""
    return "" if value is None else f"{value * 100:.1f} %"


def number(value: float | None) -> str:
    """A number with its thousands apart."""
    if value is None:
        return ""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def label(name: str | None) -> str:
    """A name of ours as words."""
    return (name or "").replace("_", " ")


def highlighted(text: str, begin: int, end: int) -> Markup:
    """A text with a span of it marked."""
    return Markup("{}<mark>{}</mark>{}").format(escape(text[:begin]), escape(text[begin:end]), escape(text[end:]))
