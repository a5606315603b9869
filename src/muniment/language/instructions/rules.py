"""Rules over words: patterns with a reason and a weight, all looked for in one pass."""

from collections.abc import Sequence
from dataclasses import dataclass

from muniment.language.instructions.patterns import PatternSet
from muniment.language.instructions.signs import Sign
from muniment.language.instructions.words import fold


@dataclass(frozen=True)
class Rule:
    """A pattern over `words()`; it begins and ends at a space unless its script puts none between words."""

    reason: str
    weight: float
    pattern: str
    spaced: bool = True


class RuleSet:
    """Rules compiled together."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._signs = [Sign(rule.reason, rule.weight) for rule in rules]
        folded = ((fold(rule.pattern), rule.spaced) for rule in rules)
        self._patterns = PatternSet(f" (?:{pattern}) " if spaced else pattern for pattern, spaced in folded)

    def signs(self, text: str) -> list[Sign]:
        """The sign of each rule that matches somewhere."""
        return [self._signs[number] for number in self._patterns.matching(text)]


def gap(most: int) -> str:
    """Up to so many words of the same clause, whatever they are."""
    return f"(?:[^ .:]+ ){{0,{most}}}"


def one_of(*alternatives: str) -> str:
    """Any of the alternatives; each may hold several, divided by bars."""
    return f"(?:{'|'.join(alternatives)})"
