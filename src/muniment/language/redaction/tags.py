"""What the trained tagger found in texts: findings of the pack's detectors, and special categories (RED-2, CAN-13).

The rules find first; the tagger adds to them. Persons, addresses and locations count by themselves. Numbers count only
behind a word that announces them, as the tagger is a second opinion there.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from muniment.language.assertion.stemming import stem
from muniment.language.assertion.vocabulary import CLASSES
from muniment.language.readers.tagger import Tag
from muniment.language.readers.weights import ReaderFile
from muniment.language.special import CATEGORIES

_DETECTORS = {
    "PERSON": "person",
    "ADDRESS": "address",
    "LOCATION": "location",
    "PHONE": "phone",
    "ID": "national_id",
    "DATE_OF_BIRTH": "date_of_birth",
}
_CUES = {
    "PHONE": re.compile(
        r"\b(?:call|dial|reach|ring|phone|telephone|tel|text|fax|mobile|cell|whatsapp|sms)(?:s|ed|ing)?\b",
        re.IGNORECASE,
    ),
    "ID": re.compile(
        r"\b(?:ssn|social security|passport|licen[cs]e|national id|identity card|id card|tax|insurance)\b",
        re.IGNORECASE,
    ),
    "DATE_OF_BIRTH": re.compile(r"\b(?:born|birth|birthday|dob)\b", re.IGNORECASE),
}
# Beside the name of a diet they say nothing more.
_WITH_DIETS = frozenset(("a", "an", "strict", "strictly", "diet"))
# Characters before a number in which a word may announce it.
_REACH = 40
_DEFAULT = 0.5


class TagFinding(NamedTuple):
    """A span that the tagger found for a detector."""

    start: int
    end: int
    detector: str


@dataclass(frozen=True)
class TaggedTexts:
    """The tags of texts, with the thresholds that they count from: the pack's, else the measured ones.

    A tag counts from its threshold less the margin, so that no machine masks less than another (CAN-15).
    """

    file: ReaderFile
    by_text: Mapping[str, tuple[Tag, ...]] = field(default_factory=dict[str, tuple[Tag, ...]])
    threshold: float | None = None

    def threshold_of(self, label: str) -> float:
        """Return the score from which a label counts."""
        label = label.partition(":")[0]
        return self.threshold if self.threshold is not None else self.file.thresholds.get(label, _DEFAULT)

    def findings(self, text: str) -> list[TagFinding]:
        """Return what the detectors mask of a text."""
        return [
            TagFinding(tag.start, tag.end, _DETECTORS[tag.label])
            for tag in self._counting(text)
            if tag.label in _DETECTORS and _is_announced(tag, text)
        ]

    def scores(
        self, texts: Iterable[str], detectors: Iterable[str], stays: Callable[[str, Tag], bool]
    ) -> dict[str, float]:
        """Return the lowest score of each label that was masked in texts for one of these detectors.

        `stays` says of a tag of a text that it is not masked, as the pack excepts it.
        """
        known = set(detectors)
        masked = (
            tag
            for text in texts
            for tag in self._counting(text)
            if _DETECTORS.get(tag.label) in known and _is_announced(tag, text) and not stays(text, tag)
        )
        return _lowest(masked)

    def special(self, text: str) -> list[Tag]:
        """Return what a text says in special categories, as far as it counts; a diet alone is in none."""
        found = (tag for tag in self._counting(text) if tag.label.partition(":")[0] in CATEGORIES)
        return [tag for tag in found if not _is_diet(text[tag.start : tag.end])]

    def near(self, scores: Mapping[str, float]) -> bool:
        """Whether a score lies within the margin of its threshold."""
        return any(score < self.threshold_of(label) + self.file.margin for label, score in scores.items())

    def _counting(self, text: str) -> Iterator[Tag]:
        for tag in self.by_text.get(text, ()):
            if tag.score >= self.threshold_of(tag.label) - self.file.margin:
                yield tag


def _lowest(tags: Iterable[Tag]) -> dict[str, float]:
    found: dict[str, float] = {}
    for tag in tags:
        found[tag.label] = min(tag.score, found.get(tag.label, 1.0))
    return found


def _is_announced(tag: Tag, text: str) -> bool:
    """Whether a number stands behind a word that announces it; what is no number needs none."""
    cue = _CUES.get(tag.label)
    return cue is None or cue.search(text[max(0, tag.start - _REACH) : tag.start]) is not None


def _is_diet(words: str) -> bool:
    """Whether words only name a diet: "a strict vegan", but not "a Hindu vegetarian"."""
    said = [word for word in words.lower().split() if word not in _WITH_DIETS]
    return bool(said) and all("diet" in CLASSES.get(stem(word), {}) for word in said)
