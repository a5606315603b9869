"""The types that an ontology gives to values: whether a value has its type, and its conversion without loss."""

import re
from datetime import date
from math import isfinite
from typing import Any, cast

from muniment.model.ids import CEID_PATTERN, holds_card_number
from muniment.pack.schema import ValueType

_WHOLE, _DECIMAL = re.compile(r"[+-]?\d{1,300}"), re.compile(r"[+-]?\d{1,30}\.\d{1,30}(?:[eE][+-]?\d{1,3})?")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_TRUE, _FALSE = frozenset({"true", "yes"}), frozenset({"false", "no"})


class Unfit(Exception):
    """The value cannot be converted to the type."""


def has_type(wanted: ValueType, value: Any) -> bool:
    """Whether a value is of the type as it stands."""
    try:
        converted = convert(wanted, value)
    except Unfit:
        return False
    return type(converted) is type(value) and converted == value


def convert(wanted: ValueType, value: Any) -> Any:
    """Convert the value to the type; raises `Unfit` if anything would be lost."""
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
                raise Unfit from None
        case "ceid" if isinstance(value, str) and re.fullmatch(CEID_PATTERN, value) and not holds_card_number(value):
            return value
        case "object" if isinstance(value, dict):
            return cast("dict[str, Any]", value)
        case _:
            raise Unfit


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
            raise Unfit


def _number(value: Any) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    written = value.strip() if isinstance(value, str) else ""
    if _WHOLE.fullmatch(written):
        return int(written)
    if _DECIMAL.fullmatch(written) and isfinite(number := float(written)):
        return number
    raise Unfit


def _boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    said = value.strip().casefold() if isinstance(value, str) else ""
    if said in _TRUE | _FALSE:
        return said in _TRUE
    raise Unfit
