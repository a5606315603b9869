"""Figures for duplicates by text (REV-7): rewordings found, near misses left alone."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from muniment.evaluation.pairs import Related, by_set, precision_and_recall, related, seconds_per_item

_FIELDS: dict[str, type] = {"a": str, "b": str, "duplicate": bool, "set": str}


def figures(records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Relate every `{"a", "b", "duplicate", "set"}` record and say how well, over all and by set.

    `precision`, `recall` and `f1` are those of `same`; what nothing defines is None. Raises InvalidInput at a wrong
    record, naming it and the field.
    """
    sets = by_set(related(records, _FIELDS))
    everything = [one for part in sets.values() for one in part]
    return {
        **_of(everything),
        "sets": {name: _of(part) for name, part in sets.items()},
        "seconds_per_item": seconds_per_item(everything),
    }


def _of(judged: Sequence[Related]) -> dict[str, Any]:
    return {
        "n": len(judged),
        **precision_and_recall([one.verdict == "same" for one in judged], [one.record["duplicate"] for one in judged]),
    }
