"""Whether two readings put their parts in the same roles: the same order, save for phrases that may move."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field
from typing import NamedTuple

from muniment.language.assertion.alignment import Alignment
from muniment.language.assertion.dates import Date
from muniment.language.assertion.lexicon import words
from muniment.language.assertion.lexicon.function_words import FOCUS, PREPOSITION_KIN
from muniment.language.assertion.quantities import Quantity
from muniment.language.assertion.reading import Element, Reading
from muniment.language.assertion.vocabulary import CONTAINERS, FUNCTIONAL, MULTI_VALUED, SYMMETRIC, TIME_ADVERBS

# Phrases that say when, where, whence, whither or by what means: they keep their role wherever they stand.
_MOVABLE = words("in on at during within inside to from by via per for since until before after")
_OPENERS = words("befor after sinc until")
# What `the price of the plan` and `the plan's price` turn round; a question also turns `hacks for phones`.
_OWNING = words("of")
_OWNING_ASKED = words("of for in on about")
_LONGEST_TURNED = 4
_MOST_LABELS = 60


class Part(NamedTuple):
    """An element under the label that it shares with its like in the other reading."""

    label: str
    element: Element


@dataclass(slots=True)
class _Phrase:
    movable: bool
    parts: list[Part] = field(default_factory=list[Part])

    @property
    def known_by(self) -> tuple[object, ...]:
        first = self.parts[0].element
        return (_kin(first), *(part.label for part in self.parts))

    @property
    def kind(self) -> tuple[object, ...]:
        """What it says of the sentence, such as where, on which day, at which hour."""
        first = self.parts[0].element
        named: tuple[object, ...] = ("during",) if first.preposition == "during" else ()
        for part in self.parts:
            if isinstance(part.element.value, Date):
                named = tuple(known is not None for known in astuple(part.element.value))
            elif part.element.stem in TIME_ADVERBS:
                named = ("time",)
            elif isinstance(part.element.value, Quantity):
                named = ("for", part.element.value.dimension)
        return (_kin(first), *named)


def order_alike(one: Reading, other: Reading, found: Alignment, light: frozenset[str]) -> set[int] | None:
    """The ids of parts that merely changed places in a pair, such as `tea and milk`; None where roles differ."""
    labels = {id(element): left.key for left, right in found.pairs for element in (left, right)}
    ours, theirs = (
        [Part(labels[id(e)], e) for e in reading.elements if id(e) in labels and e.stem not in light]
        for reading in (one, other)
    )
    if _labels(ours) == _labels(theirs):
        return set()
    if len(ours) != len(theirs) or len(ours) > _MOST_LABELS:
        return None
    turned: set[int] = set()
    if _turned_alike(ours, theirs, turned, asked=one.question):
        return turned
    return _moved_alike(one, other, ours, theirs)


def _labels(parts: Iterable[Part]) -> list[str]:
    return [part.label for part in parts]


def _kin(element: Element) -> object:
    if isinstance(element.value, Date) and not element.preposition:
        return PREPOSITION_KIN["on"]
    return PREPOSITION_KIN.get(element.preposition, element.preposition)


def _moved_alike(one: Reading, other: Reading, ours: list[Part], theirs: list[Part]) -> set[int] | None:
    """Whether only whole phrases moved, within one sentence, and nothing in it hangs on their place."""
    if one.sentences > 1 or other.sentences > 1 or any(part.element.stem in FOCUS for part in ours):
        return None
    phrases, against = _phrases(ours), _phrases(theirs)
    left = _Clause(phrases, {phrase.known_by for phrase in against if phrase.movable})
    right = _Clause(against, {phrase.known_by for phrase in phrases if phrase.movable})
    if Counter(left.moving) != Counter(right.moving):
        return None
    if Counter(left.front) != Counter(right.front):
        # In `on Monday Anna said that Bob left` the place of the phrase says which of the two was on Monday.
        if one.embedded or other.embedded:
            return None
        # In `in Rome Anna works for Bob in Bonn` it says which of the two is where.
        if max(Counter(left.kinds).values()) > 1 or max(Counter(right.kinds).values()) > 1:
            return None
    turned: set[int] = set()
    return turned if _turned_alike(left.core, right.core, turned, asked=one.question) else None


def _phrases(parts: Sequence[Part]) -> list[_Phrase]:
    found: list[_Phrase] = []
    chunk = -1
    for part in parts:
        element = part.element
        opens = element.stem in _OPENERS or element.stem in TIME_ADVERBS or isinstance(element.value, Date)
        opened = bool(found) and len(found[-1].parts) == 1 and found[-1].parts[0].element.stem in _OPENERS
        if element.chunk != chunk or (opens and not opened and not element.preposition):
            goes_on = bool(found) and (element.joined or (element.preposition and element.preposition not in _MOVABLE))
            if not goes_on and not (opened and element.chunk == chunk):
                found.append(_Phrase(opens or element.preposition in _MOVABLE))
        chunk = element.chunk
        if not found:
            found.append(_Phrase(movable=False))
        found[-1].parts.append(part)
    return found


class _Clause:
    """A sentence as what stays in its order, and the phrases that open or end it."""

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
        self.moving = [*self.front, *(phrase.known_by for phrase in tail)]
        self.kinds = [*self._opening_kinds, *(phrase.kind for phrase in tail)]

    def _open(self, phrase: _Phrase, known: set[tuple[object, ...]]) -> None:
        # Without a comma only the other text shows where an opening phrase ends.
        for length in range(len(phrase.parts), 0, -1):
            opening = _Phrase(movable=True, parts=phrase.parts[:length])
            if opening.known_by in known:
                self.front.append(opening.known_by)
                self._opening_kinds.append(opening.kind)
                self.core += phrase.parts[length:]
                return
        self.core += phrase.parts


def _turned_alike(ours: list[Part], theirs: list[Part], turned: set[int], *, asked: bool) -> bool:
    """Whether they are in one order, save for `the plan's price` and the like, and for pairs such as `tea and milk`."""
    if len(ours) != len(theirs):
        return False
    place = 0
    while place < len(ours):
        if ours[place].label == theirs[place].label:
            place += 1
            continue
        length = (
            _owned(ours, theirs, place, turned, asked=asked)
            or _owned(theirs, ours, place, turned, asked=asked)
            or _swapped(ours, theirs, place, turned)
        )
        if not length:
            return False
        place += length
    return True


def _owned(ours: list[Part], theirs: list[Part], place: int, turned: set[int], *, asked: bool) -> int:
    """How many parts `the head of the thing` takes where the other has `the thing's head`; 0 where it is none."""
    head = ours[place]
    if place + 1 >= len(ours) or not _is_noun(ours, place) or head.element.stem in CONTAINERS:
        return 0
    if ours[place + 1].element.preposition not in (_OWNING_ASKED if asked else _OWNING):
        return 0
    for length in range(1, _LONGEST_TURNED):
        thing = ours[place + 1 : place + 1 + length]
        against = theirs[place : place + length + 1]
        if len(against) <= length or not _is_one_thing(thing):
            return 0
        if _labels([*thing, head]) == _labels(against):
            if len({part.element.chunk for part in against}) > 1:
                return 0
            turned |= {id(part.element) for part in (head, *thing, *against)}
            return length + 1
    return 0


def _is_noun(parts: list[Part], place: int) -> bool:
    """Whether an article shows that it is no verb: `thinks of Anna` is not `Anna thinks`."""
    element = parts[place].element
    if element.kind != "word" or element.form == "past":
        return False
    return element.determined or (place > 0 and parts[place - 1].label == "what")


def _is_one_thing(parts: list[Part]) -> bool:
    """Whether no verb can be among them, as in `the customer of Anna called`."""
    if any(part.element.kind != "word" for part in parts):
        return False
    return len(parts) == 1 or all(part.element.capital for part in parts) or parts[-1].element.before_be


def _swapped(ours: list[Part], theirs: list[Part], place: int, turned: set[int]) -> int:
    """How many parts a pair takes whose members only changed places; 0 where it is none."""
    for first, second in _lengths(ours, place):
        # `tea or milk`: the `or` between them is a part of its own.
        between = int(ours[place + first].label == "or")
        total = first + between + second
        left, right = ours[place : place + total], theirs[place : place + total]
        if len(right) != total or _labels(_exchanged(left, first, between)) != _labels(right):
            continue
        if not (_is_pair(left, first + between) and _is_pair(right, second + between)):
            continue
        if _stands_alone(ours, place, total) and _stands_alone(theirs, place, total):
            turned |= {id(part.element) for part in (*left, *right)}
            return total
    return 0


def _exchanged(parts: list[Part], first: int, between: int) -> list[Part]:
    return parts[first + between :] + parts[first : first + between] + parts[:first]


def _lengths(parts: list[Part], place: int) -> Iterator[tuple[int, int]]:
    if place + 1 < len(parts):
        yield 1, 1
    for first in (1, 2, 3):
        for second in (1, 2, 3):
            run = parts[place : place + first + second]
            if first + second > 2 and len(run) == first + second and all(part.element.capital for part in run):
                yield first, second


def _is_pair(parts: list[Part], first: int) -> bool:
    later = parts[first].element
    return later.joined != "" and not later.preposition and not any(part.element.joined for part in parts[first + 1 :])


def _stands_alone(parts: list[Part], place: int, length: int) -> bool:
    """Whether the pair has its role to itself: in `called Bob and Carl left` the second name opens a sentence."""
    first = parts[place].element
    if place + length < len(parts) and place > 0:
        following = parts[place + length].element
        if following.stem in SYMMETRIC and place + length + 1 == len(parts):
            return True
        if not following.preposition and following.chunk == parts[place + length - 1].element.chunk:
            return False
        if following.joined:
            return False
    if parts[place + length - 1].element.before_be and place > 0:
        return False
    if place == 0 or first.preposition or first.capital or first.after_be:
        return True
    before = parts[place - 1].element.stem
    return before in MULTI_VALUED or before in FUNCTIONAL or before in SYMMETRIC or before == "what"
