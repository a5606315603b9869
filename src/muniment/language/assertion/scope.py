"""Scope: whether an element limits for whom, where or when a statement holds, rather than being what it says."""

from muniment.language.assertion.alignment import Substitution
from muniment.language.assertion.dates import Date
from muniment.language.assertion.parse import Element, ParsedText
from muniment.language.assertion.vocabulary import AUDIENCES, CLASSES, FUNCTIONAL, RECURRING
from muniment.language.data_files import word_set

PLACES = word_set("country city continent")
CONDITIONS = word_set("if unless except only until till when whenever")


def changes_scope(substitution: Substitution, one: ParsedText, other: ParsedText) -> bool:
    """Say whether a substitution changes only the scope of a statement, so that both texts can be true."""
    return _is_scope(substitution.one, one) or _is_scope(substitution.other, other)


def narrows_scope(element: Element) -> bool:
    """Say whether an element that only one text has limits for whom or on what condition the statement holds."""
    return element.leading or element.preposition == "for" or element.stem in CONDITIONS or element.stem in AUDIENCES


def _is_scope(element: Element, parsed: ParsedText) -> bool:
    if element.leading or _names_an_audience(element, parsed) or _is_recurring_weekday(element, parsed):
        return True
    return bool(
        element.preposition and PLACES & CLASSES.get(element.stem, {}).keys() and not _says_where_it_is(element, parsed)
    )


def _names_an_audience(element: Element, parsed: ParsedText) -> bool:
    """Recognise `for partners`, or `German` in `German customers pay`; whoever does something now is no audience."""
    if element.kind != "word" or parsed.progressive or (element.after_be and element.preposition != "for"):
        return False
    if element.stem in AUDIENCES:
        return True
    following = parsed.elements[element.position + 1] if element.position + 1 < len(parsed.elements) else None
    return following is not None and following.stem in AUDIENCES and following.chunk == element.chunk


def _is_recurring_weekday(element: Element, parsed: ParsedText) -> bool:
    """Recognise a weekday of what happens weekly: open on Monday does not exclude open on Tuesday."""
    if not isinstance(element.value, Date) or element.value.weekday is None:
        return False
    return any(one.stem in RECURRING for one in parsed.elements)


def _says_where_it_is(element: Element, parsed: ParsedText) -> bool:
    if element.position < parsed.copula_index and not parsed.progressive:
        return False
    return element.after_be or parsed.progressive or any(one.stem in FUNCTIONAL for one in parsed.elements)
