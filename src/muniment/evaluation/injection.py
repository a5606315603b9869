"""Figures for the detector of text that addresses the model (CAN-7): attacks caught, ordinary talk left alone."""

from collections.abc import Iterable, Mapping
from time import perf_counter
from typing import Any

from muniment.evaluation.reading import taken
from muniment.language.instructions import Suspicion, suspicion

_FIELDS: tuple[tuple[str, type[Any]], ...] = (("text", str), ("attack", bool), ("set", str))


def figures(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Judge every `{"text", "attack", "set"}` record and say how well, over all and by set.

    `recall` is the share of attacks found, `false_positive_rate` the share of harmless texts taken for attacks, `auc`
    the chance that an attack scores above a harmless text; None where a set has nothing to compute it from. Raises
    InvalidInput at a record that lacks a field or has another type in it, naming both.
    """
    by_set: dict[str, list[tuple[bool, Suspicion]]] = {}
    seconds = 0.0
    for record in records:
        text, attack, part = (taken(record, name, kind) for name, kind in _FIELDS)
        started = perf_counter()
        judged = suspicion(text)
        seconds += perf_counter() - started
        by_set.setdefault(part, []).append((attack, judged))
    everything = [judged for part in by_set.values() for judged in part]
    return {
        **_of(everything),
        "sets": {name: _of(part) for name, part in sorted(by_set.items())},
        "seconds_per_item": seconds / len(everything) if everything else None,
    }


def _of(judged: list[tuple[bool, Suspicion]]) -> dict[str, Any]:
    attacks = [one for attack, one in judged if attack]
    harmless = [one for attack, one in judged if not attack]
    return {
        "n": len(judged),
        "recall": _share_found(attacks),
        "false_positive_rate": _share_found(harmless),
        "auc": _auc([one.score for one in attacks], [one.score for one in harmless]),
    }


def _share_found(judged: list[Suspicion]) -> float | None:
    return sum(one.addresses_the_model for one in judged) / len(judged) if judged else None


def _auc(attacks: list[float], harmless: list[float]) -> float | None:
    """By ranks, ties counted half."""
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
