"""Parses a text into what it asserts: content words, quantities, dates, names, negations and tense."""

from dataclasses import dataclass, field

from muniment.language.assertion.dates import Date, date_at
from muniment.language.assertion.lexicon import (
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
from muniment.language.assertion.questions import strip_framing
from muniment.language.assertion.stemming import is_past, is_present_participle, stem
from muniment.language.assertion.tokens import Token, merge_phrases, tokenise
from muniment.language.assertion.vocabulary import CLASSES, IDENTIFIED, synonym_key
from muniment.language.data_files import word_set

_BEFORE_PRONOUN = word_set("the this that each every another which no any")
_COMPARISON_VERBS = frozenset(
    stem(word)
    for word in ["look", "feel", "sound", "seem", "taste", "smell", "act", "just", "more", "something", "much"]
)
_WISH_VERBS = frozenset(stem(word) for word in ["want", "prefer", "like", "need", "wish", "must", "can"])
_IN_TITLES = word_set("a an the of and to as so than this that is are was be been")
_DO = frozenset(("do", "does", "did"))
_PRESENT_MODALS = frozenset(("can", "must"))
_HAVE = frozenset(("have", "has", "had", "having"))
_GENERIC = frozenset(("i", "you", "we"))


@dataclass(slots=True)
class Element:
    """A content word, quantity, date or code of a text; `key` is what it is matched by, `chunk` its phrase."""

    kind: str
    key: str
    stem: str
    position: int
    lower: str = ""
    capitalised: bool = False
    leading: bool = False
    preposition: str = ""
    form: str = ""
    name: bool = False
    negated: bool = False
    chunk: int = 0
    after_be: bool = False
    before_be: bool = False
    be: str = ""
    conjunction: str = ""
    has_determiner: bool = False
    value: Quantity | Date | None = None


@dataclass(slots=True)
class ParsedText:
    """The elements of a text and what its grammar says of them."""

    elements: list[Element] = field(default_factory=list[Element])
    pronouns: list[str] = field(default_factory=list[str])
    tense: set[str] = field(default_factory=set[str])
    question: bool = False
    negations: int = 0
    copula_index: int = -1
    progressive: bool = False
    sentences: int = 1
    has_subclause: bool = False


def parse(text: str) -> ParsedText:
    """Parse a text."""
    tokens, is_question = tokenise(text), text.rstrip().endswith("?")
    capitals_mark_names = _capitals_mark_names(tokens)
    parser = _Parser(
        merge_phrases(strip_framing(tokens) if is_question else tokens),
        capitals_mark_names=capitals_mark_names,
        is_question=is_question,
    )
    parser.run()
    parsed = parser.parsed
    parsed.question = is_question
    if is_question and len(_GENERIC.intersection(pronoun.split()[-1] for pronoun in parsed.pronouns)) == 1:
        # Whoever asks how to do something; in `can I call you` it matters who is who.
        parsed.pronouns = [pronoun for pronoun in parsed.pronouns if pronoun.split()[-1] not in _GENERIC]
    return parsed


def _capitals_mark_names(tokens: list[Token]) -> bool:
    words = [token for token in tokens if token.kind == "word" and not token.sentence_start]
    # In a headline capitals mark nothing; a lower-case `is` or `the` shows that the text is none.
    small = sum(not token.capitalised for token in words if token.lower not in PREPOSITIONS)
    return small > 0 and 3 * small >= len(words) - 6


class _Parser:
    def __init__(self, tokens: list[Token], *, capitals_mark_names: bool, is_question: bool) -> None:
        self.tokens = tokens
        self.is_question = is_question
        self.capitals_mark_names = capitals_mark_names
        self.parsed = ParsedText()
        self.negation_open = False
        self.preposition = ""
        self.chunk = 0
        self.be = ""
        self.conjunction = ""
        self.has_determiner = False
        self.leading = False

    def run(self) -> None:
        position = 0
        while position < len(self.tokens):
            position += self._take(position)

    def _take(self, position: int) -> int:
        token = self.tokens[position]
        if token.kind == "stop":
            self._close()
            if token.lower[0] in ".!?;:" and self.parsed.elements and position + 1 < len(self.tokens):
                self.parsed.sentences += 1
            if token.lower == ":":
                self._be(":")
            return 1
        dated = date_at(self.tokens, position)
        if dated is not None:
            self._add("date", dated[1].key, "", value=dated[1])
            return dated[0]
        measured = quantity_at(self.tokens, position)
        if measured is not None and not self._is_pronoun(position, measured):
            return self._measure(position, *measured)
        if token.kind == "word":
            return self._word(position, token)
        if token.lower == "#":
            return 1
        self._add("code", f"={token.lower}", token.lower)
        return 1

    def _close(self) -> None:
        self.negation_open, self.preposition, self.be, self.conjunction = False, "", "", ""
        self.chunk += 1

    def _is_pronoun(self, position: int, measured: tuple[int, Quantity]) -> bool:
        # `the one`, `no one`: a word for a thing, not a number of things.
        if measured[0] > 1 or self.tokens[position].lower != "one":
            return False
        return position > 0 and self.tokens[position - 1].lower in _BEFORE_PRONOUN

    def _measure(self, position: int, length: int, quantity: Quantity) -> int:
        if quantity.dimension == "count" and length == 1 and self._identifies(position):
            self._add("code", f"={quantity.low}", str(quantity.low))
        else:
            self._add("quantity", quantity.key, quantity.dimension, value=quantity)
        return length

    def _identifies(self, position: int) -> bool:
        if position == 0:
            return False
        before = self.tokens[position - 1]
        return before.lower == "#" or (before.kind == "word" and stem(before.lower) in IDENTIFIED)

    def _word(self, position: int, token: Token) -> int:
        lower = token.lower
        following = self.tokens[position + 1].lower if position + 1 < len(self.tokens) else ""
        self.has_determiner = lower in DETERMINERS or (self.has_determiner and lower not in PREPOSITIONS)
        if self._is_named(position):
            self._content(token)
            return 1
        self._note_tense(lower, following)
        if self._negates(lower, following):
            if following in NOT_NEGATED_BY:
                # `not only`, `not more`: neither the statement nor its negation.
                self._add("word", "not_quite", "maybe")
            elif not (lower == "no" and following in (",", "")):
                self.negation_open = not self.negation_open
                self.parsed.negations += 1
            if lower == "without":
                self.preposition, self.chunk = "with", self.chunk + 1
            return 1
        if lower in PRONOUNS:
            self.parsed.pronouns.append(f"{self.preposition} {PRONOUNS[lower]}".strip())
            self.preposition = ""
            return 1
        self.parsed.has_subclause |= lower in SUBORDINATORS or (lower == "to" and self._opens_an_infinitive(position))
        if lower in PREPOSITIONS and not (lower == "like" and self._likes(position)):
            self.leading = token.sentence_start
            self.preposition = lower
            self.chunk += 1
            return 1
        if lower in BE:
            self._be(lower)
        self.parsed.progressive |= lower == "being"
        if lower in ("and", "or"):
            self.chunk += 1
            self.conjunction = lower
        if lower in FUTURE or (
            not self._is_letter(token)
            and self._is_empty(lower, following)
            and not (lower in QUESTION_WORDS and token.sentence_start)
        ):
            return 1
        self._content(token)
        return 1

    def _is_named(self, position: int) -> bool:
        """Say whether a function word is a name here, as in Will or IT."""
        token = self.tokens[position]
        if (
            not token.capitalised
            or token.sentence_start
            or not self.capitals_mark_names
            or self.tokens[position - 1].kind == "stop"
        ):
            return False
        return (token.lower in FUTURE or token.lower in DROPPED) and token.lower not in _IN_TITLES

    def _likes(self, position: int) -> bool:
        # After `is` or `looks` it compares, elsewhere somebody likes something.
        before = self.tokens[position - 1].lower if position else ""
        return before not in BE and stem(before) not in _COMPARISON_VERBS

    def _opens_an_infinitive(self, position: int) -> bool:
        # `wants to pay on Monday` wants it on Monday; `promised to pay on Monday` says when it will be paid.
        before = stem(self.tokens[position - 1].lower) if position else ""
        following = self.tokens[position + 1] if position + 1 < len(self.tokens) else None
        if following is None or following.kind != "word" or before in _WISH_VERBS:
            return False
        lower = following.lower
        return not (following.capitalised or lower in DROPPED or lower in PRONOUNS or lower.endswith("s"))

    def _is_letter(self, token: Token) -> bool:
        # `Product A` is no article.
        return token.lower == "a" and token.capitalised and not token.sentence_start and self.capitals_mark_names

    def _is_empty(self, lower: str, following: str) -> bool:
        if lower in _HAVE and self.parsed.elements:
            # An auxiliary goes with a participle; on its own it says that somebody has something.
            return is_past(following) or following in ("been", "not", "never", "already", "just")
        if lower in _DO and not self.is_question:
            return following in ("not", "never") or following in PRONOUNS
        return lower in DROPPED

    def _be(self, lower: str) -> None:
        self.be = lower
        if self.parsed.copula_index < 0:
            self.parsed.copula_index = len(self.parsed.elements)
        if self.parsed.elements and not self.preposition:
            self.parsed.elements[-1].before_be = True

    def _content(self, token: Token) -> None:
        lower = token.lower
        form = "ing" if is_present_participle(lower) else "past" if is_past(lower) else ""
        stem_ = stem(lower)
        name = self.capitals_mark_names and token.capitalised and not token.sentence_start and stem_ not in CLASSES
        self.parsed.progressive |= form == "ing"
        self._add("word", synonym_key(stem_), stem_, form=form, name=name, token=token)

    def _add(
        self,
        kind: str,
        key: str,
        stem_: str,
        *,
        form: str = "",
        name: bool = False,
        value: Quantity | Date | None = None,
        token: Token | None = None,
    ) -> None:
        elements = self.parsed.elements
        negated = self.negation_open and stem_ not in HEDGES
        elements.append(
            Element(
                kind,
                key,
                stem_,
                position=len(elements),
                lower=token.lower if token else stem_,
                capitalised=token is not None and token.capitalised,
                leading=self.leading and bool(self.preposition),
                preposition=self.preposition,
                form=form,
                name=name,
                negated=negated,
                chunk=self.chunk,
                after_be=self.be != "",
                be=self.be,
                conjunction=self.conjunction,
                has_determiner=self.has_determiner,
                value=value,
            )
        )
        if negated:
            self.negation_open = False
        self.be = ""
        self.has_determiner = False
        # `tea or milk`: the `or` is a part of its own, what it joins comes after it.
        self.conjunction = self.conjunction if stem_ == "or" else ""
        self.preposition = ""

    def _negates(self, lower: str, following: str) -> bool:
        if lower in NEGATORS:
            return True
        return (lower in NEGATING_BEFORE_TO and following == "to") or (
            lower in NEGATING_BEFORE_ING and is_present_participle(following)
        )

    def _note_tense(self, lower: str, following: str) -> None:
        tense = self.parsed.tense
        if lower == "used_to" or lower in FORMER:
            tense.add("former")
        elif lower == "no_longer":
            tense.add("ceased")
        elif lower in FUTURE:
            tense.add("future")
        elif lower in PAST_AUXILIARIES:
            tense.add("past")
        elif lower in _HAVE and (is_past(following) or following == "been"):
            tense.add("perfect")
        elif lower in PRESENT_AUXILIARIES or (lower in _PRESENT_MODALS and "past" not in tense):
            tense.add("present")
