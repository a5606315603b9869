"""The judgement: how likely a text addresses the model instead of stating a fact, and why."""

from collections.abc import Iterator
from dataclasses import dataclass

from muniment.language.instructions import english, english_orders, german, markup, other_languages, romance
from muniment.language.instructions.rules import RuleSet
from muniment.language.instructions.signs import Sign, combined, reasons
from muniment.language.instructions.unfold import View, unfold

THRESHOLD = 0.5
"""At or above it a text counts as addressed to the model."""

# Signs speak together where they stand together: a long text is judged by its most suspicious passage.
_PASSAGE = 1200
_OVERLAP = 300

_RULES = tuple(
    RuleSet(rules)
    for rules in (english.RULES, english_orders.RULES, german.RULES, romance.RULES, other_languages.RULES)
)


@dataclass(frozen=True)
class Suspicion:
    """How likely a text addresses the model, from 0 to 1, and the codes of what speaks for it, heaviest first."""

    score: float
    reasons: tuple[str, ...]

    @property
    def addresses_the_model(self) -> bool:
        """Whether the score reaches the threshold."""
        return self.score >= THRESHOLD


def suspicion(text: str) -> Suspicion:
    """Judge a text by every reading of it (CAN-7); pure, never raises on any string, time linear in its length."""
    unfolded = unfold(text)
    heaviest: list[Sign] = []
    for view in unfolded.views:
        set_so = markup.signs(view.text)
        for passage in _passages(view):
            found = [*set_so, *(sign for rules in _RULES for sign in rules.signs(passage))]
            if combined(found) > combined(heaviest):
                heaviest = found
    signs = [*heaviest, *unfolded.signs]
    return Suspicion(round(combined(signs), 4), reasons(signs))


def _passages(view: View) -> Iterator[str]:
    text = view.words
    if len(text) <= _PASSAGE:
        yield text
        return
    for start in range(0, len(text) - _OVERLAP, _PASSAGE - _OVERLAP):
        yield text[start : start + _PASSAGE]
