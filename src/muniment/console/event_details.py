"""The details of an event as a list: a page of the log has many hundred values, for which a template takes long."""

from collections.abc import Mapping, Sequence
from typing import Any, cast
from urllib.parse import quote

from markupsafe import Markup, escape

from muniment.console.formats import label, number, parsed_time

# Ids whose events a link leads to.
_IDS = ("cap_", "mc_", "mwp_", "rv_", "ctr_", "cns_", "rcl_", "era_")
_NAMED = ("pm_", *_IDS)
_SUBJECTS = ("subject", "entity", "user_id", "pack", "key_id")
# So many of a list are shown.
_SHOWN = 5
_LIST, _END = Markup('<dl class="facts compact">'), Markup("</dl>")
_TERM, _VALUE, _NEXT = Markup("<dt>"), Markup("</dt><dd>"), Markup("</dd>\n")
_TEXT, _TEXT_END = Markup('<span class="user-text">'), Markup("</span>")
_TRAIL = Markup('<a class="mono" href="/console/audit/trail?memory_id=')
_ABOUT = Markup('<a class="mono" href="/console/audit?about=')
_YES, _NO = Markup("yes"), Markup("no")
_SHOWS, _LINK_END, _COMMA = Markup('">'), Markup("</a>"), Markup(", ")


def event_details(data: Mapping[str, Any]) -> Markup:
    """The details of one thing that happened; whatever stands in them is escaped."""
    rows = [
        _TERM + label(key) + _VALUE + _shown(key, value) + _NEXT for key, value in data.items() if value is not None
    ]
    return _LIST + Markup().join(rows) + _END


def event_ids(items: Sequence[Mapping[str, Any]]) -> Markup:
    """The ids that an event names, each once, and whom it is about: the first few, for a dense list."""
    named = [
        value
        for item in items[:_SHOWN]
        for key, values in item.items()
        for value in (cast("Sequence[Any]", values)[:_SHOWN] if isinstance(values, list | tuple) else (values,))
        if isinstance(value, str) and (key in _SUBJECTS or value.startswith(_NAMED))
    ]
    ids = list(dict.fromkeys(named))[:_SHOWN]
    more = len(items) - _SHOWN
    rest = Markup(' <span class="muted">and those of {} more</span>').format(number(more)) if more > 0 else ""
    return _COMMA.join([_one(one) for one in ids]) + rest


def _shown(key: str, value: Any) -> Markup:
    if isinstance(value, list | tuple):
        several = cast("Sequence[Any]", value)
        some, more = _COMMA.join([_one(one) for one in several[:_SHOWN]]), len(several) - _SHOWN
        rest = Markup(' <span class="muted">and {} more</span>').format(number(more)) if more > 0 else ""
        return (some or Markup("none")) + rest
    if isinstance(value, str) and key.endswith("_at"):
        return escape(parsed_time(value))
    return _one(value)


def _one(value: Any) -> Markup:
    if isinstance(value, bool):
        return _YES if value else _NO
    if isinstance(value, Mapping):
        parts = cast("Mapping[str, Any]", value)
        return _COMMA.join(
            [
                Markup("{} {}").format(label(key), _one(inner) if isinstance(inner, bool) else inner)
                for key, inner in parts.items()
            ]
        )
    if isinstance(value, str) and value.startswith("pm_"):
        return _TRAIL + quote(value) + _SHOWS + value + _LINK_END
    if isinstance(value, str) and value.startswith(_IDS):
        return _ABOUT + quote(value) + _SHOWS + value + _LINK_END
    return _TEXT + escape(value) + _TEXT_END
