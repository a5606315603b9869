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
from muniment.language.assertion import Relation, judge, relate, same_subject, share_enough_words
from muniment.language.embedding import builtin_embedder
from muniment.language.readers import PairScores, Readers
from muniment.pack import Thresholds, builtin_pack

_BATCH = 512


class ReadPair(NamedTuple):
    """A record, what the rules say of its texts, and what the trained judge says where the gate would ask it."""

    record: Mapping[str, Any]
    similarity: float
    rules: Relation
    scores: PairScores | None
    seconds: float

    def verdict(self, by: Comparison) -> Relation:
        """Return the relation of the texts: that of the rules, or the judge's where they say `different`."""
        if self.scores is None:
            return self.rules
        return judged_relation(self.record["a"], self.record["b"], self.similarity, self.scores, by).verdict


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
    by = comparison(readers)
    sets: dict[str, list[RelatedPair]] = {}
    seconds = 0.0
    for pair in read_pairs(checked, readers):
        sets.setdefault(pair.record["set"], []).append(RelatedPair(pair.record, pair.verdict(by), pair.seconds))
        seconds += pair.seconds
    return figures_by_set(sets, figures_of, seconds)


def comparison(readers: Readers | None) -> Comparison:
    """Return how the built-in pack compares texts with the built-in embedder, and with the readers' judge."""
    pack = builtin_pack()
    thresholds = pack.memory_layer.contradiction.thresholds_for(builtin_embedder().name)
    return Comparison(thresholds, judge, judge_thresholds=judge_thresholds(readers, pack) if readers else None)


def read_pairs(records: Iterable[Mapping[str, Any]], readers: Readers | None) -> Iterator[ReadPair]:
    """Yield every record with what the rules, and with `readers` the trained judge, say of its texts `a` and `b`."""
    embedder, contradiction = builtin_embedder(), builtin_pack().memory_layer.contradiction
    thresholds = contradiction.thresholds_for(embedder.name)
    least = min(contradiction.judge.similarity, thresholds.similarity)
    records = iter(records)
    while batch := list(islice(records, _BATCH)):
        started = perf_counter()
        vectors = embedder.embed([record[side] for side in ("a", "b") for record in batch])
        similarities: list[float] = (vectors[: len(batch)] * vectors[len(batch) :]).sum(axis=1).tolist()
        pairs = [_Pair(record["a"], record["b"], near) for record, near in zip(batch, similarities, strict=True)]
        verdicts: list[Relation] = [relate(*pair, thresholds).verdict for pair in pairs]
        asked = [
            pair for pair, verdict in zip(pairs, verdicts, strict=True) if _is_asked(pair, verdict, least, thresholds)
        ]
        scores = _judged(asked, readers) if readers is not None else {}
        share = (perf_counter() - started) / len(batch)
        for record, pair, verdict in zip(batch, pairs, verdicts, strict=True):
            yield ReadPair(record, pair.similarity, verdict, scores.get(pair), share)


class _Pair(NamedTuple):
    a: str
    b: str
    similarity: float


def _is_asked(pair: _Pair, verdict: Relation, least: float, thresholds: Thresholds) -> bool:
    """Whether the judge reads a pair, as at the gate: near enough, no two subjects by the rules, enough in common."""
    if verdict != "different" or pair.similarity < least or not same_subject(pair.a, pair.b):
        return False
    return pair.similarity >= thresholds.similarity or share_enough_words(*pair)


def _judged(pairs: Sequence[_Pair], readers: Readers) -> dict[_Pair, PairScores]:
    read = anyio.run(readers.read_pairs, [(pair.a, pair.b) for pair in pairs])
    return dict(zip(pairs, read, strict=True))


def _checked(
    record: Mapping[str, Any], fields: Mapping[str, type], choices: Mapping[str, Sequence[str]]
) -> Mapping[str, Any]:
    for name, kind in fields.items():
        required(record, name, kind)
    for name, allowed in choices.items():
        if record[name] not in allowed:
            raise invalid_record(record, name, f"expected one of {', '.join(allowed)}")
    return record
