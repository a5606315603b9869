"""How two words stand to one another: synonyms, opposites, members of one class, a word and the word above it."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from muniment.language.assertion.lexicon import antonyms, classes, function_words, phrases, synonyms, words
from muniment.language.assertion.lexicon.people import PEOPLE
from muniment.language.assertion.stemming import stem

Kinship = Literal["synonym", "wider", "antonym", "alternative"]

_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non", "non-")
# Words that a prefix gives another sense, not the opposite one.
_NO_OPPOSITES = words("""
    form press port come side cover play count door put take deed close vest habit tact crease prove land vent
    pose part pact plant jury tend tense dent charge pass tern sure still gate sect quest
""")


def _stems(words: Iterable[str]) -> list[str]:
    return [stem(word) for word in words]


def _grouped() -> dict[str, str]:
    group: dict[str, str] = {}
    for line in synonyms.LINES:
        members = _stems(line.split())
        # The first group wins, so that groups never run together through a word of two senses.
        head = next((group[member] for member in members[:1] if member in group), members[0])
        for member in members:
            group.setdefault(member, head)
    return group


def _opposites() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for line in antonyms.LINES:
        left, right = (_stems(part.split()) for part in line.split("|"))
        for one in left:
            for other in right:
                found.setdefault(one, set()).add(other)
                found.setdefault(other, set()).add(one)
    return found


def _classified() -> tuple[dict[str, dict[str, str]], dict[str, set[str]]]:
    member_of: dict[str, dict[str, str]] = {}
    above: dict[str, set[str]] = {}
    for line in classes.LINES:
        name, wider, members = (part.strip() for part in line.split(";"))
        for names in members.split():
            same = _stems(names.split("="))
            for one in same:
                member_of.setdefault(one, {}).setdefault(name, same[0])
        for word in _stems(wider.split()):
            above.setdefault(word, set()).add(name)
    return member_of, above


GROUPS = _grouped()
OPPOSITES = _opposites()
CLASSES, ABOVE = _classified()
_COMPATIBLE = {frozenset(_stems(pair.split("/"))) for pair in synonyms.COMPATIBLE}
_PEOPLE = {stem(word): features for word, features in PEOPLE.items()}
MULTI_VALUED = frozenset(_stems(function_words.MULTI_VALUED))
FUNCTIONAL = frozenset(_stems(function_words.FUNCTIONAL))
ATTRIBUTES = frozenset(_stems(function_words.ATTRIBUTES))
POSSIBLE = frozenset(_stems(function_words.POSSIBLE))
RECURRING = frozenset(_stems(function_words.RECURRING))
AUDIENCES = frozenset(_stems(function_words.AUDIENCES))
IDENTIFIED = frozenset(_stems(function_words.IDENTIFIED))
TIME_ADVERBS = frozenset(_stems(function_words.TIME_ADVERBS))
CONTAINERS = frozenset(_stems(function_words.CONTAINERS))
LIGHT_IN_QUESTIONS = frozenset(_stems(function_words.LIGHT_IN_QUESTIONS))
LIGHT_KINDS = tuple(frozenset(_stems(kind)) for kind in function_words.LIGHT_KINDS)
SYMMETRIC = frozenset(_stems(function_words.SYMMETRIC))


_KNOWN = frozenset((*OPPOSITES, *CLASSES, *ABOVE, *_PEOPLE, *(word for pair in _COMPATIBLE for word in pair)))


def _phrases() -> dict[str, list[tuple[tuple[str, ...], str]]]:
    found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    joined = {word.replace("_", " "): word for word in _multiword()}
    for phrase, instead in (joined | phrases.REWRITES).items():
        words = tuple(phrase.split())
        found.setdefault(words[0], []).append((words, instead))
    for options in found.values():
        options.sort(key=lambda option: -len(option[0]))
    return found


def _multiword() -> set[str]:
    lines = [part for line in classes.LINES for part in line.split(";")[2].replace("=", " ").split()]
    others = [word for line in (*antonyms.LINES, *synonyms.LINES) for word in line.split() if word != "|"]
    return {word for word in (*lines, *others) if "_" in word}


PHRASES = _phrases()
_LINES = (*antonyms.LINES, *classes.LINES, *synonyms.LINES)
COMPOUNDS = frozenset(word for line in _LINES for word in line.replace("=", " ").split() if "-" in word)


def key(word: str) -> str:
    """What stands for a stem and its synonyms when words are matched."""
    return GROUPS.get(word, word)


@lru_cache(maxsize=1 << 14)
def kinship(one: str, other: str) -> Kinship | None:
    """How two stems stand to one another; None where nothing is known."""
    if one == other or key(one) == key(other):
        return "synonym"
    if one not in _KNOWN and other not in _KNOWN:
        return "antonym" if _prefixed(one, other) or _prefixed(other, one) else None
    people = _of_people(one, other)
    if people is not None:
        return people
    if _wider(one, other) or _wider(other, one):
        return "wider"
    if frozenset((one, other)) in _COMPATIBLE:
        return "wider"
    shared = CLASSES.get(one, {}).keys() & CLASSES.get(other, {}).keys()
    if other in OPPOSITES.get(one, ()) or _prefixed(one, other) or _prefixed(other, one):
        return "antonym"
    if shared:
        return "synonym" if any(CLASSES[one][name] == CLASSES[other][name] for name in shared) else "alternative"
    return None


def _of_people(one: str, other: str) -> Kinship | None:
    ours, theirs = _PEOPLE.get(one), _PEOPLE.get(other)
    if ours is None or theirs is None:
        return None
    apart = any(a != b and "-" not in (a, b) for a, b in zip(ours, theirs, strict=True))
    if apart:
        return "alternative"
    shared = CLASSES.get(one, {}).keys() & CLASSES.get(other, {}).keys()
    return "alternative" if "relative" in shared else "wider"


def _wider(one: str, other: str) -> bool:
    return bool(ABOVE.get(one, set()) & CLASSES.get(other, {}).keys())


def _prefixed(one: str, other: str) -> bool:
    return len(other) > 3 and one.endswith(other) and one[: -len(other)] in _PREFIXES and other not in _NO_OPPOSITES
