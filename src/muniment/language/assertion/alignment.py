"""Aligns two parsed texts: which elements match, which were substituted for one another, what is left over."""

from collections import defaultdict, deque
from dataclasses import dataclass, field
from typing import NamedTuple

from muniment.language.assertion.dates import Date
from muniment.language.assertion.parse import Element, ParsedText
from muniment.language.assertion.quantities import Quantity
from muniment.language.assertion.vocabulary import ATTRIBUTES, word_relation

# With more leftovers than this on a side the texts differ anyway; it also bounds the work.
_MOST_LEFT = 12
_LONGEST_VALUE = 3


class Substitution(NamedTuple):
    """An element that stands in the place of another, with the code of what kind of substitution it is."""

    one: Element
    other: Element
    reason: str


@dataclass(slots=True)
class Alignment:
    """The elements of two texts: matching pairs, hypernym pairs, substitutions, and what only one side has."""

    pairs: list[tuple[Element, Element]] = field(default_factory=list[tuple[Element, Element]])
    hypernyms: list[tuple[Element, Element]] = field(default_factory=list[tuple[Element, Element]])
    substitutions: list[Substitution] = field(default_factory=list[Substitution])
    left_only: list[Element] = field(default_factory=list[Element])
    right_only: list[Element] = field(default_factory=list[Element])


def align(one: ParsedText, other: ParsedText) -> Alignment:
    """Align two parsed texts: equal elements first, then those that stand in the same position."""
    alignment = Alignment()
    start, end = _common_ends(one.elements, other.elements)
    alignment.pairs += zip(one.elements[:start], other.elements[:start], strict=True)
    if end:
        alignment.pairs += zip(one.elements[-end:], other.elements[-end:], strict=True)
    waiting: dict[str, deque[Element]] = defaultdict(deque)
    for element in other.elements[start : len(other.elements) - end]:
        waiting[element.key].append(element)
    for element in one.elements[start : len(one.elements) - end]:
        matches = waiting.get(element.key)
        if matches:
            alignment.pairs.append((element, matches.popleft()))
        else:
            alignment.left_only.append(element)
    matched = {id(pair[1]) for pair in alignment.pairs}
    alignment.right_only = [element for element in other.elements if id(element) not in matched]
    if (
        alignment.left_only
        and alignment.right_only
        and max(len(alignment.left_only), len(alignment.right_only)) <= _MOST_LEFT
    ):
        _pair_leftovers(alignment, one, other)
    return alignment


def _common_ends(one: list[Element], other: list[Element]) -> tuple[int, int]:
    """Return how many elements are equal from the start and, of the rest, from the end."""
    most = min(len(one), len(other))
    start = 0
    while start < most and one[start].key == other[start].key:
        start += 1
    end = 0
    while end < most - start and one[-1 - end].key == other[-1 - end].key:
        end += 1
    return start, end


def _pair_leftovers(alignment: Alignment, one: ParsedText, other: ParsedText) -> None:
    partner = {id(left): id(right) for left, right in alignment.pairs}
    for element in list(alignment.left_only):
        for candidate in alignment.right_only:
            relation = _relation(element, candidate)
            if relation is None:
                continue
            if relation in ("synonym", "hypernym"):
                (alignment.pairs if relation == "synonym" else alignment.hypernyms).append((element, candidate))
            elif _same_place(element, candidate, one, other, partner):
                alignment.substitutions.append(Substitution(element, candidate, relation))
            else:
                continue
            partner[id(element)] = id(candidate)
            alignment.left_only.remove(element)
            alignment.right_only.remove(candidate)
            break
    _exchange_names(alignment, one, other, partner)


def _relation(one: Element, other: Element) -> str | None:
    if isinstance(one.value, Quantity) and isinstance(other.value, Quantity):
        return "quantity" if one.value.excludes(other.value) else None
    if isinstance(one.value, Date) and isinstance(other.value, Date):
        return "date" if one.value.excludes(other.value) else None
    if one.kind != other.kind or one.kind != "word":
        return None
    relation = word_relation(one.stem, other.stem)
    return "exclusive_alternative" if relation == "alternative" else relation


def _same_place(one: Element, other: Element, ours: ParsedText, theirs: ParsedText, partner: dict[int, int]) -> bool:
    return _meets(one, other, ours, theirs, partner, -1) or _meets(one, other, ours, theirs, partner, 1)


def _meets(
    one: Element, other: Element, ours: ParsedText, theirs: ParsedText, partner: dict[int, int], step: int
) -> bool:
    left, right = one.position + step, other.position + step
    ours_ends = not 0 <= left < len(ours.elements)
    theirs_ends = not 0 <= right < len(theirs.elements)
    if ours_ends or theirs_ends:
        return ours_ends and theirs_ends
    return partner.get(id(ours.elements[left])) == id(theirs.elements[right])


def _exchange_names(alignment: Alignment, one: ParsedText, other: ParsedText, partner: dict[int, int]) -> None:
    """Substitute whole runs of leftovers in the same position: names, codes, or values of an attribute."""
    runs, against = _runs(alignment.left_only), _runs(alignment.right_only)
    for run in runs:
        for opposite in against:
            if not (_is_name(run) and _is_name(opposite)) and not (_is_value(run, one) and _is_value(opposite, other)):
                continue
            starts = _meets(run[0], opposite[0], one, other, partner, -1)
            ends = _meets(run[-1], opposite[-1], one, other, partner, 1)
            if starts and ends:
                alignment.substitutions.append(Substitution(run[0], opposite[0], "named_value"))
                for element in run:
                    alignment.left_only.remove(element)
                for element in opposite:
                    alignment.right_only.remove(element)
                break


def _runs(elements: list[Element]) -> list[list[Element]]:
    runs: list[list[Element]] = []
    for element in elements:
        if runs and element.position == runs[-1][-1].position + 1 and _has_name(element) == _has_name(runs[-1][-1]):
            runs[-1].append(element)
        else:
            runs.append([element])
    return runs


def _is_name(run: list[Element]) -> bool:
    return all(_has_name(element) for element in run)


def _is_value(run: list[Element], parsed: ParsedText) -> bool:
    """Say whether a run follows an attribute directly, as in `the status is ...` or `the position of ...`."""
    first = run[0]
    if (
        first.position == 0
        or len(run) > _LONGEST_VALUE
        or any(element.value or element.form == "ing" for element in run)
    ):
        return False
    before = parsed.elements[first.position - 1]
    return before.stem in ATTRIBUTES and (before.before_be or first.preposition == "of")


def _has_name(element: Element) -> bool:
    return element.kind == "code" or (element.capitalised and element.position > 0)
