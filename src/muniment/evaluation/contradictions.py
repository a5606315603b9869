"""Figures for contradiction by text (CTR-2): contradictions found, and pairs that merely differ left alone."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muniment.evaluation.pairs import Related, by_set, precision_and_recall, related, seconds_per_item

_FIELDS: dict[str, type] = {"a": str, "b": str, "label": str, "set": str}
_CHOICES = {"label": ("contradiction", "neutral", "entailment")}


def figures(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Relate every `{"a", "b", "label", "set"}` record and say how well, over all and by set.

    `precision`, `recall` and `f1` are those of `contradicts`; `false_duplicate_rate` is the share of pairs labelled
    contradiction or neutral that came out `same`. What nothing defines is None. Raises InvalidInput at a wrong
    record, naming it and the field.
    """
    sets = by_set(related(records, _FIELDS, _CHOICES))
    everything = [one for part in sets.values() for one in part]
    return {
        **_of(everything),
        "sets": {name: _of(part) for name, part in sets.items()},
        "seconds_per_item": seconds_per_item(everything),
    }


def _of(judged: Sequence[Related]) -> dict[str, Any]:
    not_the_same = [one for one in judged if one.record["label"] != "entailment"]
    return {
        "n": len(judged),
        **precision_and_recall(
            [one.verdict == "contradicts" for one in judged],
            [one.record["label"] == "contradiction" for one in judged],
        ),
        "false_duplicate_rate": (
            sum(one.verdict == "same" for one in not_the_same) / len(not_the_same) if not_the_same else None
        ),
    }
