"""Which parts of two readings say the same, which were exchanged for one another, and what is left over."""

from collections import defaultdict, deque
from dataclasses import dataclass, field

from muniment.language.assertion.dates import Date
from muniment.language.assertion.quantities import Quantity
from muniment.language.assertion.reading import Element, Reading
from muniment.language.assertion.vocabulary import ATTRIBUTES, kinship

# More leftovers than this on a side are two different texts; it also bounds the work.
_MOST_LEFT = 12
_LONGEST_VALUE = 3


@dataclass(slots=True)
class Exchange:
    """Something that stands in the place of something else, and what kind of thing it is."""

    one: Element
    other: Element
    reason: str


@dataclass(slots=True)
class Alignment:
    """Two readings laid side by side."""

    pairs: list[tuple[Element, Element]] = field(default_factory=list[tuple[Element, Element]])
    wider: list[tuple[Element, Element]] = field(default_factory=list[tuple[Element, Element]])
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    left: list[Element] = field(default_factory=list[Element])
    right: list[Element] = field(default_factory=list[Element])


def align(one: Reading, other: Reading) -> Alignment:
    """The two readings side by side: equal parts first, then what stands in the same place."""
    found = Alignment()
    start, end = _common_ends(one.elements, other.elements)
    found.pairs += zip(one.elements[:start], other.elements[:start], strict=True)
    if end:
        found.pairs += zip(one.elements[-end:], other.elements[-end:], strict=True)
    waiting: dict[str, deque[Element]] = defaultdict(deque)
    for element in other.elements[start : len(other.elements) - end]:
        waiting[element.key].append(element)
    for element in one.elements[start : len(one.elements) - end]:
        matches = waiting.get(element.key)
        if matches:
            found.pairs.append((element, matches.popleft()))
        else:
            found.left.append(element)
    matched = {id(pair[1]) for pair in found.pairs}
    found.right = [element for element in other.elements if id(element) not in matched]
    if found.left and found.right and max(len(found.left), len(found.right)) <= _MOST_LEFT:
        _pair_leftovers(found, one, other)
    return found


def _common_ends(one: list[Element], other: list[Element]) -> tuple[int, int]:
    """How many parts are equal from the start and, of the rest, from the end."""
    most = min(len(one), len(other))
    start = 0
    while start < most and one[start].key == other[start].key:
        start += 1
    end = 0
    while end < most - start and one[-1 - end].key == other[-1 - end].key:
        end += 1
    return start, end


def _pair_leftovers(found: Alignment, one: Reading, other: Reading) -> None:
    partner = {id(left): id(right) for left, right in found.pairs}
    for element in list(found.left):
        for candidate in found.right:
            kin = _kin(element, candidate)
            if kin is None:
                continue
            if kin in ("synonym", "wider"):
                (found.pairs if kin == "synonym" else found.wider).append((element, candidate))
            elif _same_place(element, candidate, one, other, partner):
                found.exchanges.append(Exchange(element, candidate, kin))
            else:
                continue
            partner[id(element)] = id(candidate)
            found.left.remove(element)
            found.right.remove(candidate)
            break
    _exchange_names(found, one, other, partner)


def _kin(one: Element, other: Element) -> str | None:
    if isinstance(one.value, Quantity) and isinstance(other.value, Quantity):
        return "quantity" if one.value.excludes(other.value) else None
    if isinstance(one.value, Date) and isinstance(other.value, Date):
        return "date" if one.value.excludes(other.value) else None
    if one.kind != other.kind or one.kind != "word":
        return None
    kin = kinship(one.stem, other.stem)
    return "exclusive_alternative" if kin == "alternative" else kin


def _same_place(one: Element, other: Element, ours: Reading, theirs: Reading, partner: dict[int, int]) -> bool:
    return _meets(one, other, ours, theirs, partner, -1) or _meets(one, other, ours, theirs, partner, 1)


def _meets(one: Element, other: Element, ours: Reading, theirs: Reading, partner: dict[int, int], step: int) -> bool:
    left, right = one.place + step, other.place + step
    ours_ends = not 0 <= left < len(ours.elements)
    theirs_ends = not 0 <= right < len(theirs.elements)
    if ours_ends or theirs_ends:
        return ours_ends and theirs_ends
    return partner.get(id(ours.elements[left])) == id(theirs.elements[right])


def _exchange_names(found: Alignment, one: Reading, other: Reading, partner: dict[int, int]) -> None:
    """A whole run of leftovers on either side in the same place: names, codes, or any value of an attribute."""
    runs, against = _runs(found.left), _runs(found.right)
    for run in runs:
        for opposite in against:
            if not (_is_name(run) and _is_name(opposite)) and not (_is_value(run, one) and _is_value(opposite, other)):
                continue
            starts = _meets(run[0], opposite[0], one, other, partner, -1)
            ends = _meets(run[-1], opposite[-1], one, other, partner, 1)
            if starts and ends:
                found.exchanges.append(Exchange(run[0], opposite[0], "named_value"))
                for element in run:
                    found.left.remove(element)
                for element in opposite:
                    found.right.remove(element)
                break


def _runs(elements: list[Element]) -> list[list[Element]]:
    runs: list[list[Element]] = []
    for element in elements:
        if runs and element.place == runs[-1][-1].place + 1 and _has_name(element) == _has_name(runs[-1][-1]):
            runs[-1].append(element)
        else:
            runs.append([element])
    return runs


def _is_name(run: list[Element]) -> bool:
    return all(_has_name(element) for element in run)


def _is_value(run: list[Element], reading: Reading) -> bool:
    """Whether it stands right behind an attribute, as in `the status is ...` or `the position of ...`."""
    first = run[0]
    if first.place == 0 or len(run) > _LONGEST_VALUE or any(element.value or element.form == "ing" for element in run):
        return False
    before = reading.elements[first.place - 1]
    return before.stem in ATTRIBUTES and (before.before_be or first.preposition == "of")


def _has_name(element: Element) -> bool:
    return element.kind == "code" or (element.capital and element.place > 0)
