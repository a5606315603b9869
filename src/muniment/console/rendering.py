"""Rendering: the Jinja environment with its filters, the page frame with its menu, and the headers of a page."""

from datetime import UTC, datetime
from functools import cache
from typing import Any, cast

from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from muniment import __version__
from muniment.access.roles import Right
from muniment.console.audience import seen_by
from muniment.console.dangers import gate_detail, is_suspicious, recommendation_text, shown, tone_of
from muniment.console.differences import differences
from muniment.console.event_details import event_details, event_ids
from muniment.console.formats import (
    ago,
    duration,
    label,
    number,
    parsed_time,
    percent,
    predicate_name,
    time,
    validity,
)
from muniment.console.spans import pretty
from muniment.console.urls import console_url, time_input_value
from muniment.console.visitors import Visitor
from muniment.model.reads import summary_of

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
    for one in (time, parsed_time, ago, duration, percent, number, label, predicate_name):
        filters[one.__name__] = one
    names |= {"url": console_url, "pretty": pretty, "time_input_value": time_input_value, "differences": differences}
    names |= {"dangers_shown": shown, "danger_tone": tone_of, "is_suspicious": is_suspicious}
    names["gate_detail"] = gate_detail
    names |= {"recommendation_text": recommendation_text, "seen_by": seen_by}
    names |= {"validity": validity, "event_details": event_details, "event_ids": event_ids}
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
        "read_from": summary_of(),
    }
    body = environment().get_template(template).render(frame | context)
    return HTMLResponse(body, status or (400 if problem else 200), headers=HEADERS)


def menu(visitor: Visitor | None) -> list[tuple[str, str]]:
    """The sections that a visitor may see: path and title."""
    return [(name, title) for name, title, verb in MENU if visitor.may(verb)] if visitor is not None else []
