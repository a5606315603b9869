"""Measures the detection of duplicates by text (REV-7)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muniment.evaluation.pairs import RelatedPair, pair_figures
from muniment.evaluation.scoring import precision_and_recall
from muniment.language.readers import Readers

_FIELDS: dict[str, type] = {"a": str, "b": str, "duplicate": bool, "set": str}


def figures(records: Iterable[Mapping[str, Any]], readers: Readers | None = None) -> dict[str, Any]:
    """Relate the texts of every `{"a", "b", "duplicate", "set"}` record; return figures over all and by set.

    `precision`, `recall` and `f1` are those of the verdict `same`; None where undefined. Raises `InvalidInput` naming
    the record and the field that is wrong.
    """
    return pair_figures(records, _FIELDS, _figures_of, readers=readers)


def _figures_of(pairs: Sequence[RelatedPair]) -> dict[str, Any]:
    found, true = [one.verdict == "same" for one in pairs], [one.record["duplicate"] for one in pairs]
    return {"n": len(pairs), **precision_and_recall(found, true)}
