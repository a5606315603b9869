"""Measures the detection of text that addresses the model (CAN-7)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from time import perf_counter
from typing import Any, NamedTuple

from muniment.evaluation.records import required
from muniment.evaluation.scoring import figures_by_set
from muniment.language.instructions import Suspicion, suspicion
from muniment.language.readers import Readers
from muniment.language.readers.guard import ATTACK
from muniment.language.readers.readers import GUARD
from muniment.model.metrics import mean

_FIELDS: tuple[tuple[str, type[Any]], ...] = (("text", str), ("attack", bool), ("set", str))


class ReadText(NamedTuple):
    """A record, what the rules say of its text, and how the trained guard scores it."""

    record: Mapping[str, Any]
    rules: Suspicion
    guard: float | None
    seconds: float

    @property
    def score(self) -> float:
        """How likely the text addresses the model: the higher of the two scores."""
        return max(self.rules.score, self.guard or 0.0)

    def addresses_the_model(self, threshold: float) -> bool:
        """Whether the rules say so, or the guard's score is at least the threshold."""
        return self.rules.addresses_the_model or (self.guard is not None and self.guard >= threshold)


def figures(records: Iterable[Mapping[str, Any]], readers: Readers | None = None) -> dict[str, Any]:
    """Score the text of every `{"text", "attack", "set"}` record; return figures over all and by set.

    `recall` is the share of attacks found, `false_positive_rate` the share of harmless texts taken for attacks, `auc`
    the probability that an attack scores above a harmless text; None where undefined. With `readers` a text counts as
    an attack where the rules or the trained guard say so. Raises `InvalidInput` naming the record and the field that is
    wrong.
    """
    sets: dict[str, list[ReadText]] = {}
    seconds = 0.0
    for read in read_texts(records, readers):
        sets.setdefault(read.record["set"], []).append(read)
        seconds += read.seconds
    threshold = readers.file(GUARD).thresholds[ATTACK] if readers is not None else 1.0
    return figures_by_set(sets, partial(_figures_of, threshold=threshold), seconds)


def read_texts(records: Iterable[Mapping[str, Any]], readers: Readers | None) -> Iterator[ReadText]:
    """Yield every record with what the rules, and with `readers` the trained guard, say of its text."""
    for record in records:
        text, _, _ = (required(record, name, kind) for name, kind in _FIELDS)
        started = perf_counter()
        found = suspicion(text)
        guard = readers.load().guard.read(text).attack if readers is not None else None
        yield ReadText(record, found, guard, perf_counter() - started)


def _figures_of(read: Sequence[ReadText], threshold: float) -> dict[str, Any]:
    attacks = [one for one in read if one.record["attack"]]
    harmless = [one for one in read if not one.record["attack"]]
    return {
        "n": len(read),
        "recall": mean(one.addresses_the_model(threshold) for one in attacks),
        "false_positive_rate": mean(one.addresses_the_model(threshold) for one in harmless),
        "auc": _auc([one.score for one in attacks], [one.score for one in harmless]),
    }


def _auc(attacks: list[float], harmless: list[float]) -> float | None:
    """Return the area under the ROC curve by ranks; ties count half."""
    if not attacks or not harmless:
        return None
    ranks = _ranks([*attacks, *harmless])
    above = sum(ranks[score] for score in attacks) - len(attacks) * (len(attacks) + 1) / 2
    return above / (len(attacks) * len(harmless))


def _ranks(scores: list[float]) -> dict[float, float]:
    ordered = sorted(scores)
    first: dict[float, int] = {}
    last: dict[float, int] = {}
    for rank, score in enumerate(ordered, start=1):
        first.setdefault(score, rank)
        last[score] = rank
    return {score: (first[score] + last[score]) / 2 for score in first}
