"""When two readings say the same: nothing left over, nothing exchanged, the same order, tense and polarity."""

from muniment.language.assertion.alignment import Alignment
from muniment.language.assertion.judgement import Judgement
from muniment.language.assertion.lexicon import words
from muniment.language.assertion.lexicon.function_words import AFTER_VERBS, INSIDE, ON_TOP, PREPOSITION_KIN
from muniment.language.assertion.lexicon.irregular import UNCHANGED
from muniment.language.assertion.ordering import order_alike
from muniment.language.assertion.reading import Element, Reading
from muniment.language.assertion.scoping import narrows
from muniment.language.assertion.vocabulary import LIGHT_IN_QUESTIONS, LIGHT_KINDS

# Prepositions that can be left out without a change of roles.
_OPTIONAL = words("in on at of during within about like as")
# Prepositions that turn even a question round.
_OPPOSED = ({"from", "to"}, {"from", "in"}, {"from", "for"}, {"for", "against"}, {"with", "against"})


def identity(one: Reading, other: Reading, found: Alignment) -> Judgement:
    """`same` where every part of either has its like in the other, else `different` with the first reason."""
    reason = _apart(one, other, found)
    return Judgement("same", ("rewording",)) if reason is None else Judgement("different", (reason,))


def _apart(one: Reading, other: Reading, found: Alignment) -> str | None:
    leftovers = [*found.left, *found.right]
    if one.question and other.question:
        leftovers = _heavy(one, found.left, found.right) + _heavy(other, found.right, found.left)
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
    turned = order_alike(one, other, found, LIGHT_IN_QUESTIONS if one.question else frozenset())
    if turned is None:
        return "other_content"
    alike = all(
        id(left) in turned or _prepositions_alike(left, right, _before(left, one), asked=one.question)
        for left, right in found.pairs
    )
    return None if alike else "other_content"


def _before(element: Element, reading: Reading) -> str:
    return reading.elements[element.place - 1].key if element.place else ""


def _heavy(reading: Reading, left: list[Element], against: list[Element]) -> list[Element]:
    """What is left over of a question and asks for something; of some kinds only where the other has none of it."""
    there = {element.stem for element in against}
    asking = frozenset[str]().union(*(kind for kind in LIGHT_KINDS if kind & there))
    light = LIGHT_IN_QUESTIONS - asking
    return [element for element in left if element.stem not in light or _is_one_of_two(element, reading)]


def _is_one_of_two(element: Element, reading: Reading) -> bool:
    # `good and bad effects` asks for both.
    following = element.place + 1
    return element.joined != "" or (following < len(reading.elements) and reading.elements[following].joined != "")


def _of_leftovers(leftovers: list[Element]) -> str:
    kinds = {element.kind for element in leftovers}
    if kinds & {"quantity", "date"}:
        return "quantity" if "quantity" in kinds else "date"
    if any(element.name or element.kind == "code" for element in leftovers):
        return "named_value"
    return "scope_differs" if any(map(narrows, leftovers)) else "other_content"


def _tense_alike(one: Reading, other: Reading) -> bool:
    apart = one.tense ^ other.tense
    if apart & {"former", "future", "ceased"}:
        return False
    if one.question:
        return not {"past", "present"} <= apart
    return not apart & {"past", "perfect"}


def _other_tense(one: Element, other: Element) -> bool:
    forms = {one.form, other.form}
    if "past" not in forms:
        return one.low != other.low and (one.low in UNCHANGED or other.low in UNCHANGED)
    # `invited` and `was invited` turn the roles round.
    return len(forms) > 1 or one.after_be != other.after_be


def _other_name(one: Element, other: Element) -> bool:
    """Whether words of one stem or sense are names, which are themselves or nothing."""
    if one.low == other.low:
        return False
    return one.name or other.name or (one.capital and other.capital and one.stem == other.stem)


def _prepositions_alike(one: Element, other: Element, verb: str, *, asked: bool) -> bool:
    left, right = one.preposition, other.preposition
    if left == right:
        return True
    if asked:
        return {left, right} not in _OPPOSED
    if not left or not right:
        return (left or right) in _OPTIONAL
    if {left, right} <= AFTER_VERBS.get(verb, frozenset()) and one.value is None:
        return True
    if PREPOSITION_KIN.get(left, left) != PREPOSITION_KIN.get(right, right):
        return False
    # A time is named with any of them, a thing is not: in the box, on the box.
    return one.value is not None or not ({left, right} & INSIDE and {left, right} & ON_TOP)
