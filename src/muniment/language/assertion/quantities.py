"""Recognises quantities in a list of tokens: a number or a range, converted to the base unit of its dimension."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from muniment.language.assertion.lexicon import CARDINALS, CURRENCY_SIGNS, ORDINALS, SCALES, UNITS
from muniment.language.assertion.tokens import Token
from muniment.language.data_files import word_set

_GLUED = re.compile(r"^([\d.,]+)(st|nd|rd|th|k|m|bn|kg|g|km|cm|mm|ml|l|gb|mb|tb|h|min)?$")
_GLUED_UNITS = {"h": "hour"}
_GLUED_SCALES = {"k": 1e3, "bn": 1e9}
_BOUNDS = {
    "at_least": "low", "more_than": "low", "over": "low", "above": "low", "exceeding": "low",
    "at_most": "high", "less_than": "high", "under": "high", "below": "high",
}  # fmt: skip
_ABOUT = word_set("about approximately around roughly approx circa nearly almost some")
_STARTS = frozenset((*CARDINALS, *ORDINALS, *SCALES, *CURRENCY_SIGNS, *_BOUNDS, *_ABOUT))
_DAYS_OF_A_MONTH = 30.44 * 86400


@dataclass(frozen=True, slots=True)
class Quantity:
    """A range from `low` to `high` in a dimension; `count` is a bare number, `ordinal` a rank; `loose` means about."""

    low: float
    high: float
    dimension: str
    loose: bool = False

    @property
    def key(self) -> str:
        """A text that equal quantities share."""
        return f"#{self.low}|{self.high}|{self.dimension}|{self.loose}"

    def excludes(self, other: "Quantity") -> bool:
        """Say whether no number fits both ranges, or both are limits of the same kind; dimensions must match."""
        if self.dimension == other.dimension and self._is_same_bound(other):
            return (self.low, self.high) != (other.low, other.high)
        one, two = self._comparable(other), other._comparable(self)
        if one is None or two is None:
            return False
        slack = 0.1 if self.loose or other.loose or self.dimension != other.dimension else 0.0
        return one[1] < two[0] * (1 - slack) or two[1] < one[0] * (1 - slack)

    def _is_same_bound(self, other: "Quantity") -> bool:
        # `at least 8` and `at least 12` overlap, but as rules only one of them can hold.
        return (self.low == other.low == -math.inf) or (self.high == other.high == math.inf)

    def _comparable(self, other: "Quantity") -> tuple[float, float] | None:
        if self.dimension == other.dimension:
            return self.low, self.high
        if {self.dimension, other.dimension} == {"time", "calendar"}:
            factor = _DAYS_OF_A_MONTH if self.dimension == "calendar" else 1.0
            return self.low * factor, self.high * factor
        return None


def quantity_at(tokens: Sequence[Token], position: int) -> tuple[int, Quantity] | None:
    """Return the length in tokens and the value of the quantity at this position; None where none begins."""
    first = tokens[position]
    if first.kind == "word" and first.lower not in _STARTS and "-" not in first.lower:
        return None
    start, bound, loose = position, "", False
    while position < len(tokens) and position - start < 2 and tokens[position].lower in _BOUNDS.keys() | _ABOUT:
        bound, loose = _BOUNDS.get(tokens[position].lower, bound), loose or tokens[position].lower in _ABOUT
        position += 1
    sign = tokens[position].lower if position < len(tokens) and tokens[position].lower in CURRENCY_SIGNS else ""
    number = _number_at(tokens, position + bool(sign))
    if number is None:
        return None
    length, value, unit = number
    position += bool(sign) + length
    high = value
    second = _second(tokens, position)
    if second is not None and second[1] >= value:
        position, high, unit = second
    dimension, factor, used = _unit(tokens, position, unit, sign)
    position += used
    if position < len(tokens) and tokens[position].lower in ("or_more", "or_less"):
        bound, position = ("low" if tokens[position].lower == "or_more" else "high"), position + 1
    low, high = sorted((value * factor, high * factor))
    if bound == "low":
        high = math.inf
    elif bound == "high":
        low = -math.inf
    return position - start, Quantity(low, high, dimension, loose)


def _second(tokens: Sequence[Token], position: int) -> tuple[int, float, str] | None:
    # `3 to 5 days`, `3 - 5 days`; `three to four` is a span too, `30 to Berlin` is not.
    if position + 1 < len(tokens) and tokens[position].lower == "to":
        number = _number_at(tokens, position + 1)
        if number is not None and number[2] != "ordinal":
            return position + 1 + number[0], number[1], number[2]
    return None


def _unit(tokens: Sequence[Token], position: int, unit: str, sign: str) -> tuple[str, float, int]:
    if unit == "ordinal":
        return "ordinal", 1.0, 0
    if sign:
        same = position < len(tokens) and UNITS.get(tokens[position].lower) == UNITS[sign]
        return *UNITS[sign], int(same)
    if unit:
        return *UNITS[unit], 0
    if position < len(tokens) and tokens[position].lower in UNITS:
        return *UNITS[tokens[position].lower], 1
    return "count", 1.0, 0


def _number_at(tokens: Sequence[Token], position: int) -> tuple[int, float, str] | None:
    if position >= len(tokens):
        return None
    token = tokens[position]
    if token.kind == "number":
        return _digits(tokens, position)
    if token.kind != "word":
        return None
    return _words(tokens, position)


def _digits(tokens: Sequence[Token], position: int) -> tuple[int, float, str] | None:
    match = _GLUED.match(tokens[position].lower.lstrip("+-"))
    if match is None:
        return None
    value = float(match[1].replace(",", ""))
    if tokens[position].lower.startswith("-"):
        value = -value
    ending = match[2] or ""
    if ending in ("st", "nd", "rd", "th"):
        return 1, value, "ordinal"
    length = 1
    value *= _GLUED_SCALES.get(ending, 1.0)
    while position + length < len(tokens) and tokens[position + length].lower in SCALES and ending == "":
        value *= SCALES[tokens[position + length].lower]
        length += 1
    unit = _GLUED_UNITS.get(ending, ending)
    return length, value, unit if unit in UNITS else ""


def _words(tokens: Sequence[Token], position: int) -> tuple[int, float, str] | None:
    total = current = 0.0
    length, seen, ordinal = 0, False, False
    while position + length < len(tokens) and tokens[position + length].kind == "word" and not ordinal:
        parts = tokens[position + length].lower.split("-")
        if all(part in CARDINALS or part in ORDINALS for part in parts):
            added = sum(CARDINALS.get(part, ORDINALS.get(part, 0)) for part in parts)
            if seen and current % 100 and not (current % 10 == 0 and added < 10):
                break
            current, seen, ordinal = current + added, True, parts[-1] in ORDINALS
        elif parts[0] in SCALES and len(parts) == 1 and parts[0] != "k" and (seen or parts[0] in ("dozen", "hundred")):
            scale = SCALES[parts[0]]
            current = max(current, 1) * scale
            if scale >= 1000:
                total, current = total + current, 0.0
            seen = True
        elif not (parts[0] == "and" and seen and current >= 100 and _more(tokens, position + length + 1)):
            break
        length += 1
    if not seen:
        return None
    return length, total + current, "ordinal" if ordinal else ""


def _more(tokens: Sequence[Token], position: int) -> bool:
    return position < len(tokens) and tokens[position].lower.split("-")[0] in CARDINALS
