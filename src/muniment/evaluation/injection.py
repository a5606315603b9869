"""Measures the detection of text that addresses the model (CAN-7)."""

from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import Any, NamedTuple

from muniment.evaluation.records import required
from muniment.evaluation.scoring import figures_by_set
from muniment.language.instructions import suspicion
from muniment.language.readers import Readers
from muniment.language.readers.guard import ATTACK
from muniment.language.readers.readers import GUARD
from muniment.model.metrics import mean

_FIELDS: tuple[tuple[str, type[Any]], ...] = (("text", str), ("attack", bool), ("set", str))


class _Scored(NamedTuple):
    """How likely a text addresses the model, and whether it counts as doing so."""

    score: float
    addresses_the_model: bool


def figures(records: Iterable[Mapping[str, Any]], readers: Readers | None = None) -> dict[str, Any]:
    """Score the text of every `{"text", "attack", "set"}` record; return figures over all and by set.

    `recall` is the share of attacks found, `false_positive_rate` the share of harmless texts taken for attacks, `auc`
    the probability that an attack scores above a harmless text; None where undefined. With `readers` a text counts as
    an attack where the rules or the trained guard say so. Raises `InvalidInput` naming the record and the field that is
    wrong.
    """
    sets: dict[str, list[tuple[bool, _Scored]]] = {}
    seconds = 0.0
    for record in records:
        text, attack, part = (required(record, name, kind) for name, kind in _FIELDS)
        started = perf_counter()
        judged = _scored(text, readers)
        seconds += perf_counter() - started
        sets.setdefault(part, []).append((attack, judged))
    return figures_by_set(sets, _figures_of, seconds)


def _scored(text: str, readers: Readers | None) -> _Scored:
    found = suspicion(text)
    if readers is None:
        return _Scored(found.score, found.addresses_the_model)
    score = readers.load().guard.read(text).attack
    guarded = score >= readers.file(GUARD).thresholds[ATTACK]
    return _Scored(max(found.score, score), found.addresses_the_model or guarded)


def _figures_of(judged: list[tuple[bool, _Scored]]) -> dict[str, Any]:
    attacks = [one for attack, one in judged if attack]
    harmless = [one for attack, one in judged if not attack]
    return {
        "n": len(judged),
        "recall": mean(one.addresses_the_model for one in attacks),
        "false_positive_rate": mean(one.addresses_the_model for one in harmless),
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
