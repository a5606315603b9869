"""What a text asserts, as data: its content words, quantities, dates, names, negations and tense."""

from dataclasses import dataclass, field

from muniment.language.assertion.asking import unframed
from muniment.language.assertion.dates import Date, date_at
from muniment.language.assertion.lexicon import words
from muniment.language.assertion.lexicon.function_words import (
    BE,
    DETERMINERS,
    DROPPED,
    FORMER,
    FUTURE,
    HEDGES,
    NEGATING_BEFORE_ING,
    NEGATING_BEFORE_TO,
    NEGATORS,
    NOT_NEGATED_BY,
    PAST_AUXILIARIES,
    PREPOSITIONS,
    PRESENT_AUXILIARIES,
    PRONOUNS,
    QUESTION_WORDS,
    SUBORDINATORS,
)
from muniment.language.assertion.quantities import Quantity, quantity_at
from muniment.language.assertion.stemming import is_past, is_present_participle, stem
from muniment.language.assertion.tokens import Token, cut, joined
from muniment.language.assertion.vocabulary import CLASSES, IDENTIFIED, key

_BEFORE_PRONOUN = words("the this that each every another which no any")
_COMPARING = frozenset(
    stem(word)
    for word in ["look", "feel", "sound", "seem", "taste", "smell", "act", "just", "more", "something", "much"]
)
_WISHING = frozenset(stem(word) for word in ["want", "prefer", "like", "need", "wish", "must", "can"])
_IN_TITLES = words("a an the of and to as so than this that is are was be been")
_DO = frozenset(("do", "does", "did"))
_PRESENT_MODALS = frozenset(("can", "must"))
_HAVE = frozenset(("have", "has", "had", "having"))
_GENERIC = frozenset(("i", "you", "we"))


@dataclass(slots=True)
class Element:
    """One thing a text says; `key` is what it is matched by, `stem` the word itself."""

    kind: str
    key: str
    stem: str
    place: int
    low: str = ""
    capital: bool = False
    leading: bool = False
    preposition: str = ""
    form: str = ""
    name: bool = False
    negated: bool = False
    chunk: int = 0
    after_be: bool = False
    before_be: bool = False
    be: str = ""
    joined: str = ""
    determined: bool = False
    value: Quantity | Date | None = None


@dataclass(slots=True)
class Reading:
    """A text as the judge sees it."""

    elements: list[Element] = field(default_factory=list[Element])
    pronouns: list[str] = field(default_factory=list[str])
    tense: set[str] = field(default_factory=set[str])
    question: bool = False
    negations: int = 0
    copula: int = -1
    progressive: bool = False
    sentences: int = 1
    embedded: bool = False


def read(text: str) -> Reading:
    """The reading of a text."""
    found, asked = cut(text), text.rstrip().endswith("?")
    names = _shows_names(found)
    reader = _Reader(joined(unframed(found) if asked else found), names=names, asked=asked)
    reader.run()
    reading = reader.reading
    reading.question = asked
    if asked and len(_GENERIC.intersection(said.split()[-1] for said in reading.pronouns)) == 1:
        # Whoever asks how to do something; in `can I call you` it matters who is who.
        reading.pronouns = [said for said in reading.pronouns if said.split()[-1] not in _GENERIC]
    return reading


def _shows_names(found: list[Token]) -> bool:
    words = [token for token in found if token.kind == "word" and not token.first]
    # In a headline a capital says nothing; a small `is` or `the` shows that it is none.
    small = sum(not token.capital for token in words if token.low not in PREPOSITIONS)
    return small > 0 and 3 * small >= len(words) - 6


class _Reader:
    def __init__(self, found: list[Token], *, names: bool, asked: bool) -> None:
        self.found = found
        self.asked = asked
        self.names = names
        self.reading = Reading()
        self.negating = False
        self.preposition = ""
        self.chunk = 0
        self.be = ""
        self.joined = ""
        self.determined = False
        self.leading = False

    def run(self) -> None:
        place = 0
        while place < len(self.found):
            place += self._take(place)

    def _take(self, place: int) -> int:
        token = self.found[place]
        if token.kind == "stop":
            self._close()
            if token.low[0] in ".!?;:" and self.reading.elements and place + 1 < len(self.found):
                self.reading.sentences += 1
            if token.low == ":":
                self._be(":")
            return 1
        dated = date_at(self.found, place)
        if dated is not None:
            self._add("date", dated[1].key, "", value=dated[1])
            return dated[0]
        measured = quantity_at(self.found, place)
        if measured is not None and not self._is_pronoun(place, measured):
            return self._measure(place, *measured)
        if token.kind == "word":
            return self._word(place, token)
        if token.low == "#":
            return 1
        self._add("code", f"={token.low}", token.low)
        return 1

    def _close(self) -> None:
        self.negating, self.preposition, self.be, self.joined = False, "", "", ""
        self.chunk += 1

    def _is_pronoun(self, place: int, measured: tuple[int, Quantity]) -> bool:
        # `the one`, `no one`: a word for a thing, not a number of things.
        if measured[0] > 1 or self.found[place].low != "one":
            return False
        return place > 0 and self.found[place - 1].low in _BEFORE_PRONOUN

    def _measure(self, place: int, length: int, quantity: Quantity) -> int:
        if quantity.dimension == "count" and length == 1 and self._identifies(place):
            self._add("code", f"={quantity.low}", str(quantity.low))
        else:
            self._add("quantity", quantity.key, quantity.dimension, value=quantity)
        return length

    def _identifies(self, place: int) -> bool:
        if place == 0:
            return False
        before = self.found[place - 1]
        return before.low == "#" or (before.kind == "word" and stem(before.low) in IDENTIFIED)

    def _word(self, place: int, token: Token) -> int:
        low = token.low
        following = self.found[place + 1].low if place + 1 < len(self.found) else ""
        self.determined = low in DETERMINERS or (self.determined and low not in PREPOSITIONS)
        if self._is_named(place):
            self._content(token)
            return 1
        self._note_tense(low, following)
        if self._negates(low, following):
            if following in NOT_NEGATED_BY:
                # `not only`, `not more`: neither the statement nor its negation.
                self._add("word", "not_quite", "maybe")
            elif not (low == "no" and following in (",", "")):
                self.negating = not self.negating
                self.reading.negations += 1
            if low == "without":
                self.preposition, self.chunk = "with", self.chunk + 1
            return 1
        if low in PRONOUNS:
            self.reading.pronouns.append(f"{self.preposition} {PRONOUNS[low]}".strip())
            self.preposition = ""
            return 1
        self.reading.embedded |= low in SUBORDINATORS or (low == "to" and self._opens_an_infinitive(place))
        if low in PREPOSITIONS and not (low == "like" and self._likes(place)):
            self.leading = token.first
            self.preposition = low
            self.chunk += 1
            return 1
        if low in BE:
            self._be(low)
        self.reading.progressive |= low == "being"
        if low in ("and", "or"):
            self.chunk += 1
            self.joined = low
        if low in FUTURE or (
            not self._is_letter(token)
            and self._is_empty(low, following)
            and not (low in QUESTION_WORDS and token.first)
        ):
            return 1
        self._content(token)
        return 1

    def _is_named(self, place: int) -> bool:
        """Whether a small word is a name here: Will, IT."""
        token = self.found[place]
        if not token.capital or token.first or not self.names or self.found[place - 1].kind == "stop":
            return False
        return (token.low in FUTURE or token.low in DROPPED) and token.low not in _IN_TITLES

    def _likes(self, place: int) -> bool:
        # After `is` or `looks` it compares, elsewhere somebody likes something.
        before = self.found[place - 1].low if place else ""
        return before not in BE and stem(before) not in _COMPARING

    def _opens_an_infinitive(self, place: int) -> bool:
        # `wants to pay on Monday` wants it on Monday; `promised to pay on Monday` says when it will be paid.
        before = stem(self.found[place - 1].low) if place else ""
        following = self.found[place + 1] if place + 1 < len(self.found) else None
        if following is None or following.kind != "word" or before in _WISHING:
            return False
        low = following.low
        return not (following.capital or low in DROPPED or low in PRONOUNS or low.endswith("s"))

    def _is_letter(self, token: Token) -> bool:
        # `Product A` is no article.
        return token.low == "a" and token.capital and not token.first and self.names

    def _is_empty(self, low: str, following: str) -> bool:
        if low in _HAVE and self.reading.elements:
            # An auxiliary goes with a participle; on its own it says that somebody has something.
            return is_past(following) or following in ("been", "not", "never", "already", "just")
        if low in _DO and not self.asked:
            return following in ("not", "never") or following in PRONOUNS
        return low in DROPPED

    def _be(self, low: str) -> None:
        self.be = low
        if self.reading.copula < 0:
            self.reading.copula = len(self.reading.elements)
        if self.reading.elements and not self.preposition:
            self.reading.elements[-1].before_be = True

    def _content(self, token: Token) -> None:
        low = token.low
        form = "ing" if is_present_participle(low) else "past" if is_past(low) else ""
        root = stem(low)
        name = self.names and token.capital and not token.first and root not in CLASSES
        self.reading.progressive |= form == "ing"
        self._add("word", key(root), root, form=form, name=name, token=token)

    def _add(
        self,
        kind: str,
        known: str,
        root: str,
        *,
        form: str = "",
        name: bool = False,
        value: Quantity | Date | None = None,
        token: Token | None = None,
    ) -> None:
        elements = self.reading.elements
        negated = self.negating and root not in HEDGES
        elements.append(
            Element(
                kind,
                known,
                root,
                place=len(elements),
                low=token.low if token else root,
                capital=token is not None and token.capital,
                leading=self.leading and bool(self.preposition),
                preposition=self.preposition,
                form=form,
                name=name,
                negated=negated,
                chunk=self.chunk,
                after_be=self.be != "",
                be=self.be,
                joined=self.joined,
                determined=self.determined,
                value=value,
            )
        )
        if negated:
            self.negating = False
        self.be = ""
        self.determined = False
        # `tea or milk`: the `or` is a part of its own, what it joins comes after it.
        self.joined = self.joined if root == "or" else ""
        self.preposition = ""

    def _negates(self, low: str, following: str) -> bool:
        if low in NEGATORS:
            return True
        return (low in NEGATING_BEFORE_TO and following == "to") or (
            low in NEGATING_BEFORE_ING and is_present_participle(following)
        )

    def _note_tense(self, low: str, following: str) -> None:
        tense = self.reading.tense
        if low == "used_to" or low in FORMER:
            tense.add("former")
        elif low == "no_longer":
            tense.add("ceased")
        elif low in FUTURE:
            tense.add("future")
        elif low in PAST_AUXILIARIES:
            tense.add("past")
        elif low in _HAVE and (is_past(following) or following == "been"):
            tense.add("perfect")
        elif low in PRESENT_AUXILIARIES or (low in _PRESENT_MODALS and "past" not in tense):
            tense.add("present")
