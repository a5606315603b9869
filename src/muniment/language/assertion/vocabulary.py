"""How two words relate: synonyms, antonyms, members of one class, or a word and its hypernym."""

from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from muniment.language.assertion import lexicon
from muniment.language.assertion.stemming import stem
from muniment.language.data_files import word_set

WordRelation = Literal["synonym", "hypernym", "antonym", "alternative"]

_PREFIXES = ("un", "in", "im", "ir", "il", "dis", "non", "non-")
# Words that a prefix gives another sense, not the opposite one.
_NO_OPPOSITES = word_set("""
    form press port come side cover play count door put take deed close vest habit tact crease prove land vent
    pose part pact plant jury tend tense dent charge pass tern sure still gate sect quest
""")


def _stems(words: Iterable[str]) -> list[str]:
    return [stem(word) for word in words]


def _stem_set(name: str) -> frozenset[str]:
    return frozenset(_stems(lexicon.WORD_LISTS[name]))


def _group_synonyms() -> dict[str, str]:
    group: dict[str, str] = {}
    for words in lexicon.SYNONYMS:
        members = _stems(words)
        # The first group wins, so that groups never run together through a word of two senses.
        head = group.get(members[0], members[0])
        for member in members:
            group.setdefault(member, head)
    return group


def _pair_antonyms() -> dict[str, set[str]]:
    antonyms: dict[str, set[str]] = {}
    for left, right in lexicon.ANTONYMS:
        for one in _stems(left):
            for other in _stems(right):
                antonyms.setdefault(one, set()).add(other)
                antonyms.setdefault(other, set()).add(one)
    return antonyms


def _classify() -> tuple[dict[str, dict[str, str]], dict[str, set[str]]]:
    """Return the classes of each member, with the name it goes by there, and the classes below each hypernym."""
    member_of: dict[str, dict[str, str]] = {}
    below: dict[str, set[str]] = {}
    for name, hypernyms, members in lexicon.CLASSES:
        for names in members:
            same = _stems(names)
            for one in same:
                member_of.setdefault(one, {}).setdefault(name, same[0])
        for word in _stems(hypernyms):
            below.setdefault(word, set()).add(name)
    return member_of, below


_SYNONYM_GROUP = _group_synonyms()
ANTONYMS = _pair_antonyms()
CLASSES, _CLASSES_BELOW = _classify()
_COMPATIBLE = {frozenset(_stems(pair)) for pair in lexicon.COMPATIBLE}
_PEOPLE = {stem(word): features for word, features in lexicon.PEOPLE.items()}
MULTI_VALUED = _stem_set("multi_valued")
FUNCTIONAL = _stem_set("functional")
ATTRIBUTES = _stem_set("attributes")
POSSIBLE = _stem_set("possible")
RECURRING = _stem_set("recurring")
AUDIENCES = _stem_set("audiences")
IDENTIFIED = _stem_set("identified")
TIME_ADVERBS = _stem_set("time_adverbs")
CONTAINERS = _stem_set("containers")
LIGHT_IN_QUESTIONS = _stem_set("light_in_questions")
LIGHT_KINDS = tuple(frozenset(_stems(kind)) for kind in lexicon.LIGHT_KINDS)
SYMMETRIC = _stem_set("symmetric")

_KNOWN = frozenset((*ANTONYMS, *CLASSES, *_CLASSES_BELOW, *_PEOPLE, *(word for pair in _COMPATIBLE for word in pair)))
_CLASS_MEMBERS = [name for _, _, members in lexicon.CLASSES for names in members for name in names]
_HYPERNYMS = [word for _, hypernyms, _ in lexicon.CLASSES for word in hypernyms]
_RELATED = [
    word for side in (*lexicon.SYNONYMS, *(side for pair in lexicon.ANTONYMS for side in pair)) for word in side
]
# Words of the lists that are written with a hyphen.
COMPOUNDS = frozenset(word for word in (*_CLASS_MEMBERS, *_HYPERNYMS, *_RELATED) if "-" in word)


def _phrases() -> dict[str, list[tuple[tuple[str, ...], str]]]:
    """Return the fixed phrases by their first word, the longest first, each with the words that replace it."""
    phrases: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    joined = {word.replace("_", " "): word for word in (*_CLASS_MEMBERS, *_RELATED) if "_" in word}
    for phrase, replacement in (joined | lexicon.REWRITES).items():
        words = tuple(phrase.split())
        phrases.setdefault(words[0], []).append((words, replacement))
    for options in phrases.values():
        options.sort(key=lambda option: -len(option[0]))
    return phrases


PHRASES = _phrases()


def synonym_key(word: str) -> str:
    """Return the stem that a stem and its synonyms are matched by."""
    return _SYNONYM_GROUP.get(word, word)


def word_relation(one: str, other: str) -> WordRelation | None:
    """Say how two stems relate; None where nothing is known."""
    if one == other or synonym_key(one) == synonym_key(other):
        return "synonym"
    if one not in _KNOWN and other not in _KNOWN:
        return "antonym" if _is_negated_form(one, other) else None
    # Only pairs of known stems are kept: another may be somebody's name.
    return _kept_relation(one, other) if one in _KNOWN and other in _KNOWN else _relation(one, other)


def _relation(one: str, other: str) -> WordRelation | None:
    of_people = _relation_of_people(one, other)
    if of_people is not None:
        return of_people
    if _is_hypernym(one, other) or _is_hypernym(other, one) or frozenset((one, other)) in _COMPATIBLE:
        return "hypernym"
    if other in ANTONYMS.get(one, ()) or _is_negated_form(one, other):
        return "antonym"
    shared = _shared_classes(one, other)
    if shared:
        return "synonym" if any(CLASSES[one][name] == CLASSES[other][name] for name in shared) else "alternative"
    return None


_kept_relation = lru_cache(maxsize=1 << 14)(_relation)


def _relation_of_people(one: str, other: str) -> WordRelation | None:
    ours, theirs = _PEOPLE.get(one), _PEOPLE.get(other)
    if ours is None or theirs is None:
        return None
    if any(a != b and "-" not in (a, b) for a, b in zip(ours, theirs, strict=True)):
        return "alternative"
    return "alternative" if "relative" in _shared_classes(one, other) else "hypernym"


def _shared_classes(one: str, other: str) -> set[str]:
    return CLASSES.get(one, {}).keys() & CLASSES.get(other, {}).keys()


def _is_hypernym(one: str, other: str) -> bool:
    return bool(_CLASSES_BELOW.get(one, set()) & CLASSES.get(other, {}).keys())


def _is_negated_form(one: str, other: str) -> bool:
    """Say whether one of the words is the other with a negative prefix, as in `able` and `unable`."""
    word, base = (one, other) if len(one) > len(other) else (other, one)
    return len(base) > 3 and word.endswith(base) and word[: -len(base)] in _PREFIXES and base not in _NO_OPPOSITES
