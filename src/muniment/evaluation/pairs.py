"""Pairs of texts related as the pipeline relates them, and the figures that come of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple

from muniment.evaluation.reading import taken, wrong
from muniment.language.assertion import Relation, relate
from muniment.language.embedding import builtin_embedder
from muniment.pack import builtin_pack

_BATCH = 512


class Related(NamedTuple):
    """A record and what came of it, with the seconds that took."""

    record: Mapping[str, Any]
    verdict: Relation
    seconds: float


def related(
    records: Iterable[Mapping[str, Any]], fields: Mapping[str, type], choices: Mapping[str, Sequence[str]] | None = None
) -> Iterator[Related]:
    """Every record with the relation of its `a` and `b` under the built-in pack and embedder.

    Raises InvalidInput at a record that lacks one of the fields, has another type in it or none of its choices.
    """
    embedder = builtin_embedder()
    thresholds = builtin_pack().memory_layer.contradiction.thresholds_for(embedder.name)
    checked = (_checked(record, fields, choices or {}) for record in records)
    while batch := list(islice(checked, _BATCH)):
        started = perf_counter()
        vectors = embedder.embed([record[side] for side in ("a", "b") for record in batch])
        similarities = (vectors[: len(batch)] * vectors[len(batch) :]).sum(axis=1).tolist()
        share = (perf_counter() - started) / len(batch)
        for record, similarity in zip(batch, similarities, strict=True):
            started = perf_counter()
            verdict = relate(record["a"], record["b"], similarity, thresholds).verdict
            yield Related(record, verdict, share + perf_counter() - started)


def _checked(
    record: Mapping[str, Any], fields: Mapping[str, type], choices: Mapping[str, Sequence[str]]
) -> Mapping[str, Any]:
    for name, kind in fields.items():
        taken(record, name, kind)
    for name, allowed in choices.items():
        if record[name] not in allowed:
            raise wrong(record, name, f"expected one of {', '.join(allowed)}")
    return record


def precision_and_recall(found: Sequence[bool], true: Sequence[bool]) -> dict[str, Any]:
    """`precision`, `recall` and `f1` of what was found against what is true; None where nothing defines them."""
    hits = sum(one and other for one, other in zip(found, true, strict=True))
    precision = hits / sum(found) if any(found) else None
    recall = hits / sum(true) if any(true) else None
    # Both sides count here, so it is defined as soon as either side has anything.
    either = sum(found) + sum(true)
    return {"precision": precision, "recall": recall, "f1": 2 * hits / either if either else None}


def by_set(judged: Iterable[Related]) -> dict[str, list[Related]]:
    """The judged records by their `set`, in the order of its name."""
    sets: dict[str, list[Related]] = {}
    for one in judged:
        sets.setdefault(one.record["set"], []).append(one)
    return dict(sorted(sets.items()))


def seconds_per_item(judged: Sequence[Related]) -> float | None:
    """Mean time of a pair, embedding included; None where there was none."""
    return sum(one.seconds for one in judged) / len(judged) if judged else None
