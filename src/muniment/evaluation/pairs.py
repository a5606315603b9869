"""Relates pairs of texts as the pipeline does, under the built-in pack and embedder."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple

from muniment.evaluation.records import invalid_record, required
from muniment.evaluation.scoring import figures_by_set
from muniment.language.assertion import Relation, relate
from muniment.language.embedding import builtin_embedder
from muniment.pack import builtin_pack

_BATCH = 512


class RelatedPair(NamedTuple):
    """A record, the relation of its texts, and the seconds that it took."""

    record: Mapping[str, Any]
    verdict: Relation
    seconds: float


def pair_figures(
    records: Iterable[Mapping[str, Any]],
    fields: Mapping[str, type],
    figures_of: Callable[[Sequence[RelatedPair]], dict[str, Any]],
    choices: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """Relate `a` and `b` of every record and return figures over all and by set; seconds include the embedding.

    Raises `InvalidInput` at a record that lacks a field, has another type in it or none of its choices.
    """
    checked = (_checked(record, fields, choices or {}) for record in records)
    sets: dict[str, list[RelatedPair]] = {}
    seconds = 0.0
    for pair in _related(checked):
        sets.setdefault(pair.record["set"], []).append(pair)
        seconds += pair.seconds
    return figures_by_set(sets, figures_of, seconds)


def _related(records: Iterable[Mapping[str, Any]]) -> Iterator[RelatedPair]:
    embedder = builtin_embedder()
    thresholds = builtin_pack().memory_layer.contradiction.thresholds_for(embedder.name)
    records = iter(records)
    while batch := list(islice(records, _BATCH)):
        started = perf_counter()
        vectors = embedder.embed([record[side] for side in ("a", "b") for record in batch])
        similarities = (vectors[: len(batch)] * vectors[len(batch) :]).sum(axis=1).tolist()
        share = (perf_counter() - started) / len(batch)
        for record, similarity in zip(batch, similarities, strict=True):
            started = perf_counter()
            verdict = relate(record["a"], record["b"], similarity, thresholds).verdict
            yield RelatedPair(record, verdict, share + perf_counter() - started)


def _checked(
    record: Mapping[str, Any], fields: Mapping[str, type], choices: Mapping[str, Sequence[str]]
) -> Mapping[str, Any]:
    for name, kind in fields.items():
        required(record, name, kind)
    for name, allowed in choices.items():
        if record[name] not in allowed:
            raise invalid_record(record, name, f"expected one of {', '.join(allowed)}")
    return record
