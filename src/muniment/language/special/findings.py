"""What a text says of a person in a special category, by rules: in verbs, in nouns, in fields of a form (CAN-13)."""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple
from unicodedata import combining, normalize

from muniment.language.data_files import word_set
from muniment.language.instructions.characters import visible_text
from muniment.language.patterns import Pattern, PatternSet, read_patterns
from muniment.language.special.persons import (
    is_supposed,
    mentions_in,
    noun_at,
    persons_before,
    possessor_of,
    sentence_around,
    subject_of,
)
from muniment.language.special.shared import with_sharers
from muniment.language.special.tokens import RELATIONS, Mention, Tokens

# Special categories of personal data, and other facts that the law protects.
CATEGORIES = frozenset(("HEALTH", "BELIEF", "POLITICS", "SEXUALITY", "UNION", "BIOMETRICS", "CRIMINAL", "CHILD"))
# Those for which somebody else's consent counts where they are said of somebody else (CAN-16). A fact about a named
# child is always about somebody else; whoever speaks for the child consents.
PROTECTS_OTHERS = CATEGORIES - {"CHILD"}

_PLAIN = str.maketrans({"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u00a0": " ", "\t": " "})
_NEXT_WORD = re.compile(r"[ -]([^\W\d_]+)")
_NAME_BREAKS = re.compile(r"[_.\-/\s]+|(?<=[a-z])(?=[A-Z])")
# Whose thing is the company's or the reader's: "our diabetes programme", "your fingerprint".
_NOBODYS = word_set("our your unser unsere unseren unserem unserer dein deine deinen deinem deiner its")
# Capitalised within a sentence it is the reader's, else hers or theirs.
_FORMAL = frozenset(("Ihr", "Ihre", "Ihren", "Ihrem", "Ihrer"))
_SAID, _POSSESSED, _FIELD, _CHILD = "said", "possessed", "field", "child"
_ATTRIBUTE, _PARTNER, _NOTED, _LISTED = "attribute", "partner", "noted", "listed"
_SECTIONS = {
    "patterns": _SAID,
    "case-sensitive patterns": _SAID,
    "possessed": _POSSESSED,
    "attributes": _ATTRIBUTE,
    "partners": _PARTNER,
    "noted": _NOTED,
    "listed": _LISTED,
    "fields": _FIELD,
}
# Between a person and what is noted of them.
_SIGN = re.compile(r"(?:\s?[=:(,]|\s[-\u2013\u2014>]+)\s?\Z")
# Behind a noun that names somebody by what they are.
_NOUN_ENDS = re.compile(r"\s*(?:[.,;!?)]|\Z)|\s+(?:called|named|who|and|but|or|since|for|from|in|at|whom)\b")
# The letters of a word with signs between them: "H.I.V.", "c-a-n-c-e-r".
_SPELLED = re.compile(r"(?<![^\W_])[^\W\d_](?:[.\u00b7-][^\W\d_]){2,}(?![^\W_])")
_AUXILIARY = re.compile(r"\b(?:has|have|had|is|are|was|were)\b", re.IGNORECASE)
# Parts of a sentence, of which a later one may leave the verb out, and how many words that has behind the person.
_PARTS = re.compile(r"[,;]\s*(?:and |but |while )?|\s(?:and|but|while|-)\s")
_SENTENCE_END = re.compile(r"[.!?](?:\s|$)|\n")
_MOST_PARTS, _LONGEST_GAP, _SENTENCE = 5, 3, 300
# Matches of one pattern that are read in a text.
_MOST_MATCHES = 32
# The verb of another person in place of the speaker's.
_VERBS = {"'m": "is", "am": "is", "are": "is", "'re": "is", "have": "has", "'ve": "has", "vote": "votes"}


class SpecialFinding(NamedTuple):
    """A span that says something in a special category, and of whom; nobody where a field of a form says it."""

    start: int
    end: int
    category: str
    persons: tuple[Mention, ...]


def _as_whole(source: str) -> str:
    """Return a pattern that stands for whole words, which are its first group; RE2 knows word ends of ASCII alone."""
    return rf"\b({source})(?:[^\pL\pN]|$)"


class _Rule(NamedTuple):
    """A pattern of a category, and how it is said: by a verb, by a noun that somebody has, in a field."""

    category: str
    way: str
    source: str


class _Language:
    """The rules of one language, read when first used."""

    def __init__(self, file: str) -> None:
        self._file = file

    @cached_property
    def _sections(self) -> dict[str, list[tuple[str, str]]]:
        return read_patterns(__package__ or "", self._file)

    @cached_property
    def _rules(self) -> list[_Rule]:
        rules = [
            _Rule(name, way, source if section.startswith("case") else f"(?i:{source})")
            for section, way in _SECTIONS.items()
            for name, source in self._sections[section]
        ]
        named = dict(self._sections["child"])["named"]
        return [*rules, _Rule("CHILD", _CHILD, named)]

    @cached_property
    def _all(self) -> PatternSet:
        return PatternSet(rf"\b(?:{rule.source})" for rule in self._rules)

    @cached_property
    def _patterns(self) -> list[Pattern]:
        return [Pattern(_as_whole(rule.source)) for rule in self._rules]

    @cached_property
    def _behind(self) -> frozenset[str]:
        return word_set(dict(self._sections["words behind"])["nouns"])

    @cached_property
    def _age(self) -> Pattern:
        return Pattern(dict(self._sections["child"])["age"])

    @cached_property
    def names(self) -> list[tuple[str, Pattern]]:
        """The patterns of names of predicates and fields."""
        return [(name, Pattern(_as_whole(f"(?i:{source})"))) for name, source in self._sections["names"]]

    def find(self, text: str) -> Iterator[SpecialFinding]:
        for index in self._all.matching(text):
            rule = self._rules[index]
            for count, found in enumerate(self._patterns[index].finditer(text)):
                start, end = found.span(1)
                if count >= _MOST_MATCHES:
                    # Nobody writes so much of one kind; who is meant in the rest is not read.
                    yield SpecialFinding(start, len(text), rule.category, (Mention("pronoun", "they"),))
                    break
                if not self._is_something_else(text, end):
                    yield from self._read(rule, text, start, end)

    def _is_something_else(self, text: str, end: int) -> bool:
        word = _NEXT_WORD.match(text, end)
        return word is not None and word[1].lower() in self._behind

    def _read(self, rule: _Rule, text: str, start: int, end: int) -> Iterator[SpecialFinding]:
        if rule.way == _CHILD:
            if self._age.search(_sentence_with(text, start, end)):
                yield SpecialFinding(start, end, rule.category, (Mention("relative", text[start:end]),))
            return
        if rule.way == _SAID:
            start = _last_verb(text, start, end)
        persons = self._persons(rule, text, start, end)
        if rule.way == _FIELD:
            yield SpecialFinding(start, end, rule.category, persons)
        elif persons and not is_supposed(text, start):
            shared = with_sharers(text, start, end, persons)
            gapped = self._gapped(text, start, end) if rule.way == _SAID else ()
            yield SpecialFinding(start, end, rule.category, (*shared, *gapped))

    def _persons(self, rule: _Rule, text: str, start: int, end: int) -> tuple[Mention, ...]:
        """Return of whom a match is said."""
        match rule.way:
            case "said":
                return subject_of(text, start)
            case "possessed":
                persons = possessor_of(text, start)
                return () if any(_is_nobodys(one.words, text) for one in persons) else persons
            case "attribute":
                found = noun_at(text, start, end)
                return () if found is None else (found,)
            case "partner":
                return (Mention("relative", text[start:end]),) if _NOUN_ENDS.match(text, end) else ()
            case "noted":
                sign = _SIGN.search(text, max(0, start - 4), start)
                return persons_before(text, sign.start()) if sign is not None else ()
            case "listed":
                after = sentence_around(text, end, end)[1]
                listed = mentions_in(after)
                return tuple(one.mention for one in listed) if listed and listed[0].first == 0 else ()
            case _:
                within = sentence_around(text, end, end)[0]
                named = [one.mention for one in mentions_in(within) if one.mention.kind not in ("self", "you")]
                return possessor_of(text, start) or tuple(named)

    def _gapped(self, text: str, start: int, end: int) -> tuple[Mention, ...]:
        """Return whom a later part of the sentence is about that leaves the verb out: "I voted CDU, Tom AfD"."""
        first, _, _ = text[start:end].partition(" ")
        verb = _VERBS.get(first.lower(), first)
        found: list[Mention] = []
        for part in _PARTS.split(_rest_of(text, end))[1:_MOST_PARTS]:
            words = Tokens.of(part).said[: _LONGEST_GAP + 3]
            for count in range(1, len(words)):
                person, rest = Tokens.of(" ".join(words[:count])), " ".join(words[count:])
                one = next(iter(mentions_in(person)), None)
                if one is None or one.mention.kind == "self" or len(words) - count > _LONGEST_GAP:
                    continue
                if (one.first, one.last) == (0, count - 1) and self._says(f"{one.mention.words} {verb} {rest}"):
                    found.append(one.mention)
                    break
        return tuple(found)

    def _says(self, text: str) -> bool:
        return any(self._rules[index].way == _SAID for index in self._all.matching(text))


def _last_verb(text: str, start: int, end: int) -> int:
    """Return where the verb begins that has what is said: in "whom I live with has ..." it is the second."""
    if _AUXILIARY.match(text, start):
        return start
    inner = list(_AUXILIARY.finditer(text, start, end))
    return inner[-1].start() if inner else start


def _rest_of(text: str, end: int) -> str:
    """Return what stands behind a place in its sentence, semicolons included."""
    rest = text[end : end + _SENTENCE]
    ending = _SENTENCE_END.search(rest)
    return rest[: ending.start()] if ending else rest


_LANGUAGES = (_Language("words/english.txt"), _Language("words/german.txt"))


def _read_plain(text: str) -> str:
    """Return a text as the rules read it: what is visible, with plain signs and without words that are spelled out."""
    return _SPELLED.sub(_joined, visible_text(text).translate(_PLAIN))


def find_special(text: str) -> tuple[SpecialFinding, ...]:
    """Return what a text says of persons in special categories, in order; what holds for anybody is left out."""
    plain = _read_plain(text)
    findings = {found for language in _LANGUAGES for found in language.find(plain)}
    bare = plain if plain.isascii() else _without_marks(plain)
    if bare != plain:
        findings |= set(_LANGUAGES[0].find(bare))
    if notes := tuple(_in_notes(plain)):
        # The first word of a note is no name, although it has a capital.
        heads = {plain[found.start :].split(" ", 1)[0] for found in notes}
        named = {found for found in findings if any(one.kind == "name" and one.words in heads for one in found.persons)}
        findings = (findings - named) | set(notes)
    if len(plain) != len(text) or len(bare) != len(plain):
        # Something invisible is left out, so that places are not those of the text.
        findings = {found._replace(start=0, end=len(text)) for found in findings}
    return tuple(sorted(findings))


# Notes leave out their subject and often the verb: "Has diabetes", "Allergic to penicillin", "Ist schwanger".
_NOTE = re.compile(r"[^.;!?\n]+[.;!?]?")
# The subject and the verb that notes leave out, in each language.
_LEFT_OUT = (("User ", "is "), ("Der Nutzer ", "ist "))
# A sentence that begins with one of these names its subject, and is no note.
_SUBJECTS = word_set(
    "i i'm i've my we our you your he she it they his her their its this that these those the a an there what who if"
    " when please ich wir du ihr sie er es mein meine unser unsere dein deine der die das den dem ein eine einen wenn"
)
_OWN_VERB = re.compile(r"(?:has|had|is|was|hat|hatte|ist|war)\b", re.IGNORECASE)
# What may follow a word for what somebody is. A noun may not: it would be what the word is said of ("Pregnant pause",
# "Gay Street").
_TAKES_OBJECT = (" to", " with", " of", " gegen", " an")
_QUALITY_ENDS = re.compile(
    r"\s*(?:[^\w\s]|\Z)|\s+(?:and|but|or|since|for|from|in|at|on|with|to|by|due|after|as|because|und|aber|seit|mit|im|nach)\b",
    re.IGNORECASE,
)


def _in_notes(text: str) -> Iterator[SpecialFinding]:
    """Yield what notes say of the person whom they do not name: the one whom the record is about."""
    for match in _NOTE.finditer(text):
        note = match.group().lstrip(" -*\u2022\t")
        words = note.split(None, 1)
        if not words or note.endswith("?") or words[0].lower() in _SUBJECTS:
            continue
        begin = match.end() - len(note)
        for language, (subject, verb) in zip(_LANGUAGES, _LEFT_OUT, strict=True):
            for about in (subject, subject + verb):
                whole = about + note[0].lower() + note[1:]
                for found in language.find(whole):
                    if _is_noted(whole, found, len(subject), len(about)):
                        start, end = (max(begin, begin + place - len(about)) for place in (found.start, found.end))
                        yield found._replace(start=start, end=end)


def _is_noted(whole: str, found: SpecialFinding, verb: int, note: int) -> bool:
    """Whether a finding is in the first words of a note, which is given with what it leaves out in front.

    `verb` is where the verb begins in it, and `note` where the words of the note itself begin.
    """
    if verb < note:
        if found.start != verb or found.end <= note:
            return False
        return whole.endswith(_TAKES_OBJECT, 0, found.end) or _QUALITY_ENDS.match(whole, found.end) is not None
    of_user = any(one.kind == "user" for one in found.persons)
    return (found.start == verb and of_user) or _OWN_VERB.match(whole, verb) is not None


# The value of a field is the object of these, in each language.
_OBJECT_OF = (("User ", "has "), ("Der Nutzer ", "hat "))
# A longer value is a text, and is read as one.
_LONGEST_VALUE = 120


def categories_of_value(value: str) -> frozenset[str]:
    """Return the categories of what a value alone says about the person in whose record it is, such as "asthma"."""
    plain = _read_plain(value).strip(" .!")
    if not plain or len(plain) > _LONGEST_VALUE:
        return frozenset()
    found: set[str] = set()
    for language, (subject, verb) in zip(_LANGUAGES, _OBJECT_OF, strict=True):
        whole = f"{subject}{verb}{plain}"
        found |= {one.category for one in language.find(whole) if (one.start, one.end) == (len(subject), len(whole))}
    return frozenset(found)


def _joined(spelled: re.Match[str]) -> str:
    """Return the letters of a word that is spelled out, with the full stop that may end its sentence."""
    return "".join(letter for letter in spelled.group() if letter.isalpha())


def _without_marks(text: str) -> str:
    """Return a text without accents, a letter for a letter."""
    return "".join(normalize("NFD", letter)[:1] for letter in text if not combining(letter))


def category_of_name(name: str) -> str | None:
    """Return the category that a predicate or a field is about by its name, such as `allergic_to`."""
    words = " ".join(_NAME_BREAKS.split(name))
    found = (category for language in _LANGUAGES for category, pattern in language.names if pattern.search(words))
    return next(found, None)


def names_relation(name: str) -> bool:
    """Whether the name of a predicate or a field names a relative or an acquaintance, such as `wife_religion`."""
    return not RELATIONS.isdisjoint(word.lower() for word in _NAME_BREAKS.split(name))


def _is_nobodys(words: str, text: str) -> bool:
    return words.lower() in _NOBODYS or (words in _FORMAL and not text.startswith(words))


def _sentence_with(text: str, start: int, end: int) -> str:
    low = max(text.rfind(". ", 0, start), text.rfind("\n", 0, start)) + 1
    high = min((place for place in (text.find(". ", end), text.find("\n", end)) if place >= 0), default=len(text))
    return text[low:high]
