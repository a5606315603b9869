"""Quantities: a number, or a span of numbers, of something, brought to one unit of its dimension."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from muniment.language.assertion.lexicon import words
from muniment.language.assertion.lexicon.numbers import CARDINALS, ORDINALS, SCALES, SIGNS, UNITS
from muniment.language.assertion.tokens import Token

_GLUED = re.compile(r"^([\d.,]+)(st|nd|rd|th|k|m|bn|kg|g|km|cm|mm|ml|l|gb|mb|tb|h|min)?$")
_GLUED_UNITS = {"h": "hour"}
_GLUED_SCALES = {"k": 1e3, "bn": 1e9}
_BOUNDS = {
    "at_least": "low", "more_than": "low", "over": "low", "above": "low", "exceeding": "low",
    "at_most": "high", "less_than": "high", "under": "high", "below": "high",
}  # fmt: skip
_ABOUT = words("about approximately around roughly approx circa nearly almost some")
_STARTS = frozenset((*CARDINALS, *ORDINALS, *SCALES, *SIGNS, *_BOUNDS, *_ABOUT))
_DAYS_OF_A_MONTH = 30.44 * 86400


@dataclass(frozen=True, slots=True)
class Quantity:
    """From `low` to `high` of a dimension; `count` is a bare number, `ordinal` a place in a row."""

    low: float
    high: float
    dimension: str
    loose: bool = False

    @property
    def key(self) -> str:
        """What two equal quantities share."""
        return f"#{self.low}|{self.high}|{self.dimension}|{self.loose}"

    def excludes(self, other: "Quantity") -> bool:
        """Whether no number is both, or both are the same kind of limit; other dimensions are not compared."""
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


def quantity_at(found: Sequence[Token], place: int) -> tuple[int, Quantity] | None:
    """The quantity that begins here and how many tokens it takes; None where none does."""
    first = found[place]
    if first.kind == "word" and first.low not in _STARTS and "-" not in first.low:
        return None
    start, bound, loose = place, "", False
    while place < len(found) and place - start < 2 and found[place].low in _BOUNDS.keys() | _ABOUT:
        bound, loose = _BOUNDS.get(found[place].low, bound), loose or found[place].low in _ABOUT
        place += 1
    sign = found[place].low if place < len(found) and found[place].low in SIGNS else ""
    number = _number_at(found, place + bool(sign))
    if number is None:
        return None
    length, value, unit = number
    place += bool(sign) + length
    high = value
    second = _second(found, place)
    if second is not None and second[1] >= value:
        place, high, unit = second
    dimension, factor, used = _unit(found, place, unit, sign)
    place += used
    if place < len(found) and found[place].low in ("or_more", "or_less"):
        bound, place = ("low" if found[place].low == "or_more" else "high"), place + 1
    low, high = sorted((value * factor, high * factor))
    if bound == "low":
        high = math.inf
    elif bound == "high":
        low = -math.inf
    return place - start, Quantity(low, high, dimension, loose)


def _second(found: Sequence[Token], place: int) -> tuple[int, float, str] | None:
    # `3 to 5 days`, `3 - 5 days`; `three to four` is a span too, `30 to Berlin` is not.
    if place + 1 < len(found) and found[place].low == "to":
        number = _number_at(found, place + 1)
        if number is not None and number[2] != "ordinal":
            return place + 1 + number[0], number[1], number[2]
    return None


def _unit(found: Sequence[Token], place: int, unit: str, sign: str) -> tuple[str, float, int]:
    if unit == "ordinal":
        return "ordinal", 1.0, 0
    if sign:
        same = place < len(found) and UNITS.get(found[place].low) == UNITS[sign]
        return *UNITS[sign], int(same)
    if unit:
        return *UNITS[unit], 0
    if place < len(found) and found[place].low in UNITS:
        return *UNITS[found[place].low], 1
    return "count", 1.0, 0


def _number_at(found: Sequence[Token], place: int) -> tuple[int, float, str] | None:
    if place >= len(found):
        return None
    token = found[place]
    if token.kind == "number":
        return _digits(found, place)
    if token.kind != "word":
        return None
    return _words(found, place)


def _digits(found: Sequence[Token], place: int) -> tuple[int, float, str] | None:
    match = _GLUED.match(found[place].low.lstrip("+-"))
    if match is None:
        return None
    value = float(match[1].replace(",", ""))
    if found[place].low.startswith("-"):
        value = -value
    ending = match[2] or ""
    if ending in ("st", "nd", "rd", "th"):
        return 1, value, "ordinal"
    length = 1
    value *= _GLUED_SCALES.get(ending, 1.0)
    while place + length < len(found) and found[place + length].low in SCALES and ending == "":
        value *= SCALES[found[place + length].low]
        length += 1
    unit = _GLUED_UNITS.get(ending, ending)
    return length, value, unit if unit in UNITS else ""


def _words(found: Sequence[Token], place: int) -> tuple[int, float, str] | None:
    total = current = 0.0
    length, seen, ordinal = 0, False, False
    while place + length < len(found) and found[place + length].kind == "word" and not ordinal:
        parts = found[place + length].low.split("-")
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
        elif not (parts[0] == "and" and seen and current >= 100 and _more(found, place + length + 1)):
            break
        length += 1
    if not seen:
        return None
    return length, total + current, "ordinal" if ordinal else ""


def _more(found: Sequence[Token], place: int) -> bool:
    return place < len(found) and found[place].low.split("-")[0] in CARDINALS
