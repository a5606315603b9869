"""Reads what the speaker is: name, home, work, family; diet and allergies; favourites."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from muniment.language.data_files import word_set
from muniment.language.messages.clauses import complement_of, is_stated
from muniment.language.messages.sentences import Sentence
from muniment.language.messages.statement import LIKELY, SURE, Statement
from muniment.language.messages.third_person import as_sentence, in_third_person, turn_pronouns
from muniment.language.messages.topics import either_of, topic_of
from muniment.language.patterns import PatternFile

_PATTERNS = PatternFile(__package__ or "", "patterns/profile.txt")

_EMPTY = word_set("it that this there here them him her you a the an to so what and but is are was has can will")
_ARTICLES = word_set("a an the")
_AFTER_OCCUPATION = word_set("at for in of with from on by who that working living")

# Takes a match and the sentence.
_Reader = Callable[[Any, str], Statement | None]


def profile_of(sentence: Sentence) -> list[Statement]:
    """Return the profile facts that the sentence states as the speaker's own, in order."""
    found: list[Statement] = []
    text = sentence.text
    for name, pattern in _PATTERNS.all_of(*_READERS):
        for match in pattern.finditer(text):
            if not is_stated(sentence, match.start(), match.end()):
                continue
            one = _READERS[name](match, text)
            if one is not None and not any(other.position <= match.start() < other.end for other in found):
                found.append(replace(one, position=match.start(), end=match.end()))
    return found


def _complement(match: Any, text: str) -> tuple[str, bool]:
    complement = complement_of(text, match.end(), len(text))
    return complement.object, complement.ended


def _is_long(about: str, longest: int) -> bool:
    return not about or len(about.split()) > longest


def _says_now(phrase: str) -> bool:
    return "no longer" in phrase or " now " in f" {phrase} "


def _clause(*, update: bool = False, longest: int = 12) -> _Reader:
    """Return a reader that keeps the clause as it is, in the third person."""

    def read(match: Any, text: str) -> Statement | None:
        about, ended = _complement(match, text)
        if _is_long(about, longest) or about.split()[0].lower() in _EMPTY:
            return None
        phrase = match.group().strip()
        clause = in_third_person(f"{phrase} {about}{' any more' if ended else ''}")
        return Statement(clause, SURE, update or ended or _says_now(phrase))

    return read


def _name(match: Any, text: str) -> Statement:
    return Statement(as_sentence(f"The user's name is {match.group(1)}"), SURE)


def _name_to_use(match: Any, text: str) -> Statement:
    name = match.group(1)
    return Statement(as_sentence(f"The user wants to be called {name}"), SURE, predicate="name_to_use", value=name)


def _name_not_to_use(match: Any, text: str) -> Statement | None:
    name = match.group(1)
    topic = topic_of(name)
    clause = as_sentence(f"The user does not want to be called {name}")
    return Statement(clause, SURE, predicate=f"name_to_use_{topic}", value=False) if topic else None


def _occupation(match: Any, text: str) -> Statement | None:
    about, ended = _complement(match, text)
    words = about.split()
    end = next((index for index, word in enumerate(words) if word.lower() in _AFTER_OCCUPATION), len(words))
    occupation = " ".join(words[:end])
    if (
        _is_long(occupation, 5)
        or _PATTERNS["no_occupation"].search(occupation)
        or not _PATTERNS["occupation_word"].search(occupation)
    ):
        return None
    phrase = match.group().strip()
    clause = in_third_person(f"{phrase} {' '.join(words[:12])}{' any more' if ended else ''}")
    return Statement(clause, LIKELY, ended or "not" in phrase.split() or _says_now(phrase))


def _attribute(match: Any, text: str) -> Statement | None:
    about, _ = _complement(match, text)
    if _is_long(about, 12) or about.split()[0].lower() in _EMPTY - _ARTICLES:
        return None
    if about.split()[0].lower().endswith("ing") or _PATTERNS["no_attribute"].search(match.group(1)):
        return None
    update = not word_set("new now changed").isdisjoint(match.group().lower().split())
    return Statement(as_sentence(f"The user's {match.group(1).lower()} is {turn_pronouns(about)}"), SURE, update)


def _changed(match: Any, text: str) -> Statement | None:
    about, _ = _complement(match, text)
    if _is_long(about, 12):
        return None
    attribute, old = match.group(1).lower(), match.group(2)
    before = f" (before: {turn_pronouns(old)})" if old else ""
    return Statement(as_sentence(f"The user's {attribute} is now {turn_pronouns(about)}{before}"), SURE, True)


def _switched(match: Any, text: str) -> Statement | None:
    about, _ = _complement(match, text)
    old = match.group(1)
    if _is_long(about, 10):
        return None
    clause = in_third_person(f"I switched from {old} to {about}" if old else f"I switched to {about}")
    predicate = either_of(topic_of(about), topic_of(old or ""))
    return Statement(clause, SURE, True, predicate=predicate, value=turn_pronouns(about) if predicate else None)


def _diet(match: Any, text: str) -> Statement:
    diet = match.group(1).strip().lower()
    if _PATTERNS["ended"].search(match.group()) or _PATTERNS["no_more"].search(text[match.end() : match.end() + 12]):
        clause = as_sentence(f"The user no longer keeps to a {diet} diet")
        return Statement(clause, SURE, True, predicate=f"likes_{topic_of(diet)}_diet", value=False)
    reason = complement_of(text, match.end(), len(text)).reason
    follows = match.group().lower().endswith("diet")
    clause = in_third_person(f"I follow a {diet} diet{reason}" if follows else f"I am {diet}{reason}")
    return Statement(clause, SURE, predicate="diet", value=diet)


def _allergy(match: Any, text: str) -> Statement | None:
    allergen = match.group(1) if match.groups() and match.group(1) else _complement(match, text)[0]
    next_clause = _PATTERNS["clause_after_allergy"].search(allergen)
    allergen = allergen[: next_clause.start()] if next_clause else allergen
    topic = topic_of(allergen)
    if topic is None or len(allergen.split()) > 8:
        return None
    ended = bool(_PATTERNS["ended"].search(match.group()))
    clause = as_sentence(f"The user is {'not ' if ended else ''}allergic to {turn_pronouns(allergen)}")
    return Statement(clause, SURE, ended, predicate=f"allergic_to_{topic}", value=not ended)


def _favourite(match: Any, text: str) -> Statement | None:
    about, _ = _complement(match, text)
    kind = topic_of(match.group(1))
    if (
        kind is None
        or _PATTERNS["no_kind"].search(match.group(1))
        or _is_long(about, 15)
        or about.split()[0].lower() in _EMPTY - _ARTICLES
    ):
        return None
    favourite = turn_pronouns(about)
    if _PATTERNS["one_of"].search(text[: match.start()]):
        clause = as_sentence(f"One of the user's favourite {match.group(1).lower()} is {favourite}")
        return Statement(clause, SURE, predicate=f"likes_{topic_of(about)}", value=True)
    verb = "are" if " are" in match.group().lower() else "is"
    clause = as_sentence(f"The user's favourite {match.group(1).lower()} {verb} {favourite}")
    update = bool(_PATTERNS["new"].search(match.group()))
    return Statement(clause, SURE, update, predicate=f"favourite_{kind}", value=favourite)


def _is_favourite(match: Any, text: str) -> Statement | None:
    about, kind = match.group(1), topic_of(match.group(2))
    if kind is None or about.lower() in _EMPTY:
        return None
    favourite = turn_pronouns(about)
    clause = as_sentence(f"The user's favourite {match.group(2).lower()} is {favourite}")
    return Statement(clause, SURE, predicate=f"favourite_{kind}", value=favourite)


# What reads the matches of the patterns of each name.
_READERS: dict[str, _Reader] = {
    "name": _name,
    "name_to_use": _name_to_use,
    "name_not_to_use": _name_not_to_use,
    "clause": _clause(),
    "clause of update": _clause(update=True),
    "short clause": _clause(longest=6),
    "occupation": _occupation,
    "age": lambda match, text: Statement(as_sentence(f"The user is {match.group(1)} years old"), SURE),
    "status": lambda match, text: Statement(in_third_person(match.group()), SURE, " now " in f" {match.group()} "),
    "relatives": lambda match, text: Statement(in_third_person(f"I have {match.group(1)}"), LIKELY),
    "attribute": _attribute,
    "changed": _changed,
    "switched": _switched,
    "diet": _diet,
    "allergy": _allergy,
    "favourite": _favourite,
    "is_favourite": _is_favourite,
}
