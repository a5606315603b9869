"""Ranking: the order of memories in the answer to a query, a pure function of what the caller sees (REC-2, REC-9).

A score is the sum of its parts, each between 0 and 1 and then weighted by the pack: nearness of meaning (vector),
words shared (BM25 over what is visible, as a share of the most the query could reach), priority, recency, confidence,
nearness of the intent, and whether it is about an entity that was asked for.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from math import log

import numpy as np
from numpy.typing import NDArray

from muniment.pack.memory_layer import RecallPolicy

Numbers = NDArray[np.float64]

# BM25: how fast saying a word again stops counting, how much length counts, and what length counts as usual.
_SATURATION, _LENGTH, _USUAL = 0.9, 0.4, 12.0
# Beyond these a word is as common, and a scope as large, as it can be.
MOST_SEEN, MOST_COMMON = 20_000, 1_000
_DIGITS = 6
PARTS = ("vector", "words", "priority", "recency", "confidence", "intent", "entity")


@dataclass(frozen=True)
class Seen:
    """The memories that a run may see, as columns in one order.

    `intent` is each one's position among the intents that the run sees, `about` its entity's among the requested ones
    (0: none). `keyed` are the memories on the key of a correction, by key, with whether they are one.
    """

    ids: list[str]
    priority: Numbers
    confidence: Numbers
    born_seq: NDArray[np.int64]
    promoted_at: Numbers
    intent: NDArray[np.int16]
    about: NDArray[np.int16]
    wanted: NDArray[np.bool_]
    working: frozenset[str]
    keyed: Mapping[tuple[str, str], Sequence[tuple[str, bool]]]

    @cached_property
    def places(self) -> dict[str, int]:
        """The index of each memory in the columns."""
        return {memory_id: index for index, memory_id in enumerate(self.ids)}


@dataclass(frozen=True)
class Postings:
    """Which memories have the words of a query: term, memory, how often, of how many words."""

    terms: Sequence[int]
    ids: Sequence[str]
    times: NDArray[np.int16]
    words: NDArray[np.int16]


def rarity(seen: int, with_word: int) -> float:
    """Return the weight of a word: the rarer it is among the visible memories, the more."""
    seen, with_word = min(seen, MOST_SEEN), min(with_word, MOST_COMMON)
    return log(1 + (max(seen - with_word, 0) + 0.5) / (with_word + 0.5))


def rarities(terms: Sequence[int], postings: Postings, places: Mapping[str, int]) -> dict[int, float]:
    """Return the rarity of each term among the memories in `places`."""
    count = dict.fromkeys(terms, 0)
    for term, memory_id in zip(postings.terms, postings.ids, strict=True):
        if memory_id in places:
            count[term] += 1
    return {term: rarity(len(places), found) for term, found in count.items()}


def words_shared(postings: Postings, places: Mapping[str, int], weights: Mapping[int, float]) -> Numbers:
    """Return each memory's share of the query's words: BM25, divided by the most that the query could reach."""
    shared = np.zeros(len(places))
    most = sum(weights.values()) * (_SATURATION + 1)
    if not most or not len(postings.ids):
        return shared
    index = np.fromiter((places.get(memory_id, -1) for memory_id in postings.ids), np.int64, len(postings.ids))
    weight = np.fromiter((weights.get(term, 0.0) for term in postings.terms), np.float64, len(postings.terms))
    times, words = postings.times.astype(np.float64), postings.words.astype(np.float64)
    frequency = times * (_SATURATION + 1) / (times + _SATURATION * (1 - _LENGTH + _LENGTH * words / _USUAL))
    known = index >= 0
    np.add.at(shared, index[known], (weight * frequency)[known])
    return np.minimum(shared / most, 1.0)


@dataclass(frozen=True)
class Ranking:
    """The order of the wanted memories, the best first, and the parts of every score, by index."""

    order: list[int]
    total: Numbers
    parts: dict[str, Numbers]

    def total_of(self, seen: Seen, memory_id: str) -> float:
        """Return the score of a memory; 0 for one that was not ranked."""
        index = seen.places.get(memory_id)
        return float(self.total[index]) if index is not None else 0.0

    def score(self, index: int) -> dict[str, float]:
        """Return the weighted parts of one score, and their sum."""
        shown = {name: float(self.parts[name][index]) for name in PARTS}
        return shown | {"total": float(self.total[index])}


def rank(
    seen: Seen,
    *,
    vector: Numbers,
    words: Numbers,
    entity: Numbers,
    policy: RecallPolicy,
    at: datetime,
) -> Ranking:
    """Order by score, then newest first, then by id; a correction just before the best on its key."""
    raw: dict[str, Numbers] = {
        "vector": np.clip(vector, 0.0, 1.0),
        "words": words,
        "priority": seen.priority,
        "recency": _recency(seen.promoted_at, at, policy.recency_half_life),
        "confidence": seen.confidence,
        "intent": np.select([seen.intent == 2, seen.intent > 2], [1.0, 0.5], 0.0),
        "entity": entity,
    }
    weights: dict[str, float] = policy.weights.model_dump()
    parts = {name: _rounded(raw[name] * weights[name]) for name in PARTS}
    total = _rounded(np.stack(list(parts.values())).sum(axis=0))
    return Ranking(_ordered(seen, total), total, parts)


def _ordered(seen: Seen, total: Numbers) -> list[int]:
    """Order the wanted memories: by score, newest first, by id; a correction just before the best on its key."""
    if not seen.ids:
        return []
    score, born, after = total.copy(), seen.born_seq.copy(), np.ones(len(seen.ids), dtype=np.int8)
    for members in seen.keyed.values():
        on_key = [index for name, _ in members if seen.wanted[index := seen.places[name]]]
        if on_key:
            best = min(on_key, key=lambda index: (-total[index], -seen.born_seq[index]))
            corrections = [index for name, is_one in members if is_one and (index := seen.places[name]) in on_key]
            score[corrections], born[corrections], after[corrections] = total[best], seen.born_seq[best], 0
    order = np.lexsort((np.array(seen.ids), after, -born, -score))
    return order[seen.wanted[order]].tolist()


def _rounded(numbers: Numbers) -> Numbers:
    """Round, so that the last bits of a sum, which differ between machines, decide nothing."""
    return np.round(numbers, _DIGITS)


def _recency(promoted_at: Numbers, at: datetime, half_life: timedelta) -> Numbers:
    age = np.maximum(at.timestamp() - promoted_at, 0.0)
    return np.exp2(-age / half_life.total_seconds())
