"""Judges whether two aligned texts say the same: nothing left over, the same order, tense and polarity."""

from muniment.language.assertion.alignment import Alignment
from muniment.language.assertion.judgement import Judgement
from muniment.language.assertion.lexicon import INSIDE, ON_TOP, PREPOSITION_GROUPS, PREPOSITIONS_AFTER_VERB, UNCHANGED
from muniment.language.assertion.parse import Element, ParsedText
from muniment.language.assertion.scope import narrows_scope
from muniment.language.assertion.vocabulary import LIGHT_IN_QUESTIONS, LIGHT_KINDS
from muniment.language.assertion.word_order import same_word_order
from muniment.language.data_files import word_set

# Prepositions that can be left out without a change of roles.
_OPTIONAL = word_set("in on at of during within about like as")
# Pairs of prepositions that reverse even a question.
_OPPOSED = ({"from", "to"}, {"from", "in"}, {"from", "for"}, {"for", "against"}, {"with", "against"})


def judge_paraphrase(one: ParsedText, other: ParsedText, alignment: Alignment) -> Judgement:
    """Return `same` where every element of each text matches one of the other, else `different` with a reason."""
    reason = _difference(one, other, alignment)
    return Judgement("same", ("rewording",)) if reason is None else Judgement("different", (reason,))


def _difference(one: ParsedText, other: ParsedText, alignment: Alignment) -> str | None:
    leftovers = [*alignment.left_only, *alignment.right_only]
    if one.question and other.question:
        leftovers = _weighty(one, alignment.left_only, alignment.right_only) + _weighty(
            other, alignment.right_only, alignment.left_only
        )
    if leftovers or alignment.hypernyms or not alignment.pairs:
        return _reason_of_leftovers(leftovers)
    if one.negations % 2 != other.negations % 2 or any(
        left.negated != right.negated for left, right in alignment.pairs
    ):
        return "polarity"
    if one.tense ^ other.tense and not _tense_alike(one, other):
        return "tense"
    if one.pronouns != other.pronouns:
        return "other_content"
    if not one.question and any(_other_tense(left, right) for left, right in alignment.pairs):
        return "tense"
    if any(_other_name(left, right) for left, right in alignment.pairs):
        return "named_value"
    swapped = same_word_order(one, other, alignment, LIGHT_IN_QUESTIONS if one.question else frozenset())
    if swapped is None:
        return "other_content"
    alike = all(
        id(left) in swapped or _prepositions_alike(left, right, _before(left, one), is_question=one.question)
        for left, right in alignment.pairs
    )
    return None if alike else "other_content"


def _before(element: Element, parsed: ParsedText) -> str:
    return parsed.elements[element.position - 1].key if element.position else ""


def _weighty(parsed: ParsedText, left: list[Element], against: list[Element]) -> list[Element]:
    """Return the leftovers of a question that change what it asks; a light word counts where its kind is disputed."""
    there = {element.stem for element in against}
    asking = frozenset[str]().union(*(kind for kind in LIGHT_KINDS if kind & there))
    light = LIGHT_IN_QUESTIONS - asking
    return [element for element in left if element.stem not in light or _is_one_of_two(element, parsed)]


def _is_one_of_two(element: Element, parsed: ParsedText) -> bool:
    # `good and bad effects` asks for both.
    following = element.position + 1
    return element.conjunction != "" or (
        following < len(parsed.elements) and parsed.elements[following].conjunction != ""
    )


def _reason_of_leftovers(leftovers: list[Element]) -> str:
    kinds = {element.kind for element in leftovers}
    if kinds & {"quantity", "date"}:
        return "quantity" if "quantity" in kinds else "date"
    if any(element.name or element.kind == "code" for element in leftovers):
        return "named_value"
    return "scope_differs" if any(map(narrows_scope, leftovers)) else "other_content"


def _tense_alike(one: ParsedText, other: ParsedText) -> bool:
    apart = one.tense ^ other.tense
    if apart & {"former", "future", "ceased"}:
        return False
    if one.question:
        return not {"past", "present"} <= apart
    return not apart & {"past", "perfect"}


def _other_tense(one: Element, other: Element) -> bool:
    forms = {one.form, other.form}
    if "past" not in forms:
        return one.lower != other.lower and (one.lower in UNCHANGED or other.lower in UNCHANGED)
    # `invited` and `was invited` turn the roles round.
    return len(forms) > 1 or one.after_be != other.after_be


def _other_name(one: Element, other: Element) -> bool:
    """Say whether matching words are different names, as names have no synonyms."""
    if one.lower == other.lower:
        return False
    return one.name or other.name or (one.capitalised and other.capitalised and one.stem == other.stem)


def _prepositions_alike(one: Element, other: Element, verb: str, *, is_question: bool) -> bool:
    left, right = one.preposition, other.preposition
    if left == right:
        return True
    if is_question:
        return {left, right} not in _OPPOSED
    if not left or not right:
        return (left or right) in _OPTIONAL
    if {left, right} <= PREPOSITIONS_AFTER_VERB.get(verb, frozenset()) and one.value is None:
        return True
    if PREPOSITION_GROUPS.get(left, left) != PREPOSITION_GROUPS.get(right, right):
        return False
    # A time is named with any of them, a thing is not: in the box, on the box.
    return one.value is not None or not ({left, right} & INSIDE and {left, right} & ON_TOP)
