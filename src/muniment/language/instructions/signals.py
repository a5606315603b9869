"""Signals that a text addresses the model, and the rules that find them; the rules are the files in rules/."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

from muniment.language.data_files import fill_parts, named_lines, read_sections
from muniment.language.instructions.normalisation import fold
from muniment.language.patterns import PatternSet

_PARTS = "parts"
_WORDS = re.compile(r"<(\d+) words>")


@dataclass(frozen=True)
class Signal:
    """One observation; `weight` is the probability that a text with this signal alone addresses the model."""

    reason: str
    weight: float


class Rule(NamedTuple):
    """A pattern, and the signal that a match gives."""

    signal: Signal
    pattern: str


class RuleSet:
    """The rules of some files, read and compiled together when first used.

    Rules over words begin and end at a space, unless the script has no spaces between words. Rules over markup
    (`over_words=False`) match the text itself in either case.
    """

    def __init__(self, *names: str, unspaced: Sequence[str] = (), over_words: bool = True) -> None:
        self._names = names
        self._unspaced = unspaced
        self._over_words = over_words

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules in the order of the files."""
        rules = [rule for name in self._names for rule in _read_rules(name)]
        if self._over_words:
            rules = [Rule(rule.signal, f" (?:{fold(rule.pattern)}) ") for rule in rules]
        unspaced = [rule for name in self._unspaced for rule in _read_rules(name)]
        return (*rules, *(Rule(rule.signal, fold(rule.pattern)) for rule in unspaced))

    @cached_property
    def _patterns(self) -> PatternSet:
        return PatternSet((rule.pattern for rule in self.rules), case_sensitive=self._over_words)

    def signals(self, text: str) -> list[Signal]:
        """Return the signal of each rule that matches somewhere in the text."""
        return [self.rules[index].signal for index in self._patterns.matching(text)]


def _read_rules(name: str) -> Iterator[Rule]:
    sections = _read_file(name)
    parts = _read_parts(name)
    for header, lines in sections.items():
        reason, _, languages = header.partition(" in ")
        for language in languages.split() or [""]:
            for line in lines if reason != _PARTS else ():
                weight, _, pattern = line.partition(" ")
                pattern = fill_parts(pattern.replace("_LANG>", f"_{language}>"), parts)
                # Words of the same clause.
                yield Rule(Signal(reason, float(weight)), _WORDS.sub(r"(?:[^ .:]+ ){0,\1}", pattern))


def _read_file(name: str) -> dict[str, list[str]]:
    return read_sections(__package__ or "", f"rules/{name}.txt", joint="")


@cache
def _read_parts(name: str) -> Mapping[str, str]:
    """Return the parts that the rules of a file refer to; `english_orders` shares those of `english`."""
    shared: Mapping[str, str] = _read_parts("english") if name == "english_orders" else {}
    return {**shared, **dict(named_lines(_read_file(name).get(_PARTS, [])))}
