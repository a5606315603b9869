"""Whether what two statements differ in limits them, for whom, where or when, rather than being what they say."""

from muniment.language.assertion.alignment import Exchange
from muniment.language.assertion.dates import Date
from muniment.language.assertion.lexicon import words
from muniment.language.assertion.reading import Element, Reading
from muniment.language.assertion.vocabulary import AUDIENCES, CLASSES, FUNCTIONAL, RECURRING

PLACES = words("country city continent")
CONDITIONS = words("if unless except only until till when whenever")


def limits(exchange: Exchange, one: Reading, other: Reading) -> bool:
    """Whether the scope of the statement was exchanged, so that both sides can hold beside one another."""
    return _limit(exchange.one, one) or _limit(exchange.other, other)


def narrows(element: Element) -> bool:
    """Whether a part that only one side has says for whom or on what condition it holds."""
    return element.leading or element.preposition == "for" or element.stem in CONDITIONS or element.stem in AUDIENCES


def _limit(element: Element, reading: Reading) -> bool:
    if element.leading or _names_an_audience(element, reading) or _comes_round(element, reading):
        return True
    return bool(
        element.preposition
        and PLACES & CLASSES.get(element.stem, {}).keys()
        and not _says_where_it_is(element, reading)
    )


def _names_an_audience(element: Element, reading: Reading) -> bool:
    """`for partners`, or `German` in `German customers pay`; who is doing something right now is no audience."""
    if element.kind != "word" or reading.progressive or (element.after_be and element.preposition != "for"):
        return False
    if element.stem in AUDIENCES:
        return True
    following = reading.elements[element.place + 1] if element.place + 1 < len(reading.elements) else None
    return following is not None and following.stem in AUDIENCES and following.chunk == element.chunk


def _comes_round(element: Element, reading: Reading) -> bool:
    """A weekday of something that happens every week: open on Monday does not exclude open on Tuesday."""
    if not isinstance(element.value, Date) or element.value.weekday is None:
        return False
    return any(one.stem in RECURRING for one in reading.elements)


def _says_where_it_is(element: Element, reading: Reading) -> bool:
    if element.place < reading.copula and not reading.progressive:
        return False
    return element.after_be or reading.progressive or any(one.stem in FUNCTIONAL for one in reading.elements)
