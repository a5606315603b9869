"""Judges whether two aligned texts contradict one another: by a negation, or by one thing put in place of another."""

from muniment.language.assertion.alignment import Alignment, Substitution
from muniment.language.assertion.judgement import Judgement
from muniment.language.assertion.parse import Element, ParsedText
from muniment.language.assertion.scope import CONDITIONS, PLACES, changes_scope, narrows_scope
from muniment.language.assertion.vocabulary import CLASSES, FUNCTIONAL, MULTI_VALUED, POSSIBLE
from muniment.language.data_files import word_set

_MOST_SUBSTITUTIONS = 1
# A subject of these classes is another topic, not another statement about the same topic.
_NAMED_THINGS = PLACES | word_set("""
    tier currency cloud database carrier os browser payment sport genre subject
""")
_WEAKER = word_set("""
    may might could would should want hope plan try attempt think believ seem appear probably perhaps maybe
    almost nearly possibly likely whether sometim expect intend claim suppos pretend
""")
_OPEN_TENSES = frozenset(("former", "future"))


def judge_contradiction(one: ParsedText, other: ParsedText, alignment: Alignment) -> Judgement | None:
    """Judge two texts of which one negates or substitutes something in the other; None where nothing is."""
    flips = [(left, right) for left, right in (*alignment.pairs, *alignment.hypernyms) if left.negated != right.negated]
    if not flips and not alignment.substitutions:
        return None
    reasons = _reasons(alignment, flips)
    blocked = _blocked(one, other, alignment)
    if blocked is not None:
        return Judgement("different", (blocked, *reasons))
    if flips and not alignment.substitutions:
        return _negated(one, other, alignment, flips, reasons)
    if flips or not _negations_apart(one, other, alignment):
        return Judgement("different", reasons)
    return _substituted(one, other, alignment, reasons)


def _reasons(alignment: Alignment, flips: list[tuple[Element, Element]]) -> tuple[str, ...]:
    reasons = ["polarity"] if flips else []
    return tuple(dict.fromkeys(reasons + [substitution.reason for substitution in alignment.substitutions]))


def _blocked(one: ParsedText, other: ParsedText, alignment: Alignment) -> str | None:
    if one.question or other.question:
        return "other_content"
    if (one.tense ^ other.tense) & _OPEN_TENSES:
        return "tense"
    if one.pronouns and other.pronouns and not set(one.pronouns) & set(other.pronouns):
        return "other_content"
    if any(_was_and_is(*pair) for pair in alignment.pairs):
        return "tense"
    if not alignment.pairs:
        return "other_content"
    leftovers = {element.stem for element in (*alignment.left_only, *alignment.right_only)}
    if leftovers & CONDITIONS:
        return "scope_differs"
    return "other_content" if leftovers & _WEAKER else None


def _was_and_is(one: Element, other: Element) -> bool:
    if one.after_be or other.after_be or one.name or other.name:
        return False
    return {one.form, other.form} == {"past", ""} and one.lower != other.lower and one.stem == other.stem


def _negations_apart(one: ParsedText, other: ParsedText, alignment: Alignment) -> bool:
    """Say whether both texts negate the same elements, behind the substituted ones."""
    if not one.negations and not other.negations:
        return True
    negated = [left for left, right in alignment.pairs if left.negated and right.negated]
    if not len(negated) == one.negations == other.negations:
        return False
    last = max(max(substitution.one.position, substitution.other.position) for substitution in alignment.substitutions)
    chunk = max(substitution.one.chunk for substitution in alignment.substitutions)
    return all(element.position > last and element.chunk > chunk for element in negated)


def _negated(
    one: ParsedText,
    other: ParsedText,
    alignment: Alignment,
    flips: list[tuple[Element, Element]],
    reasons: tuple[str, ...],
) -> Judgement:
    if len(flips) > 1 or abs(one.negations - other.negations) != 1:
        return Judgement("different", reasons)
    # The denied statement must be part of the asserted one; more may be asserted.
    denied = alignment.left_only if flips[0][0].negated else alignment.right_only
    return Judgement("different" if denied else "contradicts", reasons)


def _substituted(one: ParsedText, other: ParsedText, alignment: Alignment, reasons: tuple[str, ...]) -> Judgement:
    leftovers = (*alignment.left_only, *alignment.right_only)
    if any(changes_scope(substitution, one, other) for substitution in alignment.substitutions) or any(
        map(narrows_scope, leftovers)
    ):
        return Judgement("different", ("scope_differs", *reasons))
    sure = (
        len({(substitution.one.key, substitution.other.key) for substitution in alignment.substitutions})
        <= _MOST_SUBSTITUTIONS
        and min(len(alignment.left_only), len(alignment.right_only)) == 0
        and all(_exclusive(substitution, one, other, alignment) for substitution in alignment.substitutions)
    )
    return Judgement("contradicts" if sure else "different", reasons)


def _exclusive(substitution: Substitution, ours: ParsedText, theirs: ParsedText, alignment: Alignment) -> bool:
    """Say whether only one of the two elements can be true, given the rest of the statement."""
    one, other = substitution.one, substitution.other
    if substitution.reason == "quantity":
        return _of_the_same(substitution, alignment)
    if substitution.reason == "antonym":
        return True
    shared = [left for left, _ in alignment.pairs]
    if substitution.reason == "named_value":
        return _is_value(one, ours) and _is_value(other, theirs)
    subject = one.position == 0 and other.position == 0 and not one.preposition
    if subject and _NAMED_THINGS & CLASSES.get(one.stem, {}).keys():
        return False
    return not _many_valued(one, shared)


def _is_value(element: Element, parsed: ParsedText) -> bool:
    """Say whether the element is the value of something that has one value at a time."""
    if element.position == 0 or element.position < parsed.copula_index:
        return False
    return element.after_be or any(one.stem in FUNCTIONAL for one in parsed.elements[: element.position])


def _of_the_same(substitution: Substitution, alignment: Alignment) -> bool:
    """Say whether two numbers count the same thing: two boys do not exclude three people."""
    return not any(
        left.position == substitution.one.position + 1 or right.position == substitution.other.position + 1
        for left, right in alignment.hypernyms
    )


def _many_valued(element: Element, elements: list[Element]) -> bool:
    return any(one.stem in POSSIBLE for one in elements) or any(
        verb.stem in MULTI_VALUED
        and verb.form != "ing"
        and not verb.before_be
        and verb.position < element.position
        and not verb.after_be
        for verb in elements
    )
