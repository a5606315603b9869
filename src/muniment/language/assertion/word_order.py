"""Compares the word order of two aligned texts; phrases that keep their role elsewhere may move."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field
from typing import NamedTuple

from muniment.language.assertion.alignment import Alignment
from muniment.language.assertion.dates import Date
from muniment.language.assertion.lexicon import FOCUS, PREPOSITION_GROUPS
from muniment.language.assertion.parse import Element, ParsedText
from muniment.language.assertion.quantities import Quantity
from muniment.language.assertion.vocabulary import CONTAINERS, FUNCTIONAL, MULTI_VALUED, SYMMETRIC, TIME_ADVERBS
from muniment.language.data_files import word_set

# Prepositions of phrases that say when, where or how: such a phrase keeps its role wherever it stands.
_MOVABLE = word_set("in on at during within inside to from by via per for since until before after")
_OPENERS = word_set("befor after sinc until")
# What `the price of the plan` and `the plan's price` turn round; a question also turns `hacks for phones`.
_OWNING = word_set("of")
_OWNING_ASKED = word_set("of for in on about")
_LONGEST_TURNED = 4
_MOST_LABELS = 60


class Part(NamedTuple):
    """An element with the label that it shares with its match in the other text."""

    label: str
    element: Element


@dataclass(slots=True)
class _Phrase:
    movable: bool
    parts: list[Part] = field(default_factory=list[Part])

    @property
    def identity(self) -> tuple[object, ...]:
        first = self.parts[0].element
        return (_relation(first), *(part.label for part in self.parts))

    @property
    def kind(self) -> tuple[object, ...]:
        """What the phrase says, such as where, on which day, at which hour."""
        first = self.parts[0].element
        named: tuple[object, ...] = ("during",) if first.preposition == "during" else ()
        for part in self.parts:
            if isinstance(part.element.value, Date):
                named = tuple(known is not None for known in astuple(part.element.value))
            elif part.element.stem in TIME_ADVERBS:
                named = ("time",)
            elif isinstance(part.element.value, Quantity):
                named = ("for", part.element.value.dimension)
        return (_relation(first), *named)


def same_word_order(one: ParsedText, other: ParsedText, alignment: Alignment, light: frozenset[str]) -> set[int] | None:
    """Return None where the order gives elements other roles.

    Otherwise the ids of elements that only swapped within a pair, such as `tea and milk`.
    """
    labels = {id(element): left.key for left, right in alignment.pairs for element in (left, right)}
    ours, theirs = (
        [Part(labels[id(e)], e) for e in parsed.elements if id(e) in labels and e.stem not in light]
        for parsed in (one, other)
    )
    if _labels(ours) == _labels(theirs):
        return set()
    if len(ours) != len(theirs) or len(ours) > _MOST_LABELS:
        return None
    turned: set[int] = set()
    if _turned_alike(ours, theirs, turned, is_question=one.question):
        return turned
    return _moved_alike(one, other, ours, theirs)


def _labels(parts: Iterable[Part]) -> list[str]:
    return [part.label for part in parts]


def _relation(element: Element) -> object:
    if isinstance(element.value, Date) and not element.preposition:
        return PREPOSITION_GROUPS["on"]
    return PREPOSITION_GROUPS.get(element.preposition, element.preposition)


def _moved_alike(one: ParsedText, other: ParsedText, ours: list[Part], theirs: list[Part]) -> set[int] | None:
    """Compare the order after taking out the whole phrases that moved; None where their position matters."""
    if one.sentences > 1 or other.sentences > 1 or any(part.element.stem in FOCUS for part in ours):
        return None
    phrases, against = _phrases(ours), _phrases(theirs)
    left = _Clause(phrases, {phrase.identity for phrase in against if phrase.movable})
    right = _Clause(against, {phrase.identity for phrase in phrases if phrase.movable})
    if Counter(left.moving) != Counter(right.moving):
        return None
    if Counter(left.front) != Counter(right.front):
        # In `on Monday Anna said that Bob left` the place of the phrase says which of the two was on Monday.
        if one.has_subclause or other.has_subclause:
            return None
        # In `in Rome Anna works for Bob in Bonn` it says which of the two is where.
        if max(Counter(left.kinds).values()) > 1 or max(Counter(right.kinds).values()) > 1:
            return None
    turned: set[int] = set()
    return turned if _turned_alike(left.core, right.core, turned, is_question=one.question) else None


def _phrases(parts: Sequence[Part]) -> list[_Phrase]:
    phrases: list[_Phrase] = []
    chunk = -1
    for part in parts:
        element = part.element
        opens = element.stem in _OPENERS or element.stem in TIME_ADVERBS or isinstance(element.value, Date)
        opened = bool(phrases) and len(phrases[-1].parts) == 1 and phrases[-1].parts[0].element.stem in _OPENERS
        if element.chunk != chunk or (opens and not opened and not element.preposition):
            goes_on = bool(phrases) and (
                element.conjunction or (element.preposition and element.preposition not in _MOVABLE)
            )
            if not goes_on and not (opened and element.chunk == chunk):
                phrases.append(_Phrase(opens or element.preposition in _MOVABLE))
        chunk = element.chunk
        if not phrases:
            phrases.append(_Phrase(movable=False))
        phrases[-1].parts.append(part)
    return phrases


class _Clause:
    """A sentence split into the core, whose order is fixed, and the phrases that open or end it."""

    def __init__(self, phrases: list[_Phrase], known: set[tuple[object, ...]]) -> None:
        self.core: list[Part] = []
        self.front: list[tuple[object, ...]] = []
        self._opening_kinds: list[tuple[object, ...]] = []
        tail: list[_Phrase] = []
        for phrase in phrases:
            if not phrase.movable:
                # Whatever stands between two parts of the core belongs to it.
                self.core += (part for before in tail for part in before.parts)
                tail.clear()
                self.core += phrase.parts
            elif self.core:
                tail.append(phrase)
            else:
                self._open(phrase, known)
        self.moving = [*self.front, *(phrase.identity for phrase in tail)]
        self.kinds = [*self._opening_kinds, *(phrase.kind for phrase in tail)]

    def _open(self, phrase: _Phrase, known: set[tuple[object, ...]]) -> None:
        # Without a comma only the other text shows where an opening phrase ends.
        for length in range(len(phrase.parts), 0, -1):
            opening = _Phrase(movable=True, parts=phrase.parts[:length])
            if opening.identity in known:
                self.front.append(opening.identity)
                self._opening_kinds.append(opening.kind)
                self.core += phrase.parts[length:]
                return
        self.core += phrase.parts


def _turned_alike(ours: list[Part], theirs: list[Part], turned: set[int], *, is_question: bool) -> bool:
    """Say whether the order is the same but for `the plan's price` and the like, and pairs such as `tea and milk`."""
    if len(ours) != len(theirs):
        return False
    position = 0
    while position < len(ours):
        if ours[position].label == theirs[position].label:
            position += 1
            continue
        length = (
            _owned(ours, theirs, position, turned, is_question=is_question)
            or _owned(theirs, ours, position, turned, is_question=is_question)
            or _swapped(ours, theirs, position, turned)
        )
        if not length:
            return False
        position += length
    return True


def _owned(ours: list[Part], theirs: list[Part], position: int, turned: set[int], *, is_question: bool) -> int:
    """Return the length of `the head of the thing` where the other text has `the thing's head`; 0 where it has not."""
    head = ours[position]
    if position + 1 >= len(ours) or not _is_noun(ours, position) or head.element.stem in CONTAINERS:
        return 0
    if ours[position + 1].element.preposition not in (_OWNING_ASKED if is_question else _OWNING):
        return 0
    for length in range(1, _LONGEST_TURNED):
        thing = ours[position + 1 : position + 1 + length]
        against = theirs[position : position + length + 1]
        if len(against) <= length or not _is_one_thing(thing):
            return 0
        if _labels([*thing, head]) == _labels(against):
            if len({part.element.chunk for part in against}) > 1:
                return 0
            turned |= {id(part.element) for part in (head, *thing, *against)}
            return length + 1
    return 0


def _is_noun(parts: list[Part], position: int) -> bool:
    """Say whether an article marks a noun: `thinks of Anna` is not `Anna thinks`."""
    element = parts[position].element
    if element.kind != "word" or element.form == "past":
        return False
    return element.has_determiner or (position > 0 and parts[position - 1].label == "what")


def _is_one_thing(parts: list[Part]) -> bool:
    """Say whether the parts hold no verb, as they do in `the customer of Anna called`."""
    if any(part.element.kind != "word" for part in parts):
        return False
    return len(parts) == 1 or all(part.element.capitalised for part in parts) or parts[-1].element.before_be


def _swapped(ours: list[Part], theirs: list[Part], position: int, turned: set[int]) -> int:
    """Return the length of a pair whose members only swapped; 0 where there is none."""
    for first, second in _lengths(ours, position):
        # `tea or milk`: the `or` between them is a part of its own.
        between = int(ours[position + first].label == "or")
        total = first + between + second
        left, right = ours[position : position + total], theirs[position : position + total]
        if len(right) != total or _labels(_substituted(left, first, between)) != _labels(right):
            continue
        if not (_is_pair(left, first + between) and _is_pair(right, second + between)):
            continue
        if _stands_alone(ours, position, total) and _stands_alone(theirs, position, total):
            turned |= {id(part.element) for part in (*left, *right)}
            return total
    return 0


def _substituted(parts: list[Part], first: int, between: int) -> list[Part]:
    return parts[first + between :] + parts[first : first + between] + parts[:first]


def _lengths(parts: list[Part], position: int) -> Iterator[tuple[int, int]]:
    if position + 1 < len(parts):
        yield 1, 1
    for first in (1, 2, 3):
        for second in (1, 2, 3):
            run = parts[position : position + first + second]
            if first + second > 2 and len(run) == first + second and all(part.element.capitalised for part in run):
                yield first, second


def _is_pair(parts: list[Part], first: int) -> bool:
    later = parts[first].element
    return (
        later.conjunction != ""
        and not later.preposition
        and not any(part.element.conjunction for part in parts[first + 1 :])
    )


def _stands_alone(parts: list[Part], position: int, length: int) -> bool:
    """Say whether both members have the same role: in `called Bob and Carl left` the second opens a clause."""
    first = parts[position].element
    if position + length < len(parts) and position > 0:
        following = parts[position + length].element
        if following.stem in SYMMETRIC and position + length + 1 == len(parts):
            return True
        if not following.preposition and following.chunk == parts[position + length - 1].element.chunk:
            return False
        if following.conjunction:
            return False
    if parts[position + length - 1].element.before_be and position > 0:
        return False
    if position == 0 or first.preposition or first.capitalised or first.after_be:
        return True
    before = parts[position - 1].element.stem
    return before in MULTI_VALUED or before in FUNCTIONAL or before in SYMMETRIC or before == "what"
