"""Relates pairs of texts as the pipeline does, under the built-in pack and embedder, with and without the readers."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple

import anyio

from muniment.contradictions.rules import Comparison, judged_relation
from muniment.contradictions.store import judge_thresholds
from muniment.evaluation.records import invalid_record, required
from muniment.evaluation.scoring import figures_by_set
from muniment.language.assertion import Relation, judge, may_conflict, relate, same_subject
from muniment.language.embedding import builtin_embedder
from muniment.language.readers import Readers
from muniment.pack import Pack, builtin_pack

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
    readers: Readers | None = None,
) -> dict[str, Any]:
    """Relate `a` and `b` of every record and return figures over all and by set; seconds include the embedding.

    With `readers` the trained judge reads what the rules leave open, as at the gate: pairs that are similar enough to
    be found as neighbours and may have one subject. Raises `InvalidInput` at a record that lacks a field, has another
    type in it or none of its choices.
    """
    checked = (_checked(record, fields, choices or {}) for record in records)
    sets: dict[str, list[RelatedPair]] = {}
    seconds = 0.0
    for pair in _related(checked, readers):
        sets.setdefault(pair.record["set"], []).append(pair)
        seconds += pair.seconds
    return figures_by_set(sets, figures_of, seconds)


def _related(records: Iterable[Mapping[str, Any]], readers: Readers | None) -> Iterator[RelatedPair]:
    embedder, pack = builtin_embedder(), builtin_pack()
    thresholds = pack.memory_layer.contradiction.thresholds_for(embedder.name)
    judged = judge_thresholds(readers, pack) if readers is not None else None
    by = Comparison(thresholds, judge, judge_thresholds=judged)
    records = iter(records)
    while batch := list(islice(records, _BATCH)):
        started = perf_counter()
        vectors = embedder.embed([record[side] for side in ("a", "b") for record in batch])
        similarities: list[float] = (vectors[: len(batch)] * vectors[len(batch) :]).sum(axis=1).tolist()
        pairs = [_Pair(record["a"], record["b"], near) for record, near in zip(batch, similarities, strict=True)]
        verdicts: list[Relation] = [relate(*pair, thresholds).verdict for pair in pairs]
        if readers is not None:
            verdicts = _with_judge(pairs, verdicts, readers, by, pack)
        share = (perf_counter() - started) / len(batch)
        for record, verdict in zip(batch, verdicts, strict=True):
            yield RelatedPair(record, verdict, share)


class _Pair(NamedTuple):
    a: str
    b: str
    similarity: float


def _with_judge(
    pairs: Sequence[_Pair], verdicts: Sequence[Relation], readers: Readers, by: Comparison, pack: Pack
) -> list[Relation]:
    """Return the verdicts with those of the trained judge where the rules say `different`."""
    least = min(pack.memory_layer.contradiction.judge.similarity, by.thresholds.similarity)
    wanted = [
        number
        for number, (pair, verdict) in enumerate(zip(pairs, verdicts, strict=True))
        if verdict == "different"
        and pair.similarity >= least
        and same_subject(pair.a, pair.b)
        and (pair.similarity >= by.thresholds.similarity or may_conflict(*pair))
    ]
    read = anyio.run(readers.read_pairs, [(pairs[number].a, pairs[number].b) for number in wanted])
    found = list(verdicts)
    for number, scores in zip(wanted, read, strict=True):
        found[number] = judged_relation(*pairs[number], scores, by).verdict
    return found


def _checked(
    record: Mapping[str, Any], fields: Mapping[str, type], choices: Mapping[str, Sequence[str]]
) -> Mapping[str, Any]:
    for name, kind in fields.items():
        required(record, name, kind)
    for name, allowed in choices.items():
        if record[name] not in allowed:
            raise invalid_record(record, name, f"expected one of {', '.join(allowed)}")
    return record
