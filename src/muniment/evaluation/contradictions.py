"""Measures the detection of contradictions by text (CTR-2)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muniment.evaluation.pairs import RelatedPair, pair_figures
from muniment.evaluation.scoring import precision_and_recall
from muniment.language.readers import Readers
from muniment.model.metrics import mean

_FIELDS: dict[str, type] = {"a": str, "b": str, "label": str, "set": str}
_CHOICES = {"label": ("contradiction", "neutral", "entailment")}


def figures(records: Iterable[Mapping[str, Any]], readers: Readers | None = None) -> dict[str, Any]:
    """Relate the texts of every `{"a", "b", "label", "set"}` record; return figures over all and by set.

    `precision`, `recall` and `f1` are those of the verdict `contradicts`; `false_duplicate_rate` is the share of pairs
    labelled contradiction or neutral that were judged `same`; None where undefined. Raises `InvalidInput` naming the
    record and the field that is wrong.
    """
    return pair_figures(records, _FIELDS, _figures_of, _CHOICES, readers)


def _figures_of(pairs: Sequence[RelatedPair]) -> dict[str, Any]:
    found = [one.verdict == "contradicts" for one in pairs]
    true = [one.record["label"] == "contradiction" for one in pairs]
    different = [one for one in pairs if one.record["label"] != "entailment"]
    return {
        "n": len(pairs),
        **precision_and_recall(found, true),
        "false_duplicate_rate": mean(one.verdict == "same" for one in different),
    }
