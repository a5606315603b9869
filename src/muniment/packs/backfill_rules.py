"""What a later ontology changes in a fact: its predicate, its type, or that it is dropped (JOB-8)."""

import re
from dataclasses import dataclass
from datetime import date
from math import isfinite
from typing import Any, cast

from muniment.model.backfill import Change
from muniment.model.ids import CEID_PATTERN, holds_card_number
from muniment.pack import Pack
from muniment.pack.schema import ValueType

_WHOLE, _DECIMAL = re.compile(r"[+-]?\d{1,300}"), re.compile(r"[+-]?\d{1,30}\.\d{1,30}(?:[eE][+-]?\d{1,3})?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TRUE, _FALSE = frozenset({"true", "yes"}), frozenset({"false", "no"})


@dataclass(frozen=True)
class Step:
    """The change to a fact: its new predicate and value, or (`failed`) why the value cannot have the new type."""

    change: Change
    predicate: str
    value: Any = None
    failed: str | None = None


class _Unfit(Exception):
    """The value cannot be converted to the type."""


def concerned(pack: Pack) -> list[str]:
    """The predicates, by their present names, whose facts may have to change."""
    ontology = pack.ontology
    renamed = [old for one in ontology.predicates.values() for old in one.renamed_from]
    typed = [name for name, one in ontology.predicates.items() if one.type != "any"]
    return sorted({*ontology.dropped, *renamed, *typed})


def step(predicate: str, value: Any, pack: Pack) -> Step | None:
    """The change that the pack's ontology makes to a fact; None if it stays as it is."""
    ontology = pack.ontology
    if predicate in ontology.dropped:
        return Step("dropped", predicate, value)
    name = next((new for new, one in ontology.predicates.items() if predicate in one.renamed_from), predicate)
    declared = ontology.predicates.get(name)
    change: Change = "renamed" if name != predicate else "retyped"
    try:
        # An evidence link has a name and no value.
        converted = _as(declared.type, value) if declared is not None and value is not None else value
    except _Unfit:
        assert declared is not None
        return Step(change, name, value, failed=f"not_a_{declared.type}")
    if name == predicate and type(converted) is type(value) and converted == value:
        return None
    return Step(change, name, converted)


def _as(wanted: ValueType, value: Any) -> Any:
    """Convert the value to the type; raises `_Unfit` if anything would be lost."""
    match wanted:
        case "any":
            return value
        case "string":
            return _text(value)
        case "number":
            return _number(value)
        case "boolean":
            return _boolean(value)
        case "date" if isinstance(value, str) and _DATE.fullmatch(value.strip()):
            try:
                return date.fromisoformat(value.strip()).isoformat()
            except ValueError:
                raise _Unfit from None
        case "ceid" if isinstance(value, str) and re.fullmatch(CEID_PATTERN, value) and not holds_card_number(value):
            return value
        case "object" if isinstance(value, dict):
            return cast("dict[str, Any]", value)
        case _:
            raise _Unfit


def _text(value: Any) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case float() if value.is_integer():
            return str(int(value))
        case int() | float():
            return str(value)
        case _:
            raise _Unfit


def _number(value: Any) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    written = value.strip() if isinstance(value, str) else ""
    if _WHOLE.fullmatch(written):
        return int(written)
    if _DECIMAL.fullmatch(written) and isfinite(number := float(written)):
        return number
    raise _Unfit


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    said = value.strip().casefold() if isinstance(value, str) else ""
    if said in _TRUE | _FALSE:
        return said in _TRUE
    raise _Unfit
