"""When two readings exclude one another: a negation, or one thing exchanged for another in the same frame."""

from muniment.language.assertion.alignment import Alignment, Exchange
from muniment.language.assertion.judgement import Judgement
from muniment.language.assertion.lexicon import words
from muniment.language.assertion.reading import Element, Reading
from muniment.language.assertion.scoping import CONDITIONS, PLACES, limits, narrows
from muniment.language.assertion.vocabulary import CLASSES, FUNCTIONAL, MULTI_VALUED, POSSIBLE

_MOST_EXCHANGED = 1
# A subject of these is another thing to speak of, not another thing said of it.
_NAMED_THINGS = PLACES | {
    "tier",
    "currency",
    "cloud",
    "database",
    "carrier",
    "os",
    "browser",
    "payment",
    "sport",
    "genre",
    "subject",
}
_WEAKER = words("""
    may might could would should want hope plan try attempt think believ seem appear probably perhaps maybe
    almost nearly possibly likely whether sometim expect intend claim suppos pretend
""")
_OPEN_TENSES = frozenset(("former", "future"))


def contrast(one: Reading, other: Reading, found: Alignment) -> Judgement | None:
    """The judgement where something was negated or exchanged; None where nothing was."""
    flips = [(left, right) for left, right in (*found.pairs, *found.wider) if left.negated != right.negated]
    if not flips and not found.exchanges:
        return None
    reasons = _reasons(found, flips)
    blocked = _blocked(one, other, found)
    if blocked is not None:
        return Judgement("different", (blocked, *reasons))
    if flips and not found.exchanges:
        return _negated(one, other, found, flips, reasons)
    if flips or not _negations_apart(one, other, found):
        return Judgement("different", reasons)
    return _exchanged(one, other, found, reasons)


def _reasons(found: Alignment, flips: list[tuple[Element, Element]]) -> tuple[str, ...]:
    reasons = ["polarity"] if flips else []
    return tuple(dict.fromkeys(reasons + [exchange.reason for exchange in found.exchanges]))


def _blocked(one: Reading, other: Reading, found: Alignment) -> str | None:
    if one.question or other.question:
        return "other_content"
    if (one.tense ^ other.tense) & _OPEN_TENSES:
        return "tense"
    if one.pronouns and other.pronouns and not set(one.pronouns) & set(other.pronouns):
        return "other_content"
    if any(_was_and_is(*pair) for pair in found.pairs):
        return "tense"
    if not found.pairs:
        return "other_content"
    leftovers = {element.stem for element in (*found.left, *found.right)}
    if leftovers & CONDITIONS:
        return "scope_differs"
    return "other_content" if leftovers & _WEAKER else None


def _was_and_is(one: Element, other: Element) -> bool:
    if one.after_be or other.after_be or one.name or other.name:
        return False
    return {one.form, other.form} == {"past", ""} and one.low != other.low and one.stem == other.stem


def _negations_apart(one: Reading, other: Reading, found: Alignment) -> bool:
    """Whether what is negated on either side has nothing to do with what was exchanged."""
    if not one.negations and not other.negations:
        return True
    negated = [left for left, right in found.pairs if left.negated and right.negated]
    if not len(negated) == one.negations == other.negations:
        return False
    last = max(max(exchange.one.place, exchange.other.place) for exchange in found.exchanges)
    chunk = max(exchange.one.chunk for exchange in found.exchanges)
    return all(element.place > last and element.chunk > chunk for element in negated)


def _negated(
    one: Reading, other: Reading, found: Alignment, flips: list[tuple[Element, Element]], reasons: tuple[str, ...]
) -> Judgement:
    if len(flips) > 1 or abs(one.negations - other.negations) != 1:
        return Judgement("different", reasons)
    # What is denied must lie wholly within what is asserted; more may be asserted.
    denied = found.left if flips[0][0].negated else found.right
    return Judgement("different" if denied else "contradicts", reasons)


def _exchanged(one: Reading, other: Reading, found: Alignment, reasons: tuple[str, ...]) -> Judgement:
    leftovers = (*found.left, *found.right)
    if any(limits(exchange, one, other) for exchange in found.exchanges) or any(map(narrows, leftovers)):
        return Judgement("different", ("scope_differs", *reasons))
    sure = (
        len({(exchange.one.key, exchange.other.key) for exchange in found.exchanges}) <= _MOST_EXCHANGED
        and min(len(found.left), len(found.right)) == 0
        and all(_exclusive(exchange, one, other, found) for exchange in found.exchanges)
    )
    return Judgement("contradicts" if sure else "different", reasons)


def _exclusive(exchange: Exchange, ours: Reading, theirs: Reading, found: Alignment) -> bool:
    """Whether only one of the two can hold, given the rest of the statement."""
    one, other = exchange.one, exchange.other
    if exchange.reason == "quantity":
        return _of_the_same(exchange, found)
    if exchange.reason == "antonym":
        return True
    shared = [left for left, _ in found.pairs]
    if exchange.reason == "named_value":
        return _is_value(one, ours) and _is_value(other, theirs)
    subject = one.place == 0 and other.place == 0 and not one.preposition
    if subject and _NAMED_THINGS & CLASSES.get(one.stem, {}).keys():
        return False
    return not _many_valued(one, shared)


def _is_value(element: Element, reading: Reading) -> bool:
    """Whether it is what is said of the subject, in a place that holds one value."""
    if element.place == 0 or element.place < reading.copula:
        return False
    return element.after_be or any(one.stem in FUNCTIONAL for one in reading.elements[: element.place])


def _of_the_same(exchange: Exchange, found: Alignment) -> bool:
    """Whether the two numbers count the same thing: two boys do not exclude three people."""
    return not any(
        left.place == exchange.one.place + 1 or right.place == exchange.other.place + 1 for left, right in found.wider
    )


def _many_valued(element: Element, elements: list[Element]) -> bool:
    return any(one.stem in POSSIBLE for one in elements) or any(
        verb.stem in MULTI_VALUED
        and verb.form != "ing"
        and not verb.before_be
        and verb.place < element.place
        and not verb.after_be
        for verb in elements
    )
