"""Explanations: the verdict of every filter in words, and what of it a caller may be told (REC-10)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from muniment.model.explanation import FilterName, FilterVerdict, Visibility
from muniment.recall.visibility import View

# The column that says whether it passed.
_COLUMNS: dict[FilterName, str] = {
    "user": "by_user",
    "session": "by_session",
    "workflow": "by_workflow",
    "intent": "by_intent",
    "classification": "by_label",
    "qualifiers": "by_qualifiers",
    "consent": "consent_allows",
    "content": "has_content",
    "promoted": "is_promoted",
    "retracted": "not_retracted",
    "expired": "not_expired",
    "freshness": "is_fresh",
}
# Those that time moves. Who was let through by all others may know of the rest: it saw the memory, or could have.
_OF_TIME: frozenset[FilterName] = frozenset({"promoted", "retracted", "expired", "freshness"})
# Without a run there is nobody whose filters could be asked.
_OF_NOBODY: frozenset[FilterName] = frozenset({"content", "consent", "promoted", "retracted", "expired"})


def verdicts(row: Mapping[str, Any], view: View | None, at: datetime) -> tuple[FilterVerdict, ...]:
    """Every filter with its inputs; without a view those alone that ask nothing of a run."""
    nothing: dict[FilterName, dict[str, Any]] = {
        name: {"at": at} if name in _OF_TIME else {} for name in _COLUMNS if name in _OF_NOBODY
    }
    asked = _asked(view, row, at) if view is not None else nothing
    return tuple(
        FilterVerdict(name=name, passed=row[column], memory=_memory(name, row), asked=asked[name])
        for name, column in _COLUMNS.items()
        if name in asked
    )


def visibility(found: tuple[FilterVerdict, ...]) -> Visibility:
    """All of them in one word."""
    failed = {one.name for one in found if not one.passed}
    if not failed:
        return "visible"
    stages: tuple[tuple[FilterName, Visibility], ...] = (
        ("content", "tombstoned"),
        ("promoted", "not_yet_promoted"),
        ("retracted", "retracted"),
        ("expired", "expired"),
    )
    for name, word in stages:
        if name in failed:
            return word
    return "hidden"


def may_be_told(found: tuple[FilterVerdict, ...]) -> bool:
    """Whether a run may know that there is such a memory: nothing but time hides it."""
    return all(one.passed or one.name in _OF_TIME for one in found)


def _memory(name: FilterName, row: Mapping[str, Any]) -> dict[str, Any]:
    scope = {"user": "user_id", "session": "session_id", "workflow": "workflow_id", "intent": "intent_id"}
    if name in scope:
        return {scope[name]: row[scope[name]] or None, "tier": row["tier"]}
    match name:
        case "classification":
            return {"classification": row["classification"]}
        case "qualifiers":
            return {"qualifiers": row["qualifiers"] or {}, "required": row["required"] or []}
        case "consent":
            return {"consent_root": row["consent_root"], "classification": row["classification"]}
        case "content":
            return {"tombstoned_at": row["tombstoned_at"]}
        case "promoted":
            return {"promoted_at": row["promoted_at"], "seq": row["born_seq"]}
        case "retracted":
            return {"retracted_at": row["retracted_at"], "seq": row["dead_seq"], "reason": row["reason"]}
        case "expired":
            return {"expires_at": row["ends_at"]}
        case _:
            return {"promoted_at": row["promoted_at"], "tier": row["tier"]}


def _asked(view: View, row: Mapping[str, Any], at: datetime) -> dict[FilterName, dict[str, Any]]:
    return {
        "user": {"users": [user or None for user in view.users]},
        "session": {"session_id": view.session_id or None},
        "workflow": {"workflow_id": view.workflow_id or None},
        "intent": {"intents": [intent or None for intent in view.intents]},
        "classification": {"labels": view.labels},
        "qualifiers": {"qualifiers": view.qualifiers},
        "consent": {"sensitive": view.sensitive},
        "content": {},
        "promoted": {"at": at},
        "retracted": {"at": at},
        "expired": {"at": at},
        "freshness": {"since": view.fresh_since[row["tier"]]},
    }
