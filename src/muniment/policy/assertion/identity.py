"""When two readings say the same: nothing left over, nothing exchanged, the same order, tense and polarity."""

from itertools import groupby

from muniment.policy.assertion.alignment import Alignment
from muniment.policy.assertion.judgement import Judgement
from muniment.policy.assertion.lexicon import words
from muniment.policy.assertion.lexicon.function_words import PREPOSITION_KIN
from muniment.policy.assertion.reading import Element, Reading
from muniment.policy.assertion.scoping import narrows
from muniment.policy.assertion.vocabulary import LIGHT_IN_QUESTIONS

# Prepositions that can be left out without a change of roles.
_OPTIONAL = words("in on at of during within about like as")


def identity(one: Reading, other: Reading, found: Alignment) -> Judgement:
    """`same` where every part of either has its like in the other, else `different` with the first reason."""
    reason = _apart(one, other, found)
    return Judgement("same", ("rewording",)) if reason is None else Judgement("different", (reason,))


def _apart(one: Reading, other: Reading, found: Alignment) -> str | None:
    leftovers = [*found.left, *found.right]
    if one.question and other.question:
        leftovers = [element for element in leftovers if element.stem not in LIGHT_IN_QUESTIONS]
    if leftovers or found.wider or not found.pairs:
        return _of_leftovers(leftovers)
    if one.negations % 2 != other.negations % 2 or any(left.negated != right.negated for left, right in found.pairs):
        return "polarity"
    if one.tense ^ other.tense and not _tense_alike(one, other):
        return "tense"
    if one.pronouns != other.pronouns:
        return "other_content"
    if not one.question and any(_other_tense(left, right) for left, right in found.pairs):
        return "tense"
    if any(_other_name(left, right) for left, right in found.pairs):
        return "named_value"
    alike = all(_prepositions_alike(left, right, asked=one.question) for left, right in found.pairs)
    return None if alike and _order_alike(one, other) else "other_content"


def _of_leftovers(leftovers: list[Element]) -> str:
    kinds = {element.kind for element in leftovers}
    if kinds & {"quantity", "date"}:
        return "quantity" if "quantity" in kinds else "date"
    if any(element.name or element.kind == "code" for element in leftovers):
        return "named_value"
    return "scope_differs" if any(map(narrows, leftovers)) else "other_content"


def _tense_alike(one: Reading, other: Reading) -> bool:
    apart = one.tense ^ other.tense
    return not apart & {"former", "future", "ceased"} and not ("past" in apart and "present" in apart)


def _other_tense(one: Element, other: Element) -> bool:
    forms = {one.form, other.form}
    if "past" not in forms:
        return False
    # `invited` and `was invited` turn the roles round.
    return len(forms) > 1 or one.after_be != other.after_be


def _other_name(one: Element, other: Element) -> bool:
    """Whether words of one stem or sense are names, which are themselves or nothing."""
    if one.low == other.low:
        return False
    return one.name or other.name or (one.capital and other.capital and one.stem == other.stem)


def _prepositions_alike(one: Element, other: Element, *, asked: bool) -> bool:
    left, right = one.preposition, other.preposition
    if left == right:
        return True
    if not left or not right:
        return asked or (left or right) in _OPTIONAL
    return PREPOSITION_KIN.get(left, left) == PREPOSITION_KIN.get(right, right)


def _order_alike(one: Reading, other: Reading) -> bool:
    ours, theirs = _chunks(one), _chunks(other)
    if [key for chunk in ours for key in chunk[1:]] == [key for chunk in theirs for key in chunk[1:]]:
        return True
    return _moved(ours, theirs) or _moved(theirs, ours)


def _moved(ours: list[tuple[str, ...]], theirs: list[tuple[str, ...]]) -> bool:
    """Whether they differ only in a phrase with a preposition that opens one and ends the other."""
    return bool(ours) and ours[0][0] != "" and [*ours[1:], ours[0]] == theirs


def _chunks(reading: Reading) -> list[tuple[str, ...]]:
    light = LIGHT_IN_QUESTIONS if reading.question else frozenset[str]()
    kept = [element for element in reading.elements if element.stem not in light]
    runs = (list(run) for _, run in groupby(kept, key=lambda element: element.chunk))
    return [(run[0].preposition, *(element.key for element in run)) for run in runs]
