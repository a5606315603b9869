"""Scores how likely a text addresses the model instead of stating a fact."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import prod

from muniment.language.instructions.readings import read_all
from muniment.language.instructions.signals import RuleSet, Signal

THRESHOLD = 0.5
"""From this score on a text counts as addressed to the model."""

# Signals count together where they stand close together: a long text is scored by its most suspicious passage.
_PASSAGE = 1200
_OVERLAP = 300

_RULES = (
    RuleSet("english"),
    RuleSet("english_orders"),
    RuleSet("german"),
    RuleSet("romance"),
    RuleSet(
        *("dutch", "south_slavic", "russian", "polish_czech", "turkish", "arabic"),
        unspaced=("chinese", "japanese", "korean"),
    ),
)
_MARKUP_RULES = RuleSet("markup", over_words=False)
_MARKUP = frozenset("<[#:{`|\\=*-_!")


@dataclass(frozen=True)
class Suspicion:
    """How likely a text addresses the model, from 0 to 1, and the codes of the reasons, the heaviest first."""

    score: float
    reasons: tuple[str, ...]

    @property
    def addresses_the_model(self) -> bool:
        """Whether the score reaches the threshold."""
        return self.score >= THRESHOLD


def suspicion(text: str) -> Suspicion:
    """Score a text by every reading of it (CAN-7); it never raises and takes time linear in the length."""
    found = read_all(text)
    heaviest: list[Signal] = []
    for reading in found.readings:
        in_markup = [] if _MARKUP.isdisjoint(reading.text) else _MARKUP_RULES.signals(reading.text)
        for passage in _passages(reading.words):
            signals = [*in_markup, *(signal for rules in _RULES for signal in rules.signals(passage))]
            if _combine(signals) > _combine(heaviest):
                heaviest = signals
    signals = [*heaviest, *found.signals]
    return Suspicion(round(_combine(signals), 4), _reasons(signals))


def _passages(words: str) -> Iterator[str]:
    if len(words) <= _PASSAGE:
        yield words
        return
    for start in range(0, len(words) - _OVERLAP, _PASSAGE - _OVERLAP):
        yield words[start : start + _PASSAGE]


def _combine(signals: Iterable[Signal]) -> float:
    """Combine the weights by noisy-or: each signal takes its share of the doubt that the others left."""
    return 1.0 - prod(1.0 - signal.weight for signal in signals)


def _reasons(signals: Iterable[Signal]) -> tuple[str, ...]:
    """Return the codes, once each, the heaviest first."""
    heaviest: dict[str, float] = {}
    for signal in signals:
        heaviest[signal.reason] = max(signal.weight, heaviest.get(signal.reason, 0.0))
    return tuple(sorted(heaviest, key=lambda reason: (-heaviest[reason], reason)))
