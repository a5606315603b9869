"""Reads what the speaker is: name, home, work, family; diet and allergies; favourites."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from muniment.language.data_files import word_set
from muniment.language.messages.clauses import complement_of, is_stated
from muniment.language.messages.sentences import Sentence
from muniment.language.messages.statement import LIKELY, SURE, Statement
from muniment.language.messages.topics import either_of, topic_of
from muniment.language.patterns import PatternFile

_PATTERNS = PatternFile(__package__ or "", "patterns/profile.txt")

_EMPTY = word_set("it that this there here them him her you a the an to so what and but is are was has can will")
_ARTICLES = word_set("a an the")
_AFTER_OCCUPATION = word_set("at for in of with from on by who that working living")

# Takes a match and the sentence.
_Reader = Callable[[Any, str], Iterator[Statement]]


def profile_of(sentence: Sentence) -> list[Statement]:
    """Return the profile facts that the sentence states as the speaker's own, in order."""
    found: list[Statement] = []
    text = sentence.text
    for name, pattern in _PATTERNS.all_of(*_READERS):
        for match in pattern.finditer(text):
            if not is_stated(sentence, match.start(), match.end()):
                continue
            if any(other.position <= match.start() < other.end for other in found):
                continue
            read = list(_READERS[name](match, text))
            found += [replace(one, position=match.start(), end=max(match.end(), one.end)) for one in read]
    return found


def _complement(match: Any, text: str) -> tuple[str, bool]:
    complement = complement_of(text, match.end(), len(text))
    return complement.object, complement.ended


def _end(match: Any, text: str) -> int:
    """Return where what follows a match ends."""
    return complement_of(text, match.end(), len(text)).end


def _is_long(about: str, longest: int) -> bool:
    return not about or len(about.split()) > longest


def _says_now(phrase: str) -> bool:
    return "no longer" in phrase or " now " in f" {phrase} "


def _clause(*, update: bool = False, longest: int = 12) -> _Reader:
    """Return a reader of a clause that is a plain statement."""

    def read(match: Any, text: str) -> Iterator[Statement]:
        about, ended = _complement(match, text)
        if _is_long(about, longest) or about.split()[0].lower() in _EMPTY:
            return
        yield Statement(SURE, update or ended or _says_now(match.group().strip()), end=_end(match, text))

    return read


def _plain(match: Any, text: str) -> Iterator[Statement]:
    yield Statement(SURE, " now " in f" {match.group()} ")


def _name_to_use(match: Any, text: str) -> Iterator[Statement]:
    yield Statement(SURE, predicate="name_to_use", value=match.group(1))


def _name_not_to_use(match: Any, text: str) -> Iterator[Statement]:
    if (topic := topic_of(match.group(1))) is not None:
        yield Statement(SURE, predicate=f"name_to_use_{topic}", value=False)


def _name_of(match: Any, text: str) -> Iterator[Statement]:
    """Read the name of somebody of whom the speaker has one; of others they may have several."""
    relation, name = match.group(1).lower(), match.group(2)
    if _PATTERNS["no_name"].search(name):
        return
    one = _PATTERNS["only_one"].search(relation)
    yield Statement(SURE, predicate=f"name_of_{topic_of(relation)}", value=name) if one else Statement(SURE)


def _home(*, update: bool = False) -> _Reader:
    """Return a reader of where the speaker lives, where the sentence says nothing else; they live in one place."""

    def read(match: Any, text: str) -> Iterator[Statement]:
        changed = update or " now" in match.group()
        yield Statement(SURE, changed, predicate="lives_in", value=match.group(1))

    return read


def _occupation(match: Any, text: str) -> Iterator[Statement]:
    about, ended = _complement(match, text)
    words = about.split()
    end = next((index for index, word in enumerate(words) if word.lower() in _AFTER_OCCUPATION), len(words))
    occupation = " ".join(words[:end])
    if (
        _is_long(occupation, 5)
        or _PATTERNS["no_occupation"].search(occupation)
        or not _PATTERNS["occupation_word"].search(occupation)
    ):
        return
    phrase = match.group().strip()
    yield Statement(LIKELY, ended or "not" in phrase.split() or _says_now(phrase), end=_end(match, text))


def _attribute(match: Any, text: str) -> Iterator[Statement]:
    about, _ = _complement(match, text)
    if _is_long(about, 12) or about.split()[0].lower() in _EMPTY - _ARTICLES:
        return
    if about.split()[0].lower().endswith("ing") or _PATTERNS["no_attribute"].search(match.group(1)):
        return
    changed = not word_set("new now changed").isdisjoint(match.group().lower().split())
    yield Statement(SURE, changed, end=_end(match, text))


def _changed(match: Any, text: str) -> Iterator[Statement]:
    if not _is_long(_complement(match, text)[0], 12):
        yield Statement(SURE, True, end=_end(match, text))


def _switched(match: Any, text: str) -> Iterator[Statement]:
    about, _ = _complement(match, text)
    if _is_long(about, 10):
        return
    predicate = either_of(topic_of(about), topic_of(match.group(1) or ""))
    yield Statement(SURE, True, predicate=predicate, value=about if predicate else None, end=_end(match, text))


def _diet(match: Any, text: str) -> Iterator[Statement]:
    diet = match.group(1).strip()
    if _PATTERNS["ended"].search(match.group()) or _PATTERNS["no_more"].search(text[match.end() : match.end() + 12]):
        yield Statement(SURE, True, predicate=f"likes_{topic_of(diet)}_diet", value=False)
        return
    exception = _PATTERNS["exception"].search(text[match.end() :])
    if exception:
        start, end = text.index(diet, match.start()), match.end() + exception.end()
        yield Statement(SURE, predicate="diet", value=text[start:end].rstrip(" ,"), end=end)
    else:
        yield Statement(SURE, predicate="diet", value=diet)


def _allergy(match: Any, text: str) -> Iterator[Statement]:
    given = match.group(1) if match.groups() and match.group(1) else _complement(match, text)[0]
    next_clause = _PATTERNS["clause_after_allergy"].search(given)
    given = given[: next_clause.start()] if next_clause else given
    ended = bool(_PATTERNS["ended"].search(match.group()))
    end = max(match.end(), text.index(given, match.start()) + len(given)) if given else match.end()
    for allergen in _PATTERNS["between_allergens"].sub("\n", given).split("\n"):
        topic, denied = topic_of(allergen), allergen.lower().startswith("not ")
        if topic is not None and len(allergen.split()) <= 8:
            holds = not ended and not denied
            yield Statement(SURE, ended, predicate=f"allergic_to_{topic}", value=holds, end=end)


def _allergy_after(match: Any, text: str) -> Iterator[Statement]:
    """Read the second half of "I'm vegan and allergic to nuts"."""
    if _PATTERNS["of_speaker"].search(text[: match.start()]):
        yield from _allergy(match, text)


def _favourite(match: Any, text: str) -> Iterator[Statement]:
    about, _ = _complement(match, text)
    kind = topic_of(match.group(1))
    if (
        kind is None
        or _PATTERNS["no_kind"].search(match.group(1))
        or _is_long(about, 15)
        or about.split()[0].lower() in _EMPTY - _ARTICLES
    ):
        return
    if _PATTERNS["one_of"].search(text[: match.start()]):
        yield Statement(SURE, predicate=f"likes_{topic_of(about)}", value=True, end=_end(match, text))
    else:
        update = bool(_PATTERNS["new"].search(match.group()))
        yield Statement(SURE, update, predicate=f"favourite_{kind}", value=about, end=_end(match, text))


def _is_favourite(match: Any, text: str) -> Iterator[Statement]:
    about, kind = match.group(1), topic_of(match.group(2))
    if kind is not None and about.lower() not in _EMPTY:
        yield Statement(SURE, predicate=f"favourite_{kind}", value=about)


def _relatives(match: Any, text: str) -> Iterator[Statement]:
    yield Statement(LIKELY)


# What reads the matches of the patterns of each name.
_READERS: dict[str, _Reader] = {
    "name": _plain,
    "name_to_use": _name_to_use,
    "name_not_to_use": _name_not_to_use,
    "name_of": _name_of,
    "home": _home(),
    "home of update": _home(update=True),
    "clause": _clause(),
    "clause of update": _clause(update=True),
    "short clause": _clause(longest=6),
    "occupation": _occupation,
    "age": _plain,
    "status": _plain,
    "relatives": _relatives,
    "attribute": _attribute,
    "changed": _changed,
    "switched": _switched,
    "diet": _diet,
    "allergy": _allergy,
    "allergy after": _allergy_after,
    "favourite": _favourite,
    "is_favourite": _is_favourite,
}
