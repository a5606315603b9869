"""What a text says of a person in a special category, by rules: in verbs, in nouns, in fields of a form (CAN-13)."""

import re
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from muniment.language.data_files import word_set
from muniment.language.instructions.characters import visible_text
from muniment.language.patterns import Pattern, PatternSet, read_patterns
from muniment.language.special.persons import RELATIONS, Mention, is_supposed, possessor_of, subject_of

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
_SECTIONS = {
    "patterns": _SAID,
    "case-sensitive patterns": _SAID,
    "possessed": _POSSESSED,
    "fields": _FIELD,
}


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
            for found in self._patterns[index].finditer(text):
                start, end = found.span(1)
                if not self._is_something_else(text, end):
                    yield from self._read(rule, text, start, end)

    def _is_something_else(self, text: str, end: int) -> bool:
        word = _NEXT_WORD.match(text, end)
        return word is not None and word[1].lower() in self._behind

    def _read(self, rule: _Rule, text: str, start: int, end: int) -> Iterator[SpecialFinding]:
        if rule.way == _FIELD:
            yield SpecialFinding(start, end, rule.category, ())
        elif rule.way == _CHILD:
            if self._age.search(_sentence_with(text, start, end)):
                yield SpecialFinding(start, end, rule.category, (Mention("relative", text[start:end]),))
        else:
            persons = subject_of(text, start) if rule.way == _SAID else possessor_of(text, start)
            nobodys = rule.way == _POSSESSED and any(_is_nobodys(one.words, text) for one in persons)
            if persons and not nobodys and not is_supposed(text, start):
                yield SpecialFinding(start, end, rule.category, persons)


_LANGUAGES = (_Language("words/english.txt"), _Language("words/german.txt"))


def find_special(text: str) -> tuple[SpecialFinding, ...]:
    """Return what a text says of persons in special categories, in order; what holds for anybody is left out."""
    plain = visible_text(text).translate(_PLAIN)
    findings = {found for language in _LANGUAGES for found in language.find(plain)}
    if len(plain) != len(text):
        # Something invisible is left out, so that places are not those of the text.
        findings = {found._replace(start=0, end=len(text)) for found in findings}
    return tuple(sorted(findings))


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
