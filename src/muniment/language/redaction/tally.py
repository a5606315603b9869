"""What the rules find in a text, and what was masked so far while one text, value or candidate is redacted."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from muniment.language.redaction.exceptions import Exceptions
from muniment.language.redaction.masks import Mask
from muniment.language.redaction.normalised import NormalisedText, Span
from muniment.language.redaction.repeated_values import MaskedValue, ValueMatcher
from muniment.language.redaction.tags import TaggedTexts
from muniment.pack.redaction_exceptions import RedactionExceptions

# Takes a text and its normalised copy, and returns spans of the text.
Find: TypeAlias = Callable[[str, NormalisedText], Iterable[Span]]


class Rule(NamedTuple):
    """An enabled rule: its name, what finds the spans, their mask, and the label that a finding raises to."""

    name: str
    find: Find
    mask: Mask
    label: str | None
    detector: str | None = None


Matcher: TypeAlias = ValueMatcher[Rule]
Spans: TypeAlias = list[tuple[int, int, Rule]]


class Round(NamedTuple):
    """What one search finds in a text: spans to mask, in order and apart, and spans that the pack excepts."""

    spans: Spans
    excepted: Spans


NO_VALUES: Matcher = ValueMatcher(())
NOTHING = Round([], [])
NO_EXCEPTIONS = Exceptions(RedactionExceptions())


@dataclass
class Tally:
    """What was masked so far while one text, value or candidate is redacted, and what stays as an exception."""

    exceptions: Exceptions = NO_EXCEPTIONS
    # What the trained tagger found, in texts as they are between two rounds.
    tags: TaggedTexts | None = None
    counts: Counter[str] = field(default_factory=Counter[str])
    labels: set[str] = field(default_factory=set[str])
    masked_values: dict[MaskedValue, Rule] = field(default_factory=dict[MaskedValue, Rule])
    excepted: Counter[str] = field(default_factory=Counter[str])
    # Where the rules find nothing to mask (context, text, whether values are excepted), with what is excepted there.
    clean: dict[tuple[str, str, bool], Round] = field(default_factory=dict[tuple[str, str, bool], Round])

    def add(self, rule: Rule, found: str) -> None:
        """Count a finding that is masked."""
        self.counts[rule.name] += 1
        if rule.label is not None:
            self.labels.add(rule.label)
        # What the pack excepts may be masked in one place, as a part of something else, and stands in others.
        if self.exceptions.named(rule.detector, found) is None:
            masked_value = MaskedValue.of(found)
            if masked_value is not None and masked_value.is_long:
                self.masked_values.setdefault(masked_value, rule)

    def keep(self, excepted: Spans) -> None:
        """Count what stays of a text."""
        self.excepted.update(rule.name for _, _, rule in excepted)

    def forget(self, context: str, text: str) -> None:
        """Count no longer what stayed of a text that is masked further."""
        if (known := self.clean.get((context, text, True))) is not None:
            self.excepted.subtract(rule.name for _, _, rule in known.excepted)

    def matchers(self) -> tuple[Matcher, Matcher]:
        """Return what finds all masked values again, and what finds only the long ones."""
        long = {value: rule for value, rule in self.masked_values.items() if value.is_long}
        return ValueMatcher(self.masked_values.items()), ValueMatcher(long.items())
